"""Every compiled kernel releases the GIL and is cached on disk."""

import importlib
import os
import subprocess
import sys

import pytest

MODULES = [
    "structot.concave.kernels",
    "structot.submodular._cut_kernels",
    "structot.blocks.kernels",
    "structot.blocks.layout",
    "structot.blocks.polytope",
    "structot.blocks.pools",
    "structot.blocks.sorting",
    "structot.solvers.entropic.kernels",
    "structot.solvers.newton.kernels",
    "structot.submodular._rank_kernels",
    "structot.text._blocks",
    "structot.text._kernels",
    "structot.text._plans",
    "structot.text._splitting",
    "structot.transport._flow",
    "structot.transport.kernels",
]


def dispatchers(name):
    module = importlib.import_module(name)
    return {k: f for k, f in vars(module).items() if hasattr(f, "targetoptions")}


@pytest.mark.parametrize("name", MODULES)
def test_kernels_release_the_gil_and_are_cached(name):
    found = dispatchers(name)
    if not found:
        pytest.skip("compilation is switched off")
    for function in found.values():
        assert function.targetoptions.get("nogil") is True
        assert type(function._cache).__name__ != "NullCache"


SCRIPT = """
import numpy as np
from structot.blocks import layout
layout.gather(np.ones((2, 2)), np.zeros(3, np.int32), np.zeros(3, np.int32))
print(sum(layout.gather.stats.cache_hits.values()), len(layout.gather.stats.cache_misses))
"""


def test_only_the_first_process_compiles(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    counts = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert counts == [["0", "1"], ["1", "0"]]

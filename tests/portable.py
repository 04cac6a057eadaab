"""The numerical tests as other machines would run them: `make test-portable`.

    python tests/portable.py --coretypes "Prescott Haswell" --others "generic ulp" --workers 2

Once per kernel of OpenBLAS that this processor can run (sums in another order, other last bits),
once with compiled code for a processor without extensions (no fused multiply-add), and once with
every cost of `problems.py` moved by one ulp. One BLAS thread each. What fails is named at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CORETYPES = "Prescott Haswell SkylakeX Zen"
OTHERS = "generic ulp"
TESTS = (
    "tests/solvers",
    "tests/structures",
    "tests/blocks",
    "tests/submodular",
    "tests/transport",
    "tests/adaptation/test_structured_transport.py",
    "tests/text/test_word_mover.py",
    "tests/fuzz",
    "tests/test_certificate.py",
    "tests/test_reproducers.py",
    "tests/test_units.py",
    "tests/test_concave.py",
    "tests/test_parallel.py",
)

# Other names under which OpenBLAS reports the kernels of a core type.
ALIASES = {"Prescott": ("Katmai", "Core2"), "Zen": ("Haswell",)}

# Prints what every OpenBLAS of the process has chosen, and uses each of them.
PROBE = """
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
A = numpy.random.default_rng(0).random((200, 200))
numpy.linalg.inv(A @ A.T + numpy.eye(200))
scipy.linalg.cho_factor(A @ A.T + numpy.eye(200))
print(*(x.get("architecture") for x in threadpool_info() if x["internal_api"] == "openblas"))
"""


def one_thread(**changes: str) -> dict[str, str]:
    """The environment of a run. A seed or core type that the caller has set is not passed on."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "STRUCTOT_TEST_ULP")
    }
    return {**inherited, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **changes}


def kernels_of(coretype: str) -> str | None:
    """The kernels that OpenBLAS takes for this core type; None if it falls back to others or dies.

    Where a build has one set of kernels for several core types, it calls them by the first name.
    """
    probe = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=one_thread(OPENBLAS_CORETYPE=coretype),
        capture_output=True,
        text=True,
        check=False,
    )
    names = {coretype, *ALIASES.get(coretype, ())}
    chosen = set(probe.stdout.split())
    return chosen.pop() if probe.returncode == 0 and len(chosen) == 1 and chosen <= names else None


def variants(coretypes: Sequence[str], others: Sequence[str]) -> dict[str, dict[str, str] | str]:
    """The environment of every run by its name, or why there is none."""
    found: dict[str, dict[str, str] | str] = {}
    tried: dict[str, str] = {}
    for coretype in coretypes:
        name, kernels = f"OPENBLAS_CORETYPE={coretype}", kernels_of(coretype)
        if kernels is None:
            found[name] = "left out: this processor, or its BLAS, cannot run it"
        elif kernels in tried:
            found[name] = f"left out: here it has the kernels of {tried[kernels]}"
        else:
            tried[kernels] = coretype
            found[name] = one_thread(OPENBLAS_CORETYPE=coretype)
    if "generic" in others:
        # With a cache of its own, which takes a minute to fill and must not serve other runs.
        cache = str(ROOT / "build" / "numba-generic")
        found["NUMBA_CPU_NAME=generic"] = one_thread(
            NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=cache
        )
    if "ulp" in others:
        seed = os.environ.get("STRUCTOT_TEST_ULP") or "1"
        found[f"STRUCTOT_TEST_ULP={seed}"] = one_thread(STRUCTOT_TEST_ULP=seed)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The numerical tests as other machines run them.")
    parser.add_argument("--coretypes", default=CORETYPES, help=f"of OpenBLAS ({CORETYPES})")
    parser.add_argument("--others", default=OTHERS, help=f"further runs ({OTHERS})")
    parser.add_argument("--workers", default="0", help="processes of pytest-xdist")
    parser.add_argument("tests", nargs="*", default=TESTS, help="files and folders")
    options = parser.parse_args(arguments)
    unknown = set(options.others.split()) - set(OTHERS.split())
    if unknown:
        parser.error(f"--others knows {OTHERS!r}; got {' '.join(sorted(unknown))!r}")
    outcome: dict[str, str] = {}
    for name, environment in variants(options.coretypes.split(), options.others.split()).items():
        if isinstance(environment, str):
            outcome[name] = environment
            continue
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-n", options.workers, *options.tests]
        code = subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode
        outcome[name] = "passed" if code == 0 else f"FAILED (exit code {code})"
    for name, said in outcome.items():
        print(f"{name}: {said}")
    # Nothing tried is no success either.
    return int("passed" not in outcome.values() or any("FAILED" in x for x in outcome.values()))


if __name__ == "__main__":
    sys.exit(main())

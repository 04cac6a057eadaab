"""Settings shared by all tests: a plotting backend without a display, Hypothesis profiles."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")  # before anything imports matplotlib

from hypothesis import HealthCheck, settings

# The first example pays for compilation, so deadlines and "too slow" say nothing about the code.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **_common)
settings.register_profile("ci", derandomize=True, **_common)
# Interpreted kernels are some hundred times slower: enough examples to visit every line.
settings.register_profile("interpreted", derandomize=True, max_examples=15, **_common)

if os.environ.get("NUMBA_DISABLE_JIT", "0") == "1":
    settings.load_profile("interpreted")
elif os.environ.get("CI"):
    settings.load_profile("ci")
else:
    settings.load_profile("local")

"""Settings shared by all tests: a plotting backend without a display, Hypothesis profiles."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")  # before anything imports matplotlib

from hypothesis import HealthCheck, settings

# The first example pays for compilation, so deadlines and "too slow" say nothing about the code.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# The suite tries the same examples on every machine: a failure is a change of the code, never luck.
settings.register_profile("same", derandomize=True, **_common)
# Interpreted kernels are some hundred times slower: enough examples to visit every line.
settings.register_profile("interpreted", derandomize=True, max_examples=15, **_common)
# Looking for failures (`make fuzz`): other examples each time, and more of them. A test that sets
# max_examples itself keeps its number.
settings.register_profile("fuzz", max_examples=1000, print_blob=True, **_common)

if os.environ.get("NUMBA_DISABLE_JIT", "0") == "1":
    settings.load_profile("interpreted")
elif os.environ.get("STRUCTOT_FUZZ", "0") not in ("", "0"):
    settings.load_profile("fuzz")
else:
    settings.load_profile("same")

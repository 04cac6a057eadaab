# Every target creates what it needs; nothing is reinstalled unless pyproject.toml or
# constraints.txt changed since the last installation.
PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-portable lint bench fuzz clean
.DEFAULT_GOAL := test

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing structot with its extras into $(VENV)"
	@$(INSTALL) -e '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing structot (dev) into $(VENV)"
	@$(INSTALL) -e '.[dev]'
	@touch $@

demo: $(VENV)/.run
	$(VENV)/bin/structot demo --out demo --force

# Compiled code is invisible to coverage: the kernel tests run once more, interpreted.
# One BLAS thread per worker, so that the workers do not compete for the cores.
test: export OPENBLAS_NUM_THREADS = 1
test: export OMP_NUM_THREADS = 1
test: $(VENV)/.dev
	$(PY) -m pytest -n $(WORKERS) --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest -n $(WORKERS) -m kernels --cov --cov-append --cov-report=
	$(PY) -m coverage report --fail-under=90

# The numerical tests as other machines run them: other BLAS kernels, a processor without
# extensions, costs moved by one ulp; `make test-portable CORETYPES="Prescott Haswell" OTHERS=ulp`.
CORETYPES ?= Prescott Haswell SkylakeX Zen
OTHERS ?= generic ulp
test-portable: $(VENV)/.dev
	$(PY) tests/portable.py --workers $(WORKERS) --coretypes "$(CORETYPES)" --others "$(OTHERS)"

lint: $(VENV)/.dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

bench: $(VENV)/.dev
	$(PY) -m benchmarks.run

# Random problems, N of them from number SEED on; a report in build/fuzz, failures as one-liners.
N ?= 1000
SEED ?= 0
# Then the property tests with examples that no other run has drawn.
fuzz: $(VENV)/.dev
	PYTHONPATH=tests $(PY) -m fuzz.run --n $(N) --start $(SEED) --workers $(WORKERS)
	STRUCTOT_FUZZ=1 $(PY) -m pytest -q -n $(WORKERS) tests/blocks tests/submodular tests/transport \
		tests/test_concave.py tests/test_certificate.py

clean:
	rm -rf $(VENV) build demo dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Every target creates what it needs; nothing is reinstalled unless pyproject.toml or
# constraints.txt changed since the last installation.
PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-torch test-portable lint bench fuzz docs dist clean
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

$(VENV)/.docs: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing structot (docs) into $(VENV)"
	@$(INSTALL) -e '.[docs]'
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
	$(PY) -m coverage report --fail-under=90 $$($(WITHOUT_TORCH))

# Tensors need PyTorch, which is large: `make test` skips their tests where it is not installed (and
# does not count their lines), `make test-torch` installs it and runs them.
WITHOUT_TORCH = $(PY) -c "import importlib.util as u; u.find_spec('torch') or print('--omit=*/structot/torch/*')"

$(VENV)/.torch: $(VENV)/.dev
	@$(INSTALL) -e '.[dev,torch]'
	@touch $@

test-torch: export OPENBLAS_NUM_THREADS = 1
test-torch: export OMP_NUM_THREADS = 1
test-torch: $(VENV)/.torch
	$(PY) -m pytest -n $(WORKERS) tests/tensors

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

# The site, into docs/_build/html, all of it anew, so that every picture is made by this code:
# warnings are errors, no internal link may be dead.
docs: export OPENBLAS_NUM_THREADS = 1
docs: $(VENV)/.docs
	rm -rf docs/_build docs/api docs/gallery docs/start
	$(PY) -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(PY) docs/check_links.py docs/_build/html
	@echo "open docs/_build/html/index.html"

# Wheel and sdist into dist/, their metadata checked, and the first example of the README run with
# the wheel in an environment that holds nothing else.
TOOLS := build/dist-tools
EMPTY := build/dist-empty
dist:
	rm -rf dist $(TOOLS) $(EMPTY)
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build twine
	$(TOOLS)/bin/python -m build --outdir dist .
	$(TOOLS)/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv $(EMPTY)
	$(EMPTY)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		"$$(echo dist/*.whl)[plot]"
	$(EMPTY)/bin/python tests/readme_example.py README.md

clean:
	rm -rf $(VENV) build demo dist docs/_build docs/api docs/gallery docs/start .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

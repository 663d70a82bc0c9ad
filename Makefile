# The commands of the project. All paths are relative, so that a folder with spaces in its name works.
#
# Everything lives in one virtual environment, .venv. The package is installed there in editable
# form: a changed Python file counts at once, a changed C++ file, CMakeLists.txt or pyproject.toml
# builds again (incrementally, in build/). Stamp files in .venv remember what has been done.

PYTHON ?= python3

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

venv := .venv
bench := .venv-bench
python := $(venv)/bin/python
pip := $(python) -m pip --disable-pip-version-check
core := CMakeLists.txt pyproject.toml $(wildcard src/separatrix/_hot/*)

# A virtual environment holds its own absolute path: one that came along in a copied or moved
# folder still points at the old place and is made anew.
ifneq ($(shell cat $(venv)/.made 2>/dev/null),$(CURDIR))
.PHONY: $(venv)/.made
endif
ifneq ($(shell cat $(bench)/.made 2>/dev/null),$(CURDIR))
.PHONY: $(bench)/.made
endif

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

$(venv)/.made:
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "separatrix needs Python 3.11 or later; '$(PYTHON)' is $$('$(PYTHON)' --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@rm -rf $(venv)
	@'$(PYTHON)' -m venv $(venv) || { rm -rf $(venv); \
	  echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@printf '%s' '$(subst ','\'',$(CURDIR))' > $@

# The build tools stay in the environment (no build isolation), so that a second build finds the
# same headers and compiles only what has changed.
$(venv)/.tools: $(venv)/.made pyproject.toml
	$(pip) install --quiet 'scikit-build-core>=0.10' 'nanobind>=2.4' cmake ninja
	@touch $@

$(venv)/.package: $(venv)/.tools $(core)
	$(pip) install --quiet --no-build-isolation --editable '.[plot]'
	@touch $@

$(venv)/.test: $(venv)/.package
	$(pip) install --quiet --no-build-isolation --editable '.[test]'
	@touch $@

.PHONY: setup
setup: $(venv)/.test  ## environment, package and test tools, without running anything

.PHONY: demo
demo: $(venv)/.package  ## fit the bundled banknotes, print scores and certificate, draw the boundary
	@mkdir -p demo
	@sh scripts/demo.sh $(venv)/bin/separatrix demo

.PHONY: test
test: lint types  ## lint, types and all tests
	$(python) -m pytest -n auto $(PYTEST_ARGS)

.PHONY: lint
lint: $(venv)/.test  ## ruff and the import contracts
	$(python) -m ruff check .
	$(python) -m ruff format --check --quiet .
	$(venv)/bin/lint-imports --no-logo

.PHONY: types
types: $(venv)/.test  ## mypy, strict
	$(python) -m mypy

# The peers live in an environment of their own: what they bring along touches nothing else. Not every
# machine can install each of them; without one the other comparisons still run.
peers := scikit-learn-intelex libsvm-official liblinear-official skglm faiss-cpu

$(bench)/.made:
	@rm -rf $(bench)
	@'$(PYTHON)' -m venv $(bench)
	$(bench)/bin/python -m pip --disable-pip-version-check install --quiet 'scikit-build-core>=0.10' \
	  'nanobind>=2.4' cmake ninja
	@for peer in $(peers); do \
	  $(bench)/bin/python -m pip --disable-pip-version-check install --quiet "$$peer" || \
	  echo "$$peer cannot be installed here; the benchmarks leave it out." >&2; done
	@printf '%s' '$(subst ','\'',$(CURDIR))' > $@

$(bench)/.package: $(bench)/.made $(core) $(shell find src -name "*.py")
	$(bench)/bin/python -m pip --disable-pip-version-check install --quiet --no-build-isolation \
	  --config-settings=build-dir='build/bench-{wheel_tag}' '.[plot]'
	@touch $@

.PHONY: bench
bench: $(bench)/.package  ## speed against the peers, as ratios in one run
	$(bench)/bin/python -m benchmarks $(BENCH_ARGS)

.PHONY: floor
floor: $(venv)/.package  ## instructions of each hot loop against the kept counts; FLOOR_ARGS=--update keeps new ones
	$(python) -m benchmarks.floor $(FLOOR_ARGS)

.PHONY: docs
docs: $(venv)/.test  ## the site of documentation in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --quiet --strict
	@echo build/site/index.html

.PHONY: wheel
wheel: $(venv)/.tools  ## a wheel in dist/
	$(pip) wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

.PHONY: clean
clean:  ## remove everything that make made
	rm -rf $(venv) $(bench) build demo dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -type d -name __pycache__ -exec rm -rf {} +

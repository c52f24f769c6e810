# Each command sets up what it needs in .venv: a machine with make and Python 3.11 or newer is enough.
# To choose the interpreter the first time: make setup PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: help setup demo test lint bench-rates bench-engine bench-defaults bench-certified clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## create .venv and install Pommel in it, editable, with all that the other commands need

demo: $(READY) ## show what Pommel does, in under a minute
	@$(BIN)/pommel demo

test: lint ## lint, then run the tests
	$(BIN)/python -m pytest -n 2

lint: $(READY) ## check formatting, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench-rates: $(READY) ## measure convergence rates and print them beside the theory's
	@$(BIN)/python benchmarks/rates.py

bench-engine: $(READY) ## measure price, growth, start and memory of compiled steps; OPTIONS="--quick --only price,start"
	@$(BIN)/python -m benchmarks.engine $(OPTIONS)

bench-defaults: $(READY) ## measure how good the default parameters are, beside the best steps of a grid; OPTIONS=--quick
	@$(BIN)/python -m benchmarks.defaults $(OPTIONS)

bench-certified: $(READY) ## measure times to certified gaps beside those of peers, under an hour; OPTIONS=--quick
	@$(BIN)/python -m benchmarks.certified $(OPTIONS)

clean: ## remove .venv, caches and build products
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Up to date as long as pyproject.toml is older. A .venv that cannot run pip, or has too old a Python, is made anew.
$(READY): pyproject.toml
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Pommel needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)" >&2; \
	    echo "Name another one like this: make setup PYTHON=python3.12" >&2; exit 1; }; \
	  $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "'$(PYTHON)' cannot create virtual environments: its modules venv and ensurepip are missing." >&2; \
	    echo "On Debian and Ubuntu they are in the package python3-venv." >&2; exit 1; }; \
	  $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing Pommel and its tools in $(VENV): about half a minute the first time ..."
	@$(PIP) install 'pip>=25.1'
	@$(PIP) install --editable '.[cli,plot]' --group test --group lint --group bench
	@touch $@

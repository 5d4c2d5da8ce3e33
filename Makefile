# Needs Python 3.11 or newer and make; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.DEFAULT_GOAL := help
.PHONY: help setup demo test cover check bench mutate screenshots clean

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Create .venv with all that the other targets need.

$(STAMP): pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'keepfor needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)  ## Expire a sandbox ledger of 120 days, and show each step.
	$(BIN)/keepfor demo

test: $(STAMP)  ## Run the tests, but the long ones and those of the documentation.
	$(BIN)/python -m pytest -n 2 -m 'not long' --ignore=tests/docs

cover: $(STAMP)  ## Run the long ones as well, with coverage, which takes twice as long.
	$(BIN)/python -m pytest -n 2 --cov --ignore=tests/docs

check: $(STAMP)  ## Lint, types, layers, and what the documentation says.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q -n 2 tests/docs

bench: $(STAMP)  ## Print how much faster keepfor is than the straightforward way.
	$(BIN)/python -m benchmarks

mutate: $(STAMP)  ## Break policy/ in many small ways and see that a test notices each.
	$(BIN)/python tests/mutation/run.py

screenshots: $(STAMP)  ## Take the pictures of the dashboard in docs/images anew; needs chromium.
	$(BIN)/python -m tests.docs.screenshots

clean:  ## Remove .venv and what tools left behind.
	rm -rf $(VENV) .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

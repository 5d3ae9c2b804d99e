# One command each: `make demo`, `make test`. Both set up .venv with pinned versions first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint install clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mnemon needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plots,torch,bench,ray,dev]'
	touch $@

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/mnemon demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# In parts: a process that has compiled some hundreds of programs runs out of memory mappings, and XLA crashes.
# Programs that one part has compiled are read by the next.
CACHE := $(VENV)/compiled-by-tests
PYTEST := MNEMON_TEST_CACHE=$(CURDIR)/$(CACHE) $(BIN)/pytest -n 2 --dist worksteal

test: lint
	rm -rf $(CACHE)
	$(PYTEST) tests/cells tests/conformance
	$(PYTEST) tests/data tests/experiments tests/lens tests/lifelong
	$(PYTEST) tests/memory tests/report tests/tasks tests/bench tests/training tests/test_*.py
	$(PYTEST) mnemon

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache

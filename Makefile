# One command each: `make demo`, `make docs`, `make test`. They set up .venv with pinned versions first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo docs test tests lint install clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mnemon needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[plots,torch,bench,ray,docs,dev]'
	touch $@

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/mnemon demo

# The documentation as a site, site/index.html; strict: a link that leads nowhere is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo $(CURDIR)/site/index.html

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Programs that one process has compiled are read by the other.
CACHE := $(VENV)/compiled-by-tests

# Reading the code and running it go side by side; either can fail it.
test: $(STAMP)
	$(MAKE) --no-print-directory --jobs 2 --keep-going lint tests

tests: $(STAMP)
	rm -rf $(CACHE)
	MNEMON_TEST_CACHE=$(CURDIR)/$(CACHE) $(BIN)/pytest -n 2 --dist worksteal --durations=25 tests mnemon

clean:
	rm -rf $(VENV) site .pytest_cache .ruff_cache

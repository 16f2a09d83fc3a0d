# Every target sets itself up in .venv and is safe to run again.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs readme bench ci clean

help:            ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

# The stamp is written last, so a set-up that was cut short starts again.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)   ## train on bundled data, print the uncertainties, write pictures and a report
	$(BIN)/evidentia demo

test: $(READY)   ## the whole test suite with doctests and coverage; pages are opened if there is a Chromium
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term:skip-covered

lint: $(READY)   ## ruff, mypy and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)   ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

readme: $(READY) ## write the tables of README and documentation anew from results/
	$(BIN)/python -m evidentia.experiments.result_tables results README.md docs/results.md docs/guides/semisup.md

bench: $(READY)  ## speed and memory as ratios against named references
	$(BIN)/python benchmarks/opinions.py
	$(BIN)/python benchmarks/graphs.py
	$(BIN)/python benchmarks/semisup.py
	$(BIN)/python benchmarks/events.py

ci: test lint docs  ## what the continuous integration runs

clean:           ## remove everything that the other targets made
	rm -rf $(VENV) site evidentia-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*

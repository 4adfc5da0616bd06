# Every target makes what it needs; `make demo` and `make test` work on a fresh machine with Python only.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A CPU build of torch where the index has one, before anything else asks for torch.
TORCH ?= torch==2.13.0

.PHONY: help demo test lint format types docs bench wheel ci clean

help:
	@echo "make demo    install, train seven uncertainty methods on real terrain, log and compare them in MLflow"
	@echo "make test    install, run the tests"
	@echo "make lint    ruff and mypy"
	@echo "make bench   measure speed and memory beside other libraries"
	@echo "make docs    write the generated pages of docs/"
	@echo "make wheel   build dist/*.whl"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet '$(TORCH)' || $(BIN)/python -m pip install --quiet torch
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	$(BIN)/python -m pip install --quiet --editable examples/third_party_backend --editable examples/third_party_metric
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/uq-tracking demo

test: $(VENV)/.test
	$(BIN)/python tests/browser.py
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.test
	$(BIN)/python docs/generate.py

bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

wheel: $(VENV)/.test
	rm -rf dist
	$(BIN)/python -m build --wheel --quiet

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache

# Every target makes what it needs; `make demo` and `make test` work on a fresh machine with Python only.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet
# uv installs in a third of pip's time; compiled at once, since tests turn warnings of a later compilation into errors.
INSTALL := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python
# A CPU build of torch where pip's index has one, before anything else asks for torch.
TORCH ?= torch==2.13.0
# The lowest versions: which Python, which parts of the smoke test, what else to install. The lowest torch brings gigabytes
# of CUDA, so it is left to those who ask: make test-lowest LOWEST_WITH=torch==2.3.0 LOWEST_PARTS=torch
LOWEST ?= .venv-lowest
LOWEST_PYTHON ?= $(PYTHON)
LOWEST_WITH ?=
LOWEST_PARTS ?= folder mlflow evaluator wandb tensorboard dask files cli demo

files_of = $(shell grep --recursive --files-with-matches --include='test_*.py' 'mark.$(1)' tests examples/third_party_form)

.PHONY: help demo test test-slow test-faults test-papers test-engines test-frameworks simulate test-lowest lint format docs pages bench bench-full faults wheel ci clean

help:
	@echo "make demo    install, train seven uncertainty methods on real terrain, log and compare them in MLflow"
	@echo "make test    install, run the tests"
	@echo "make test-slow    run the tests that take a third of a second or more; .ci/run runs a fortieth of these a day, as SHARE=2/40 does"
	@echo "make test-faults    kill jobs, break servers and disks, log from several processes at once"
	@echo "make test-papers    test the reproduction of the papers, a distribution of its own in examples/"
	@echo "make test-engines    test Spark and Ray, and trackers that are too heavy for make test; needs Java 17"
	@echo "make test-frameworks    test the recipes of docs/recipes.md: Hugging Face, Keras, Optuna, Hydra ..."
	@echo "make test-lowest    try every tracker with the lowest versions of all dependencies"
	@echo "make lint    ruff and mypy"
	@echo "make simulate    count how often verdicts, floors and intervals are wrong, and write the tables of docs/evidence.md;"
	@echo "                 with SHORT=1 only what must hold, in some minutes"
	@echo "make bench   measure speed and memory beside other libraries, in ten minutes"
	@echo "make bench-full    the largest sizes too"
	@echo "make faults  fail every tracker on purpose, and measure what a training job notices"
	@echo "make docs    run the Python of every page, build the site in docs/_build; warnings are errors"
	@echo "make pages   write the generated pages and pictures of docs/"
	@echo "make wheel   build dist/*.tar.gz, and dist/*.whl from it"

$(BIN)/uv:
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'uv>=0.5'

$(VENV)/.demo: pyproject.toml | $(BIN)/uv
	$(INSTALL) --editable '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/uv
	$(PIP) '$(TORCH)' || $(PIP) torch
	$(INSTALL) --editable '.[test]' --editable examples/third_party_backend --editable examples/third_party_metric \
	    --editable examples/third_party_form --editable examples/papers
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/uq-tracking demo

# Three workers for two cores, since many tests wait for servers; each computes on one thread. Compiled files are kept
# even where the environment says otherwise: hundreds of tests start a process.
test test-slow test-faults test-papers test-engines test-frameworks simulate docs: export OMP_NUM_THREADS = 1
test test-slow test-faults test-papers test-engines test-frameworks simulate docs: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.test
	$(BIN)/python tests/browser.py
	$(BIN)/python -m pytest -n 3 --dist worksteal

# Only the files that hold such tests: the others would be imported in vain.
test-slow: $(VENV)/.test
	$(BIN)/python tests/browser.py
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow $(call files_of,slow)

test-faults: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m faults $(call files_of,faults)

test-papers: $(VENV)/.test
	$(BIN)/python -m pytest --quiet examples/papers

test-engines: $(VENV)/.test
	@java -version 2>/dev/null || { echo "Spark needs Java: apt-get install -y openjdk-17-jre-headless"; exit 1; }
	$(INSTALL) --editable '.[engines]'
	$(BIN)/python -m pytest -m engines tests

test-frameworks: $(VENV)/.test
	$(INSTALL) --editable '.[frameworks]'
	$(BIN)/python -m pytest -m frameworks tests

simulate: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m simulation $(call files_of,simulation)
ifndef SHORT
	$(INSTALL) --editable '.[bench]'
	$(BIN)/python benchmarks/intervals.py
endif

test-lowest: | $(BIN)/uv
	$(BIN)/uv venv --quiet --clear --python $(LOWEST_PYTHON) $(LOWEST)
	$(BIN)/uv pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --only-binary :all: pyproject.toml \
	    --extra mlflow --extra wandb --extra tensorboard --extra dask --extra files --extra demo -o $(LOWEST)/versions.txt
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python -r $(LOWEST)/versions.txt $(LOWEST_WITH)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps .
	$(LOWEST)/bin/python tests/smoke.py $(LOWEST_PARTS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.docs: $(VENV)/.test
	$(INSTALL) --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m pytest --quiet -m documents tests/docs
	@rm -rf docs/api docs/_build
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build
	@echo "open docs/_build/index.html"

pages: $(VENV)/.test
	$(BIN)/python docs/generate.py

bench: $(VENV)/.test
	$(INSTALL) --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

bench-full: $(VENV)/.test
	$(INSTALL) --editable '.[bench]'
	$(BIN)/python benchmarks/run.py --full

faults: $(VENV)/.test
	$(INSTALL) --editable '.[bench]'
	$(BIN)/python benchmarks/faults.py
	$(BIN)/python benchmarks/restarts.py
	$(BIN)/python benchmarks/soak.py

wheel: $(VENV)/.test
	rm -rf dist
	$(BIN)/python -m build --quiet

clean:
	rm -rf $(VENV) $(LOWEST) dist build docs/_build docs/api docs/gallery .mypy_cache .ruff_cache .pytest_cache

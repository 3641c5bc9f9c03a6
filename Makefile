# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup browser demo lint typecheck format test coverage test-gpu test-all bench results \
	peers independent models docs clean

setup: $(STAMP)

# The product and the laboratory (lab/), which depends on it.
$(STAMP): pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("optirank needs Python 3.11 or newer; this is %s: run make PYTHON=/path/to/python3.11" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,test,docs]' --editable lab
	touch $@

# Pages are tested in headless Chromium; where there is none, those tests skip. This installs it,
# as root where there is apt; no other target changes the system.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	     && { apt-get install -y -qq chromium >/dev/null 2>&1 \
	          || { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1; }; } \
	|| echo "no Chromium here, and none can be installed: tests of pages will skip"

# The product's demonstration, then the paper's synthetic experiment by the laboratory.
demo: setup
	$(BIN)/optirank demo
	$(BIN)/optirank-lab simulate --repeats 1 --sweeps none --out optirank-demo/synthetic

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Basic mode, src and lab/src alone: [tool.basedpyright] of pyproject.toml.
typecheck: setup
	$(BIN)/basedpyright

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A file's tests stay in one process, which keeps what they share. A worker that dies ends the run,
# with the name of its test.
FAST_TESTS := $(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0 \
	-m "not slow and not timing"

test: lint typecheck
	$(FAST_TESTS)

# The share of lines and branches that the fast tests run; below fail_under of pyproject.toml it fails.
coverage: setup
	$(FAST_TESTS) --cov --cov-report term

# Fits on a GPU, with the Python of the machine that has one (CuPy and pytest installed there).
test-gpu:
	PYTHONPATH=src:lab/src $(PYTHON) -m pytest -q -m gpu lab/tests/device

test-all: lint
	$(BIN)/python -m pytest

bench: setup
	$(BIN)/python benchmarks/run.py

# The competing tools, each in an environment of its own in .peers, from PyPI with pinned versions.
peers: setup
	$(BIN)/python benchmarks/make_peers.py

# Every study again, into results/, then the tables of the pages and the figure: see CONTRIBUTING.
# QUICK=1: a part of each, into a temporary folder. DATA=DIR: a folder of sets. Rows of competing
# tools are kept; TOOLS=1 runs them again where make peers installed them.
results: setup
	$(BIN)/python benchmarks/make_results.py $(if $(QUICK),--quick) $(if $(TOOLS),--tools) $(if $(DATA),--data $(DATA))

# Sets that no choice was made on, into results/independent.csv and docs/comparison.md. DATA=DIR: a
# folder of .h5ad sets; PAIRS=FILE: the CSV of pairs (DIR/pairs.csv by default). It needs the tools of
# make peers (WITHOUT_TOOLS=1: without them). OUT=DIR: a trial, which the page does not show.
independent: setup
	@test -n "$(DATA)" || { echo "name the folder of sets: make independent DATA=DIR"; exit 1; }
	$(BIN)/python benchmarks/independent.py --data $(DATA) $(if $(PAIRS),--pairs $(PAIRS)) $(if $(OUT),--out $(OUT)) $(if $(WITHOUT_TOOLS),--without-tools)

# The models that come with optirank, into src/optirank/models, and their figures into
# results/models.csv. DATA=DIR: a folder of sets (optirank-lab datasets fetch stand-ins --data DIR).
models: setup
	$(BIN)/python benchmarks/make_models.py $(if $(DATA),--data $(DATA))

# The pages are in docs/_build/html, index.html first; a warning is an error.
docs: setup
	$(BIN)/python -m sphinx -E -W --keep-going -n -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache .hypothesis .coverage

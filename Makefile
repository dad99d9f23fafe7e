# Everything here sets up what it needs: on a fresh machine with Python 3.10+, `make demo` is enough.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# An option of the test suite, e.g. `make test PYTEST="-k regex -x"`
PYTEST ?=
# Files of tests side by side; `make test JOBS=0` runs them in this process, for a debugger
JOBS   ?= auto
# Where the public data of the benchmark lies, if it is there
DATA   ?= ../shared/data

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench gpu suite warmup clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(VENV)/.dev  ## everything for work on constrain, in .venv

demo: $(VENV)/.warm  ## the main job: a schema in, a real model's answer in exactly that form out
	@$(BIN)/constrain demo

test: $(VENV)/.dev $(VENV)/.warm  ## the test suite
	@$(BIN)/python -m pytest -n $(JOBS) --maxprocesses 4 --dist loadfile $(PYTEST)

lint: $(VENV)/.dev  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.dev  ## rewrite the files as `make lint` wants them
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .

# What masks cost on the CPU, a file a question; about 25 minutes where nothing else runs. One alone: make bench BENCH=scaling
CASES      := --data $(DATA)/maskbench-dev.jsonl.gz
VOCABULARY := --vocabulary $(DATA)/llama3.tiktoken
BENCH      ?= maskbench repeated vocabulary memory start batches apply_masks scaling instructions slowest
maskbench   = $(CASES) $(VOCABULARY) --sample 1000 --engines constrain,constrain-any,llguidance,xgrammar \
              --warm-only xgrammar
repeated    = $(CASES) $(VOCABULARY)
vocabulary  = $(VOCABULARY)
memory      = $(CASES) $(VOCABULARY)
start       = $(VOCABULARY)
batches     = $(CASES) $(VOCABULARY)
apply_masks = $(VOCABULARY)
scaling     = $(VOCABULARY)
instructions = $(VOCABULARY)
slowest     = $(CASES) $(VOCABULARY)

bench: $(VENV)/.bench $(VENV)/.warm  ## what masks cost, beside the peers: all of it, under 30 minutes (DATA=folder of the data)
	@for name in $(BENCH); do $(MAKE) --no-print-directory bench-$$name || exit 1; done

bench-%: $(VENV)/.bench $(VENV)/.warm
	@echo "make: python -m bench.$* $($*)"
	@$(BIN)/python -m bench.$* $($*)

gpu: $(VENV)/.gpu $(VENV)/.warm  ## what runs on an NVIDIA card: its tests on the card, then bench/gpu (DATA=folder of the data)
	@$(BIN)/python -m pytest -rs tests/gpu tests/test_cuda.py $(PYTEST)
	@$(BIN)/python -m bench.gpu --vocabulary $(DATA)/llama3.tiktoken

suite: $(VENV)/.dev $(VENV)/.warm  ## the official JSON Schema test suite, all drafts (DATA=folder of the data)
	@$(BIN)/python -m bench.schema_suite $(DATA)/json-schema-test-suite.tar.gz --list

warmup: $(VENV)/.warm  ## compile the kernels ahead (seconds; kept on disk)

clean:  ## forget everything that was made, the .venv included
	rm -rf $(VENV) build dist *.egg-info bench/tmp .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- set-up: one stamp a set of packages, made again when the files that say what to install change ----

$(BIN)/python:
	@echo "make: 1/3 a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else \
		"constrain needs Python 3.10 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "make: 2/3 packages (the first time this fetches torch and takes minutes)"
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[transformers,types,validate,infer]"
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "make: packages for tests and lint"
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[dev]"
	@touch $@

$(VENV)/.bench: $(VENV)/.run
	@echo "make: packages of the peers that the benchmark runs beside us"
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[bench]"
	@touch $@

$(VENV)/.gpu: $(VENV)/.dev $(VENV)/.bench
	@echo "make: numba's CUDA target, with NVIDIA's compiler"
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[cuda]"
	@touch $@

$(VENV)/.warm: $(VENV)/.run $(wildcard constrain/kernels/*.py)
	@echo "make: 3/3 compiling the kernels (once)"
	@$(BIN)/constrain warmup
	@touch $@

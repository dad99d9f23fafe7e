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
# Hours of `make fuzz`, its targets side by side, mutants of `make mutate`
HOURS  ?= 1
FUZZERS ?= 2
SAMPLE ?= 500
# LOCKED=1 installs what requirements/ci.txt and torch.txt name, each file checked against its hash, and nothing else
LOCKED ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lint format bench serve-bench decoding plugins gpu suite fuzz jobs hostile clients playground-tests mutate docs sbom audit lock kernels kernels-check release warmup clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(VENV)/.dev  ## everything for work on constrain, in .venv

demo: $(VENV)/.warm  ## the main job: a schema in, a real model's answer in exactly that form out
	@$(BIN)/constrain demo

# Bytecode is kept: workers and the processes that tests start would each compile all of it again.
SUITE := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --maxprocesses 4 --dist loadfile

test: $(VENV)/.dev $(VENV)/.warm  ## the test suite, without the tests that take longest
	@$(SUITE) -m "not slow" $(PYTEST)

test-slow: $(VENV)/.dev $(VENV)/.warm  ## the tests that take longest: simulated cards, long texts, killed jobs, processes
	@$(SUITE) -m slow $(PYTEST)

lint: $(VENV)/.dev  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.dev  ## rewrite the files as `make lint` wants them
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .

# What masks cost on the CPU, one bench per question (python -m bench lists them all); about 25 minutes where nothing else runs. One alone: make bench BENCH=scaling
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
	@echo "make: python -m bench $* $($*)"
	@$(BIN)/python -m bench $* $($*)

decoding: $(VENV)/.bench $(VENV)/.warm  ## what a constraint costs in generation, and what forced text and drafts save, beside the peers: about 20 minutes
	@$(BIN)/python -m bench decoding $(CASES) $(VOCABULARY)

# Engines of `make plugins`, each in an environment of its own; llama.cpp is compiled, which takes 5 to 30 minutes
ENGINES ?= transformers mlx llama vllm sglang

plugins:  ## the plug-ins inside the engines: their tests, then 500 schemas (ENGINES="mlx llama"; minutes to install each)
	@for name in $(ENGINES); do $(MAKE) --no-print-directory plugins-$$name || exit 1; done

plugins-%: $(VENV)/plugins-%/.installed
	@echo "make: the plug-in for $*"
	@$(VENV)/plugins-$*/bin/python -m pytest -rs tests/plugins $(PYTEST)
	@if [ -f $(DATA)/maskbench-dev.jsonl.gz ]; then $(VENV)/plugins-$*/bin/python -m bench plugins --engines $* $(CASES) --sample $(SAMPLE); fi

$(VENV)/plugins-%/.installed: requirements/plugins/%.txt pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(VENV)/plugins-$*
	@$(VENV)/plugins-$*/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt -r requirements/plugins/$*.txt
	@if [ -f requirements/plugins/$*-no-deps.txt ]; then $(VENV)/plugins-$*/bin/python -m pip install --disable-pip-version-check -q --no-deps -r requirements/plugins/$*-no-deps.txt; fi
	@$(VENV)/plugins-$*/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[validate]" pytest hypothesis
	@touch $@

.SECONDARY:

serve-bench: $(VENV)/.bench $(VENV)/.warm  ## the server under load for five minutes: 64 clients, 200 schemas (SERVE_SECONDS=60 for less; DATA=folder of the data)
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[serve]"
	@$(BIN)/python -m bench serve --data $(DATA)/maskbench-dev.jsonl.gz --seconds $(or $(SERVE_SECONDS),300)

gpu: $(VENV)/.gpu $(VENV)/.warm  ## what runs on an NVIDIA card: its tests on the card, then bench/gpu (DATA=folder of the data)
	@$(BIN)/python -m pytest -rs tests/gpu tests/kernels/test_cuda.py $(PYTEST)
	@$(BIN)/python -m bench gpu --vocabulary $(DATA)/llama3.tiktoken

suite: $(VENV)/.dev $(VENV)/.warm  ## the official JSON Schema test suite, all drafts (DATA=folder of the data)
	@$(BIN)/python -m bench schema_suite $(DATA)/json-schema-test-suite.tar.gz --list

fuzz: $(VENV)/.fuzz $(VENV)/.warm  ## fuzz all targets, an hour in all, two side by side (HOURS=0.1); findings in fuzz/findings, exit code 1 if there are any
	@$(BIN)/python -m fuzz --all --hours $(HOURS) --jobs $(FUZZERS) --seed $(or $(SEED),0)

jobs: $(VENV)/.bench $(VENV)/.warm  ## jobs over 2,000 rows, with kills, in one process and on Ray: exactly once, identical (some ten minutes)
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[ray]"
	@$(BIN)/python -m bench jobs

hostile: $(VENV)/.bench $(VENV)/.warm  ## hostile inputs through constrain and the peers, with verdicts
	@$(BIN)/python -m bench hostile

clients: $(VENV)/.dev $(VENV)/.warm  ## openai, instructor, pydantic-ai and litellm, each in an environment of its own, against a live server (needs the network)
	@$(BIN)/python -m tests.serving.clients.run_clients

playground-tests: $(VENV)/.dev $(VENV)/.warm $(VENV)/.browser  ## the playground in headless Chromium, every control, and axe-core (needs the network once)
	@$(BIN)/python -m pytest -rs tests/playground $(PYTEST)

mutate: $(VENV)/.dev $(VENV)/.warm  ## mutation testing: do the tests notice changes in kernels, shape algebra and samplers? (hours; SAMPLE=60)
	@$(BIN)/python -m mutate --sample $(SAMPLE) --seed $(or $(SEED),1) --jobs 2 --log mutate/last.log

# Material, then its successor Zensical, which reads the same mkdocs.yml
docs: $(VENV)/.docs  ## the docs as a site in build/site, built twice without a warning (Material, Zensical), links checked
	@NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --quiet --strict --site-dir build/site-material
	@$(BIN)/python -m bench pages.site_links build/site-material
	@$(VENV)/docs/bin/zensical build --strict --clean
	@$(BIN)/python -m bench pages.site_links build/site

sbom: $(VENV)/.dev  ## a software bill of materials, CycloneDX: dist/constrain.cdx.json
	@$(BIN)/python requirements/sbom.py dist/constrain.cdx.json

audit: $(VENV)/.tools  ## ask a vulnerability service about every package of the lock (needs the network)
	@$(VENV)/tools/bin/python requirements/audit.py

lock: $(VENV)/.tools  ## write requirements/ci.txt anew, with hashes
	@UV=$(VENV)/tools/bin/uv requirements/lock.sh

kernels: $(VENV)/.kernels  ## the libraries of compiled kernels that a wheel carries, for all targets (minutes)
	@$(VENV)/kernels/bin/python requirements/kernels.py

kernels-check: $(VENV)/.kernels  ## build them again and compare, byte for byte
	@$(VENV)/kernels/bin/python requirements/kernels.py --check

release: $(VENV)/.release kernels  ## sdist and wheel in dist/, tried in empty environments, and release notes; uploads nothing (USES=masks for the first alone)
	@$(VENV)/release/bin/python requirements/release.py $(if $(USES),--uses $(USES))

warmup: $(VENV)/.warm  ## compile the kernels ahead (half a minute; kept on disk)

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
ifeq ($(LOCKED),)
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[build,transformers,types,validate,infer]"
else
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements/ci.txt
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements/torch.txt
	@$(BIN)/python -m pip install --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
endif
	@touch $@

$(VENV)/.dev: $(VENV)/.run
ifeq ($(LOCKED),)
	@echo "make: packages for tests and lint"
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[dev]"
endif
	@touch $@

$(VENV)/.bench: $(VENV)/.run
	@echo "make: packages of the peers that the benchmark runs beside us"
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[bench]"
	@touch $@

$(VENV)/.fuzz: $(VENV)/.dev $(VENV)/.bench
	@echo "make: packages of the fuzz targets' judges (atheris where it installs; there is an engine in Python as well)"
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[fuzz]"
	@$(BIN)/python -m pip install --disable-pip-version-check -q atheris || true
	@touch $@

$(VENV)/.tools: | $(BIN)/python
	@echo "make: pip-audit and uv, in an environment of their own"
	@$(PYTHON) -m venv $(VENV)/tools
	@$(VENV)/tools/bin/python -m pip install --disable-pip-version-check -q "pip-audit>=2.7" "uv>=0.5"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.run
	@echo "make: the two builders of the docs, in an environment of their own"
	@$(PYTHON) -m venv $(VENV)/docs
	@$(VENV)/docs/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[docs]"
	@touch $@

$(VENV)/.kernels: requirements/kernels.txt pyproject.toml | $(BIN)/python
	@echo "make: numba, llvmlite and Zig, in an environment of their own (Zig is 100 MB)"
	@$(PYTHON) -m venv $(VENV)/kernels
	@$(VENV)/kernels/bin/python -m pip install --disable-pip-version-check -q -r requirements/kernels.txt -e .
	@touch $@

$(VENV)/.release:
	@echo "make: build and twine, in an environment of their own"
	@$(PYTHON) -m venv $(VENV)/release
	@$(VENV)/release/bin/python -m pip install --disable-pip-version-check -q "build>=1.2" "twine>=6"
	@touch $@

# Chromium comes from apt, where it is missing; playwright drives it and brings no browser of its own.
$(VENV)/.browser: | $(BIN)/python
	@echo "make: Chromium, playwright and axe-core"
	@for one in chromium chromium-browser google-chrome; do command -v $$one >/dev/null && exit 0; done; \
		{ apt-get update -qq && apt-get install -y -qq chromium; } || \
		{ echo "make: install Chromium, as root: apt-get install chromium"; exit 1; }
	@$(BIN)/python -m pip install --disable-pip-version-check -q "playwright>=1.50"
	@npm install --silent --no-fund --no-audit --prefix $(VENV)/axe "axe-core@^4.11"
	@touch $@

$(VENV)/.gpu: $(VENV)/.dev $(VENV)/.bench
	@echo "make: numba's CUDA target, with NVIDIA's compiler"
	@$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[cuda]"
	@touch $@

$(VENV)/.warm: $(VENV)/.run $(wildcard constrain/kernels/*.py constrain/kernels/jit/*.py)
	@echo "make: 3/3 compiling the kernels (once)"
	@$(BIN)/constrain warmup
	@touch $@

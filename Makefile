# Everything a fresh machine needs is Python 3.11 or newer, a C++ compiler (GCC 12 or Clang 15, or newer) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint sanitize bench results clean help

help:
	@echo "make demo      train a sparse HalfCheetah before your eyes (about two minutes after installation)"
	@echo "make test      everything that must hold: style, types, tests"
	@echo "make sanitize  the kernels' tests under the address and undefined-behaviour sanitizers"
	@echo "make bench     one update of ours against the dense matrix products and whichever peers are installed"
	@echo "make results   the report on the runs that are in results/"
	@echo "make clean     remove what these made"

demo: $(VENV)/.run
	$(BIN)/rewirl demo

test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

sanitize: $(VENV)/.dev
	bash tests/sanitize.sh $(BIN)/python

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/update.py

results: $(VENV)/.dev
	$(BIN)/rewirl report results/paper-td3 results/no-decay --out results/report --title "rewirl: the paper's comparison" --at 1000000
	$(BIN)/rewirl report results/paper-td3 results/no-decay --out results/report-300k --title "rewirl: the paper's comparison at 300k steps" --at 300000
	$(BIN)/rewirl report results/studies --out results/report-studies --title "rewirl: open choices" --at 300000

# What a user needs.
$(VENV)/.run: pyproject.toml CMakeLists.txt $(wildcard native/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	touch $@

# What the tests need besides. PyTorch first, alone and exactly this one: any other wish pulls gigabytes of CUDA.
$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --group test
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

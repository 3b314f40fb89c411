# Requirements: Python 3.11 or newer, a C++ compiler (GCC 12 or Clang 15, or newer) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint sanitize mutants fuzz bench results docs wheel clean help

help:
	@echo "make demo      train a sparse HalfCheetah (about two minutes after installation)"
	@echo "make test      check style and types and run all tests"
	@echo "make sanitize  run the kernel tests under the address and undefined-behaviour sanitizers"
	@echo "make mutants   show that the tests catch a list of deliberate faults (about five minutes)"
	@echo "make fuzz      try new inputs on every reader of untrusted files for ten minutes (SECONDS=600)"
	@echo "make bench     time one update against dense matrix products and the installed peer libraries"
	@echo "make results   build the reports on the runs in results/, in build/report"
	@echo "make docs      build the documentation site in site/"
	@echo "make wheel     build a manylinux wheel in dist/ that installs without a compiler"
	@echo "make clean     remove everything that these targets created"

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

mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants/run.py

SECONDS ?= 600
fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz/readers.py $(SECONDS)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/update.py

# The reports are built in build/; the pictures that pages show are kept.
results: $(VENV)/.dev
	$(BIN)/rewirl report results/paper-td3 results/lean-td3 results/search/no-decay --out build/report --title "rewirl: the paper's comparison" --at 1000000
	$(BIN)/rewirl report results/search/studies --out build/report-studies --title "rewirl: open choices" --at 300000
	cp build/report/figures/curves.png docs/images/curves.png
	cp build/report-studies/figures/curves-HalfCheetah-v5.png docs/images/studies.png

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The core chooses its kernels at run time, so that one wheel serves every x86-64 (or ARM64) processor.
wheel: $(VENV)/.wheel
	rm -rf dist/raw && env -u CFLAGS -u CXXFLAGS $(BIN)/python -m build --wheel --outdir dist/raw
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist dist/raw/*.whl
	rm -r dist/raw

# What a user needs.
$(VENV)/.run: pyproject.toml CMakeLists.txt $(wildcard native/* native/*/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	touch $@

# What the tests need as well. PyTorch first, alone and in exactly this version: any other requirement pulls gigabytes of CUDA.
$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --group test
	touch $@

$(VENV)/.docs $(VENV)/.wheel: $(VENV)/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group $*
	touch $@

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

# make demo, make test: each sets up .venv by itself. PYTHON=... chooses the interpreter, PYTEST_ARGS=... goes to pytest.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTEST_ARGS ?=
BIN := .venv/bin
#: .venv with what a run and its plots need, and with what developing needs
SMALL := .venv/.small
READY := .venv/.ready
GALLERY := out/gallery/.ready
STUDIES := out/studies/.ready

.PHONY: demo test test-all lint fuzz bench bench-own docs wheel pictures clean help

help:
	@echo "make demo      a closed linkage for ten seconds: energy, violation, speed, a picture in out/"
	@echo "make test      linter, type checker and tests; PYTEST_ARGS=... is passed on"
	@echo "make test-all  the same with the slow tests"
	@echo "make lint      linter and type checker"
	@echo "make fuzz      the fuzzers: SEED=1 TIME=600 (seconds); FUZZ_ARGS=... is passed on to tests/fuzz/run.py"
	@echo "make bench     ours against other simulators: out/bench.json and docs/benchmarks.md; BENCH_ARGS=--quick for a few problems"
	@echo "make bench-own what is compared with nothing but ourselves: costs by size, gradients, control loops, first starts"
	@echo "make docs      the documentation as a site in out/site, with the pages that the examples write"
	@echo "make wheel     a wheel in dist/ with compiled kernels: its first run does not wait; a checkout uses them too"
	@echo "make pictures  draw the pictures of the documentation anew, those of all studies too: half an hour"
	@echo "make clean     remove everything made but .venv"

demo: $(SMALL)
	$(BIN)/python examples/01_four_bar.py

test: lint
	$(BIN)/pytest -n 2 -m "not slow" $(PYTEST_ARGS)

test-all: lint
	$(BIN)/pytest -n 2 $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/pyright

fuzz: $(READY)
	$(BIN)/python tests/fuzz/run.py $(if $(SEED),--seed $(SEED)) --seconds $(or $(TIME),600) $(FUZZ_ARGS)

bench: $(READY)
	$(BIN)/pip install --quiet -e '.[bench]'
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

bench-own: $(READY)
	$(BIN)/pip install --quiet -e '.[bench]'
	set -e; for file in $(filter-out benchmarks/run.py benchmarks/__init__.py,$(wildcard benchmarks/*.py)); do echo "== $$file"; $(BIN)/python $$file; done

docs: $(GALLERY)
	$(BIN)/pip install --quiet -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open out/site/index.html, or run: $(BIN)/mkdocs serve"

wheel: $(READY)
	$(BIN)/python packaging/prebuild.py
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls -l dist

$(GALLERY): $(READY) $(wildcard examples/*.py)
	mkdir -p out/gallery
	set -e; for file in examples/*.py; do echo "== $$file"; (cd out/gallery && ../../$(BIN)/python ../../$$file); done
	@touch $@

$(STUDIES): $(READY) $(shell find src/dalembert/studies -name '*.py')
	$(BIN)/dalembert study --all --out out/studies
	@touch $@

pictures: $(GALLERY) $(STUDIES)
	set -e; for name in $$($(BIN)/dalembert study | cut -d' ' -f1); do cp out/studies/$$name.png docs/studies/; done
	set -e; for file in docs/images/*.png; do cp out/gallery/out/$$(basename $$file) $$file; done

$(SMALL): pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "dalembert needs Python 3.11 or newer and found none: install one, or name it with PYTHON=/path/to/python" >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "dalembert needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1)" >&2; exit 1; }
	@echo "installing into .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv || { \
		echo "could not make .venv: on Debian and Ubuntu, apt install python3-venv" >&2; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[plot]'
	@touch $(SMALL)

$(READY): $(SMALL)
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(READY)

clean:
	rm -rf out build dist src/dalembert/_kernels .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

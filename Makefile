# A thin front: every target is one script that can be run by hand. `make help` lists them.
PRESET ?= release
VENV_PYTHON := .venv/bin/python
.DEFAULT_GOAL := build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' Makefile

bootstrap: ## install what building needs (as root), or say what is missing
	@scripts/bootstrap.sh build

build: bootstrap ## build Penstock, its Python package and the examples
	@scripts/build.sh $(PRESET)
	@$(MAKE) --no-print-directory -s -C examples OUT=$(CURDIR)/build/$(PRESET)/examples

tests: bootstrap ## build Penstock and the layers' own tests, build/PRESET/LAYER_tests
	@scripts/build.sh $(PRESET) all layer_tests

demo: build ## three things Penstock does, measured live (under three minutes)
	@$(VENV_PYTHON) scripts/demo.py

check: ## every test of the quick tier
	@scripts/bootstrap.sh check
	@$(VENV_PYTHON) scripts/check.py quick

check-full: ## every test there is; picks up where it was stopped
	@scripts/bootstrap.sh full
	@$(VENV_PYTHON) scripts/check.py full

check-the-checks: ## faults sown into the engine: every one must turn a suite red
	@scripts/bootstrap.sh check
	@scripts/build.sh faulty all layer_tests
	@$(VENV_PYTHON) tests/check_the_checks.py

install: ## into PREFIX, without root: make install PREFIX=DIR (docs/install.md)
	@scripts/install.sh "$(PREFIX)"

dist: ## the archive that builds offline: dist/penstock-VERSION.tar.gz
	@scripts/dist.sh

check-install: ## install, move, use, load as a module; offline from the archive; with GCC 11
	@scripts/check_install.sh

check-fresh: ## the README's commands on a fresh Debian (as root; downloads one)
	@scripts/check_fresh.sh

bench-peers: ## beside ROMIO, OMPIO and what else programs use, every pattern (two hours; make it quiet)
	@scripts/bootstrap.sh check
	@scripts/get_peers.sh
	@scripts/build.sh release
	@$(VENV_PYTHON) bench/peers/run.py

bench-limit: ## how much Penstock reaches of what fio can write here (half an hour; make it quiet)
	@scripts/bootstrap.sh check
	@scripts/build.sh release
	@$(VENV_PYTHON) bench/peers/run.py --spec bench/limit --out build/bench-limit

bench-overlap: ## does writing overlap with computing, on one node and on two? (some minutes; as root; make it quiet)
	@scripts/bootstrap.sh check
	@scripts/build.sh release
	@bench/overlap/run.py --build build/release --mpi mpich
	@bench/overlap/run.py --build build/release --mpi openmpi
	@bench/overlap/run.py --build build/release --nodes 2

honesty: build ## how often the verdicts of penstock compare are wrong
	@$(VENV_PYTHON) -m penstock.bench.honesty --recorded python/tests/bench/data/recorded.jsonl

docs-table: build ## the table of algorithms, mechanisms and sync policies in docs/
	@$(VENV_PYTHON) scripts/docs_table.py

drawings: build ## the pictures of docs/algorithms.md and docs/models.md, out of real plans and runs
	@$(VENV_PYTHON) scripts/drawings.py

site: ## the documentation as a site, read without network: build/site/index.html
	@scripts/bootstrap.sh site
	@$(VENV_PYTHON) scripts/docs_site.py

clean: ## remove what was built; the environment in .venv stays
	rm -rf build demo-output

.PHONY: help bootstrap build tests demo check check-full check-the-checks install dist check-install check-fresh \
  bench-peers bench-limit bench-overlap honesty docs-table drawings site clean

# make birth   sets up .venv and watches an induction head being born
# make docs    builds the site of all documents in build/site
# make pictures  takes the pictures of docs/lab anew
# make page    builds the page of the lab from web/ (needs node)
# make test    sets up everything that tests need, and runs them
# make findings  writes docs/findings.md with its figures, after records were added
# make manifest  lists the digests of all committed records, after some were added
# make capacities  writes what committed records measured of capacities, which `engram predict` fits, after some were added
# make costs   measures what every experiment costs on this machine, an hour or two (NAMES="birth.fig3 memory" only these)
# make chaos   injects faults into real runs (FAULTS=300 SEED=7; ONLY=13 repeats one of them; WHERE=cluster: into Ray and Slurm)
# make paper   runs every experiment on its registered seeds, behind all other work; after a kill it goes on (paper-state,
#              paper-pack: what is done and left; adds what is finished to the committed records)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

.DELETE_ON_ERROR:
.PHONY: docs pictures birth test chaos paper paper-state paper-pack check setup ledger findings manifest controls capacities costs page page-check
birth: $(VENV)/.core
	@$(BIN)/engram birth
	@command -v engram >/dev/null || echo "next     . $(BIN)/activate    makes \`engram\` a command of this shell"

setup: $(VENV)/.dev

test: $(VENV)/.dev $(VENV)/.browser $(VENV)/.slurm check page-check
	@$(BIN)/python -m pytest -n auto --dist worksteal

chaos: $(VENV)/.dev
	@PYTHONPATH=src:tests $(BIN)/python -m chaos $(if $(WHERE),--where $(WHERE)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

paper: $(VENV)/.core
	@$(BIN)/engram queue run

paper-state: $(VENV)/.core
	@$(BIN)/engram queue state

# Ids are only added to the list of the tests: one that vanishes is still missed there.
paper-pack: $(VENV)/.core
	@$(BIN)/engram queue pack
	@$(BIN)/python -c 'from engram.records.files import COMMITTED; from engram.records.places import places; print(*(place.name for place in places(COMMITTED)), sep="\n")' \
	 | LC_ALL=C sort -u -o tests/record_ids.txt - tests/record_ids.txt
	@$(MAKE) -s manifest

check: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pyright

ledger: $(VENV)/.core
	@$(BIN)/engram ledger --markdown > LEDGER.md
	@$(BIN)/engram ledger --html docs/ledger.html --committed
	@$(BIN)/python -m engram.cli.verdicts

# exit code 1 says that the prose of a finding was written for another verdict; the page names it
findings: $(VENV)/.core
	@$(BIN)/engram findings --figures docs/findings
	@$(BIN)/engram findings --markdown > docs/findings.md

manifest: $(VENV)/.core
	@$(BIN)/engram runs manifest

capacities: $(VENV)/.core
	@$(BIN)/python -m engram.measuring

# needs the published data (ENGRAM_REFERENCE) and the model of the experiments real.…
costs: $(VENV)/.core
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m engram.costs.table $(NAMES)
	@$(BIN)/engram cost --markdown > docs/costs.md

# exit code 1 says that a claim is vacuous, which the table names
controls: $(VENV)/.core
	@$(BIN)/engram verify --controls --markdown > docs/controls.md || test $$? = 1

page: web/node_modules/.done
	@cd web && npm run -s check && npm run -s build

# docs/lab/*.webp, from runs that are made for them: a few minutes
pictures: $(VENV)/.dev $(VENV)/.browser
	@PYTHONPATH=src:tests $(BIN)/python tests/take_pictures.py

# The site in build/site, without a network: every warning is an error.
docs: $(VENV)/.docs
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto -c docs -b html -d build/doctrees . build/site && echo "build/site/docs/index.html"

# The committed page must be what its sources build; installing Engram needs no node.
page-check:
	@if command -v npm >/dev/null; then $(MAKE) -s web/node_modules/.done && cd web && npm run -s check && npm run -s build -- --check; \
	 elif [ -n "$$CI" ]; then echo "no npm in CI: the page cannot be built and compared"; exit 1; \
	 else echo "no npm: the page is not built and compared"; fi

web/node_modules/.done: web/package-lock.json
	@cd web && npm ci --silent 2>/dev/null && touch node_modules/.done

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Engram needs Python 3.11 or newer: make PYTHON=python3.11 …") if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.core
	@$(PIP) -e '.[docs]'
	@touch $@

# A Slurm for the tests of its engine; where it cannot be had, they are skipped with a reason.
$(VENV)/.slurm: | $(VENV)/.dev
	@for needed in slurmctld munged; do test -x /usr/sbin/$$needed || missing=1; done; test -z "$$missing" && touch $@ && exit 0; \
	 (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge) >/dev/null 2>&1 \
	 && touch $@ || echo "no Slurm: tests of its engine will be skipped"

# A browser for the tests of the report; where it cannot be had, these tests skip with a reason (and fail in CI).
$(VENV)/.browser: | $(VENV)/.dev
	@for name in chromium-headless-shell chromium google-chrome; do command -v $$name >/dev/null && touch $@ && exit 0; done; \
	 (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell) >/dev/null 2>&1 \
	 && touch $@ || echo "no browser: tests of the report in a browser will be skipped"

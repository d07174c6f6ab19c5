# `make` alone tells what there is. All work is done by tools/setup.py, the bridge's own commands and pytest.

.DEFAULT_GOAL := help
.PHONY: help run setup setup-dev class-data nats test test-fast chaos soak brokers check bench fuzz wheel image docs requirements jars-lock clean

# The first Python that is new enough; `make PYTHON=/path/to/python3` names another.
PYTHON = $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
NO_PYTHON := { echo "no Python 3.11 or newer in PATH: install one, or name it: make PYTHON=..." >&2; exit 3; }
SET_UP = @$(if $(PYTHON),$(PYTHON) -m tools.setup,$(NO_PYTHON))
PY := .venv/bin/python
# Bytecode is kept, whatever the shell says of it: to make it again takes each process of a bridge a fifth of a second.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = $(PY) -m pytest --tb=short -n 4 --dist loadfile --no-loadscope-reorder
TESTS := tests/unit tests/spark tests/integration tests/chaos
TESTED := "not kills and not further_cases"
FUZZ_SECONDS = 60

# Pages of docs/ that are made from the code, each with the module that prints it.
PAGES := configuration=routes.config cli=engine.cli.reference metrics=engine.telemetry.reference

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: setup ## set up what is missing, then run the bridge on jms-bridge.properties; Ctrl-C ends it
	@$(PY) -m tools.run

setup: ## the virtual environment and the JVM jars, redone only when what pins them changes
	$(SET_UP)

setup-dev:
	$(SET_UP) --dev

class-data: setup-dev
	$(SET_UP) --class-data

nats: ## a NATS server to try the bridge with, built from its pinned source; needs Go
	$(SET_UP) --nats

test-fast: check ## check, then the tests that start no process
	$(PYTEST) tests/unit

# What fails beside other tests runs once more, alone: on a machine that is too slow for a moment, a wait of a test may
# end too early. A test that fails twice fails.
test: setup-dev ## check, then all tests but those of make chaos, on a real Kafka, Artemis and NATS
	@$(MAKE) --no-print-directory --jobs=2 check class-data
	$(PYTEST) -m $(TESTED) $(TESTS) || { test $$? = 1 && echo "Once more, alone: the tests that failed" && \
		$(PY) -m pytest --last-failed --last-failed-no-failures none --maxfail 3 -m $(TESTED) $(TESTS); }

chaos: class-data ## tests that kill again and again or repeat a case at further systems or settings; then kill all parts of a bridge under load KILLS=100 times: an hour and more
	$(PYTEST) -m "kills or further_cases" tests/spark tests/integration tests/chaos tests/brokers
	CHAOS=all $(PY) -m pytest -s tests/chaos/test_machine.py
	$(PY) -m tests.chaos

soak: class-data ## an hour at 10,000 messages a second with a kill every five minutes: what grows, what is lost
	$(PY) -m tests.soak

brokers: setup-dev ## run the tests and cases of connectors at seven JMS brokers, and write docs/brokers.md; takes hours
	$(PYTEST) -m brokers tests/brokers
	$(PY) -m tests.brokers

check: setup-dev ## style, types, and whether generated documentation is current
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	@for page in $(PAGES); do $(PY) -m $${page#*=} | diff -q - docs/$${page%=*}.md >/dev/null || \
		{ echo "docs/$${page%=*}.md is out of date: make docs" >&2; exit 1; }; done

bench: class-data ## measure this project and its peers: all, or some, as in `make bench scale executors`
	$(PY) -m bench $(MEASUREMENTS)

# The words behind `bench` are measurements, and no goals of make.
ifeq ($(firstword $(MAKECMDGOALS)),bench)
MEASUREMENTS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
.PHONY: $(MEASUREMENTS)
$(MEASUREMENTS):
	@:
endif

fuzz: setup-dev ## feed every reader of bytes with wrong ones; FUZZ_SECONDS=60 for each
	@$(PY) -m tests.fuzz --seconds $(FUZZ_SECONDS)

wheel: setup ## dist/jms_bridge-VERSION.whl, which runs without this repository: Python 3.11 or newer and Java 17 are enough
	@$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

image: wheel ## dist/jms-bridge-VERSION-image.tar, a container image, and its bill of materials; needs Buildah, and root. IMAGE=... gives it options
	@$(PY) -m tools.image $(IMAGE)

docs: setup-dev ## make the pages and dashboards that come from code again
	@for page in $(PAGES); do $(PY) -m $${page#*=} > docs/$${page%=*}.md; done
	@$(PY) grafana/build.py
	@$(PY) grafana/alerts.py

requirements: setup-dev ## pin the newest Python packages that pyproject.toml allows
	$(PY) -m tools.pin

jars-lock: ## write the checksums and licences of the jars that pom.xml asks for
	JMS_BRIDGE_NEW_JARS=1 $(MAKE) --no-print-directory setup
	$(PY) -m tools.lock

clean: ## remove what set-up and tests made; var/, with messages and logs, stays
	rm -rf .venv .jars .jars.* .nats .helm .*_cache .hypothesis build jvm/*/target spark-warehouse

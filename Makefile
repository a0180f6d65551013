# Needs python3 (3.11 or newer) with pip, and make; everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m
INSTALL = $(PYTHON) -m pip --disable-pip-version-check --python $(VENV)/bin/python install --quiet
READY := $(VENV)/ready
UV := build/uv/bin/uv
LIGHT := "not spark and not postgresql and not mariadb and not native"
# What `make jars` fetches: a Spark for which there are connectors of Delta and Iceberg, these, and the one of S3.
NATIVE := build/native
# How many processes share the tests of `make test`; each has a Java of its own, with 3 GB for its heap.
PROCESSES ?= 3
# How many mutants `make mutants` makes of each package.
COUNT ?= 40
# Which tests `make test` runs, as an expression over the markers of pytest; all if it is empty.
MARKED ?=

.PHONY: help demo test native search mutants check format golden docs bench bench-full jars lock clean java

help: ## List the commands
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) java ## Show what it can do, on data that comes with it
	@$(RUN) dobonomodo.cli.demo

test: $(READY) java ## Run all tests, those on Spark too
	$(RUN) pytest --numprocesses $(PROCESSES) --dist worksteal $(if $(MARKED),-m "$(MARKED)")

native: $(READY) java ## Run the tests with Spark's own connectors for Delta, Iceberg and S3, where `make jars` has fetched them
	PYTHONPATH=$(NATIVE)/spark $(RUN) pytest --numprocesses $(PROCESSES) --dist loadfile -m native

# Not in parallel: a search may use the whole machine, and some take minutes.
search: $(READY) java ## Run the searches with their full counts, which the tests sample, and print the counts
	DOBO_SEARCH=1 $(RUN) pytest -m "search$(if $(MARKED), and ($(MARKED)))" --durations 0 --durations-min 1

mutants: $(READY) ## Change the source in memory, one place at a time, and tell which changes no test notices; takes long
	$(RUN) tests.mutants $(COUNT)

check: $(READY) ## Check format, lint, types, layers and generated docs; run the tests that need no server and no Java
	$(RUN) ruff format --check
	$(RUN) ruff check
	$(RUN) mypy
	$(VENV)/bin/lint-imports --no-logo
	$(RUN) dobonomodo.cli.docs --check
	$(RUN) pytest --numprocesses auto -m $(LIGHT)

format: $(READY) ## Format the code and fix what the linter can fix
	$(RUN) ruff check --fix-only --quiet
	$(RUN) ruff format

golden: $(READY) ## Rewrite the golden files; the diff is what to review
	$(RUN) pytest -m $(LIGHT) --update-golden

docs: $(READY) ## Rewrite the generated docs
	$(RUN) dobonomodo.cli.docs

bench: $(READY) java build/bench/ready ## Measure side by side with hand-written code, in a few minutes
	$(RUN) benchmarks quick

bench-full: $(READY) java build/bench/ready ## The same with ten times the data, growth and memory; takes an hour
	$(RUN) benchmarks full

jars: $(NATIVE)/ready ## Fetch Spark's own connectors for Delta, Iceberg and S3 from Maven Central, and the Spark that they are for

lock: $(UV) ## Pin the dependencies anew; UPGRADE=1 moves them to the newest that pyproject.toml allows
	$(LOCK) pyproject.toml --extra connect --extra delta --extra excel --extra hdfs --extra iceberg --extra objects --extra postgresql --group dev --output-file requirements.lock
	$(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['java'])" \
		| $(LOCK) - --output-file requirements-java.lock
	$(LOCK) --group bench --output-file requirements-bench.lock
	echo "pyspark>=4.1,<4.2" | $(LOCK) - --output-file requirements-native.lock

clean: ## Remove what the commands made, the virtual environment too
	rm -rf $(VENV) build dist demo-workspace .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# `--without-pip`, and the pip of $(PYTHON): Debian's python3 lacks what it takes to put pip into a new environment.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed, this is ' + sys.version)"
	@$(PYTHON) -m pip --version > /dev/null || { echo "pip is needed: apt-get install python3-pip, or $(PYTHON) -m ensurepip"; exit 1; }
	@echo "Setting up $(VENV): a few minutes the first time, 0.5 GB to download"
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(INSTALL) --require-hashes --requirement requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

build/bench/ready: $(READY) requirements-bench.lock
	@$(INSTALL) --require-hashes --requirement requirements-bench.lock
	@mkdir -p $(@D)
	@touch $@

# Beside .venv, not in it: whoever puts the folder in front gets this Spark, and all else from .venv.
$(NATIVE)/spark/ready: requirements-native.lock
	@$(PYTHON) -m pip --disable-pip-version-check install --quiet --root-user-action ignore --no-deps --require-hashes \
		--upgrade --target $(@D) --requirement requirements-native.lock
	@touch $@

$(NATIVE)/ready: $(NATIVE)/spark/ready tests/native/connectors.txt tests/native/servers.txt | $(READY) java
	@PYTHONPATH=$(NATIVE)/spark $(RUN) tests.native.fetch
	@touch $@

java: $(READY)
	@$(VENV)/bin/python -c "import sys; from dobonomodo.engine import find_java; sys.exit(find_java() is None)" || { \
		echo "No Java 17 or newer found in JAVA_HOME or on the PATH: installing one into $(VENV)"; \
		$(INSTALL) --require-hashes --requirement requirements-java.lock; }

LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

$(UV):
	$(PYTHON) -m venv --without-pip build/uv
	$(PYTHON) -m pip --disable-pip-version-check --python build/uv/bin/python install --quiet "uv>=0.9"

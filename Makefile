# Everything runs in a private environment (.venv) against the installed release wheel, which is
# built again only when sources change. `make help` lists what can be done.
#
#   PYTHON=/path/to/python3.12   the interpreter that the environment is made with
#   DATA=folder                  where `make bench` finds its data sets
#   QUICK=1                      only the headline rows of `make bench`, in about ten minutes
#   OLD=/path/to/python          for `make bench`: an environment with the version before this
#   TESTS="-k predict -x"        further options for pytest

PYTHON ?=
DATA ?= ../shared/data
QUICK ?=
OLD ?=
TESTS ?=

VENV := .venv
BIN := $(VENV)/bin
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON := $(abspath $(BIN)/python)
unexport PYTHONPATH PYTHONHOME

# An environment whose interpreter has gone is made again.
ifneq ($(shell $(BIN)/python -c 'print("runs")' 2>/dev/null),runs)
$(shell rm -f $(VENV)/.made)
endif

# Folders too, so that a deleted file counts as a change.
SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md LICENSE \
	$(shell find rust python/treeclust_rs -type d ! -name '__pycache__' ! -path '*/.*') \
	$(shell find rust python/treeclust_rs -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name py.typed \
		-o -name '*.html' -o -name '*.css' -o -name '*.js')

# Prints the requirements under a key of pyproject.toml, for `pip install -r`.
REQUIREMENTS := $(BIN)/python -c 'import sys, tomllib; \
	table = tomllib.load(open("pyproject.toml", "rb")); \
	[table := table[key] for key in sys.argv[1].split("/")]; \
	print(*table, sep="\n")'
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help build demo docs test test-all check bench results wheels clean toolchain lint-tools
.DELETE_ON_ERROR:

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.wheel $(VENV)/.extra-plot ## fit two tables, print the trees, leave models and pictures in demo/
	@$(BIN)/treeclust demo -o demo

docs: $(VENV)/.wheel $(VENV)/.extra-docs ## the documentation site, in target/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -P -m mkdocs build
	@echo "Open target/site/index.html"

test: $(VENV)/.wheel $(VENV)/.extra-test $(VENV)/.extra-sql $(VENV)/.extra-browser $(VENV)/.extra-ray $(VENV)/.extra-spark ## all tests (Rust, Python, docstrings, README), random cases from small samples
	cargo test --locked
	$(BIN)/python -P -m pytest -n auto --dist worksteal --doctest-modules --pyargs treeclust_rs tests $(TESTS)

test-all: export FULL_TESTS := 1
test-all: test ## the same with all random cases (FULL_TESTS=1)

check: lint-tools $(VENV)/.wheel $(VENV)/.extra-test $(VENV)/.extra-check ## formatting, lints, types, documentation
	cargo fmt --check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy python/treeclust_rs
	$(BIN)/lint-imports --no-cache
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/python -P -m mypy.stubtest treeclust_rs._core
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --features python -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --features python

# Benches refuse uncommitted changes; each leaves a record, from which the last line prints the page.
# What cannot be measured (a peer, a data set) is named and left out.
bench: $(VENV)/.wheel $(VENV)/.extra-bench $(VENV)/.extra-test $(VENV)/.extra-dask ## measure: hours, with QUICK=1 ten minutes; writes benches/results and RESULTS.md
	$(BIN)/python benches/peers.py --data "$(DATA)" $(if $(QUICK),--quick)
	$(BIN)/python benches/threads.py --data "$(DATA)" $(if $(QUICK),--quick)
	$(BIN)/python benches/best_tree.py --data "$(DATA)" $(if $(QUICK),--quick)
	$(BIN)/python benches/text.py --data "$(DATA)" $(if $(QUICK),--quick)
	$(BIN)/python benches/tables.py --data "$(DATA)" $(if $(QUICK),--quick)
	$(BIN)/python benches/kauri_peers.py $(if $(QUICK),--quick --parts peers)
	$(BIN)/python benches/kernel_peers.py $(if $(QUICK),--quick)
	$(BIN)/python benches/kernel_scaling.py $(if $(QUICK),--quick --parts clusters)
	@if [ -n "$(OLD)" ]; then set -x; \
		$(BIN)/python benches/versions.py "$(OLD)" --data "$(DATA)" $(if $(QUICK),--quick); \
	else echo "!!! NOT MEASURED: versions: name an environment with the version before, OLD=/path/to/python." >&2; fi
	$(BIN)/python benches/papers/exkmc.py --data "$(DATA)" $(if $(QUICK),--quick)
ifeq ($(QUICK),)
	$(BIN)/python benches/full_tests.py
	$(BIN)/python benches/scaling.py
	$(BIN)/python benches/parts.py --folder benches/.parts
	$(BIN)/python benches/dask_peers.py
	$(BIN)/python benches/interrupts.py
	$(BIN)/python benches/douglas_peers.py --data "$(DATA)"
	$(BIN)/python benches/papers/kauri.py --data "$(DATA)"
	$(BIN)/python benches/papers/kernel.py --data "$(DATA)"
	$(BIN)/python benches/papers/douglas.py --data "$(DATA)"
	$(BIN)/python benches/papers/oblique.py --data "$(DATA)" --keep benches/.oblique
	cargo bench --locked --bench engine
	$(BIN)/python benches/logistic.py --data "$(DATA)"
endif
	$(BIN)/python benches/report.py

results: $(VENV)/.made ## print benches/RESULTS.md again, from the records in benches/results
	$(BIN)/python benches/report.py

# Wheels of Linux, linked by zig against the glibc of manylinux_2_28, which maturin checks; a target that is not
# installed and cannot be is named and left out. The source distribution, then the wheel of this machine, is tried
# in an environment of its own. The workflow in .github builds those of macOS, Windows and free-threaded Python.
WHEEL_TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
TRY_PACKAGE := target/try-package/bin/python -P -c 'import sys, treeclust_rs as tc; \
	from sklearn.datasets import load_iris; \
	model = tc.BestTree(3, random_state=0).fit(load_iris().data); \
	assert model.n_clusters_ == model.n_leaves_ == 3; \
	print(f"{sys.argv[1]}: three clusters of iris, cost {model.inertia_:.4f}")'

wheels: toolchain $(VENV)/.build-tools $(VENV)/.extra-wheels ## wheels for Linux and a source distribution in dist/, tried; publishes nothing
	rm -rf dist target/try-package
	$(BIN)/maturin sdist --out dist
	@export PATH="$(abspath $(BIN)):$$PATH"; missing=; \
	for target in $(WHEEL_TARGETS); do \
		if [ ! -d "$$(rustc --print target-libdir --target $$target 2>/dev/null)" ] && ! rustup target add $$target; \
		then missing="$$missing $$target"; continue; fi; \
		maturin build --release --locked --zig --target $$target --compatibility manylinux_2_28 \
			--interpreter python --out dist || exit 1; \
	done; \
	for target in $$missing; do \
		echo "!!! NOT BUILT: the wheel for $$target, which rustup could not install." >&2; \
	done
	$(BIN)/python -m venv target/try-package
	target/try-package/bin/pip install --quiet dist/*.tar.gz
	@$(TRY_PACKAGE) "source distribution"
	target/try-package/bin/pip install --quiet --force-reinstall --no-deps --no-index --find-links dist \
		--only-binary :all: treeclust_rs
	@$(TRY_PACKAGE) wheel
	@ls -l dist

build: $(VENV)/.wheel ## only the environment and the installed wheel

clean: ## remove all that was made: environment, builds, caches, demo/, dist/
	rm -rf $(VENV) target demo dist benches/.peers benches/.oblique .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests benches -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Shims that do not run and Pythons that are too old are passed over.
$(VENV)/.made: | toolchain
	@if [ -n "$(PYTHON)" ]; then set -- "$(PYTHON)"; \
	else set -- python3 python python3.14 python3.13 python3.12 python3.11; fi; \
	chosen=; \
	for python in "$$@"; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
		then chosen=$$python; break; fi; \
	done; \
	if [ -z "$$chosen" ] && [ -n "$(PYTHON)" ]; then \
		echo "PYTHON=$(PYTHON) is no Python 3.11 or newer: install one from https://www.python.org/downloads/ and name it with PYTHON=." >&2; exit 1; \
	elif [ -z "$$chosen" ]; then \
		echo "No Python 3.11 or newer was found: install one from https://www.python.org/downloads/, or name it with PYTHON=/path/to/python." >&2; exit 1; \
	elif ! "$$chosen" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$chosen cannot make environments: install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$chosen" --version)."; \
	"$$chosen" -m venv --clear $(VENV)
	@touch $@

toolchain:
	@needed=$$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml); \
	found=$$(rustc --version 2>/dev/null | cut -d ' ' -f 2); \
	if [ -z "$$found" ] || ! cargo --version >/dev/null 2>&1; then \
		echo "No Rust toolchain was found: install Rust $$needed or newer from https://rustup.rs." >&2; exit 1; \
	elif [ "$$(printf '%s\n%s\n' "$$needed" "$$found" | sort -V | head -n 1)" != "$$needed" ]; then \
		echo "Rust $$found is too old: install Rust $$needed or newer (rustup update stable)." >&2; exit 1; \
	fi

lint-tools: toolchain
	@if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then \
		echo "rustfmt or clippy is missing: install them with rustup component add rustfmt clippy." >&2; exit 1; \
	fi

$(VENV)/.build-tools: pyproject.toml $(VENV)/.made
	@$(REQUIREMENTS) build-system/requires > $(VENV)/requirements-build.txt
	@$(PIP) install --quiet -r $(VENV)/requirements-build.txt
	@touch $@

$(VENV)/.extra-%: pyproject.toml $(VENV)/.made
	@$(REQUIREMENTS) project/optional-dependencies/$* > $(VENV)/requirements-$*.txt
	@$(PIP) install --quiet -r $(VENV)/requirements-$*.txt
	@touch $@

$(VENV)/.wheel: $(SOURCES) $(VENV)/.build-tools
	@rm -rf $(VENV)/wheels
	$(BIN)/maturin build --release --locked --interpreter $(BIN)/python --out $(VENV)/wheels
	@$(PIP) install --quiet $(VENV)/wheels/*.whl
	@$(PIP) install --quiet --force-reinstall --no-deps $(VENV)/wheels/*.whl
	@touch $@

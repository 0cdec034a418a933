# A thin front: every target is one or two commands.
CARGO ?= cargo
PYTHON := third_party/venv/bin/python
BENCH = $(CARGO) run --release --quiet -p remat-bench --features "$(FEATURES)" --

# A comma within a function call.
comma := ,

.PHONY: all build test lint bench bench-compare bench-ort bench-poet setup deny clean

all: build

build:
	$(CARGO) build --release

# Everything the full test run needs beside cargo; nothing happens where it is already there.
setup:
	third_party/fetch.sh

# Rust tests (unit, snapshot, property, file, command line, ONNX Runtime), then the Python ones on what the program writes.
# The MLIR room joins with its own tests; until then there is nothing for lit to run.
test: setup
	$(CARGO) test --workspace --all-features
	$(CARGO) build --release -p remat-opt
	$(PYTHON) -m pytest -q test/python

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-features --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps --quiet
	$(CARGO) run --quiet -p xtask -- tidy

# The tables of README.md and docs/benchmarks.md, into which `WRITE="--write docs/benchmarks.md"` puts them. The graphs of the papers are
# used where they lie: GRAPHS=DIR. With OR-Tools: FEATURES=cp-sat. TIME and FREE_TIME are the seconds in fixed and in free order.
bench:
	$(BENCH) paper $(or $(GRAPHS),../shared/graphs) --budgets 90%,80%,70% --solvers paper,moccasin,gap,search,auto --threads 2 --time $(or $(TIME),10) $(WRITE)
	$(BENCH) paper $(or $(GRAPHS),../shared/graphs) --budgets 90%,80%,70%,60% --solvers search,auto --order free --threads 2 --time $(or $(FREE_TIME),30) $(WRITE)
	$(BENCH) scaling --threads 2 --time $(or $(FREE_TIME),30) $(WRITE)

# The table and the curves of docs/comparison.md (`WRITE="--write docs/comparison.md"`); with LOGS=DIR also what dynamic
# rematerialization costs on the logs in that folder.
bench-compare:
	$(BENCH) compare $(or $(GRAPHS),../shared/graphs) --time $(or $(TIME),10) $(WRITE)
	$(if $(LOGS),$(BENCH) dtr $(LOGS))

# What ONNX Runtime takes before and after: the models of this repository and those in the folder MODELS=DIR, then those of the test
# matrix, which are generated. WRITE=1 puts the tables into README.md and docs/ort-benchmarks.md. BUDGETS and TIME as on the command line.
ORT_MODELS = $(or $(MODELS),$(wildcard ../shared/models))
ORT_EFFORT = --budgets $(or $(BUDGETS),auto$(comma)60%) --time $(or $(TIME),10)
bench-ort: setup
	$(BENCH) ort test/models $(ORT_MODELS) $(ORT_EFFORT) $(if $(WRITE),--write README.md --write docs/ort-benchmarks.md)
	$(PYTHON) test/models/generate_matrix.py target/models
	$(BENCH) ort target/models --dim batch=8192 $(ORT_EFFORT) --mark ort-generated $(if $(WRITE),--write docs/ort-benchmarks.md)

# Energy, memory and time with a second memory, on the networks and devices of the POET paper; with OR-Tools: FEATURES=cp-sat.
bench-poet:
	$(BENCH) poet --time $(or $(TIME),10) --models test/models,$(or $(MODELS),../shared/models) $(WRITE)

deny:
	$(CARGO) deny check

clean:
	$(CARGO) clean

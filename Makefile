# A thin front: every target is one or two commands.
CARGO ?= cargo
PYTHON := third_party/venv/bin/python
BENCH = $(CARGO) run --release --quiet -p remat-bench --

# A comma within a function call.
comma := ,

.PHONY: all build wheel test test-nightly test-mlir test-wheel test-torch fuzz lint bench bench-compare bench-training bench-ort bench-fission bench-zoo bench-poet docs web setup cross packages deny clean

all: build

build:
	$(CARGO) build --release

# LLVM 22 with MLIR, as third_party/fetch.sh installs it or MLIR_SYS_220_PREFIX says. Looked for when a recipe starts, after `setup`;
# without it all features but those that link it are built.
LLVM = $(or $(MLIR_SYS_220_PREFIX),/usr/lib/llvm-22)
HAVE_LLVM = $(shell test -d $(LLVM)/lib/cmake/mlir && echo yes)
ALL_FEATURES = $(if $(HAVE_LLVM),--features remat-opt/mlir$(comma)remat-plugin/llvm)
NO_LLVM = echo "no LLVM 22 with MLIR in $(LLVM): its parts are not $(1)"; $(call UNLESS_REQUIRED,mlir)

# What has to be there, as `.ci/run` says; what is not there and is named fails the recipe.
REQUIRED = $(subst $(comma), ,$(REMAT_TESTS_REQUIRE))
UNLESS_REQUIRED = $(if $(filter $(1),$(REQUIRED)),echo "REMAT_TESTS_REQUIRE names $(1)"; exit 1,true)

# The Python package as a wheel in target/wheels, for this machine's C library or a later one; ZIG=1 for all since that of manylinux2014
# (`pip install maturin[zig]`). Beside it the sources as an archive, from which `pip` builds the same.
MATURIN = third_party/venv/bin/maturin
wheel: setup
	$(MATURIN) build --locked --release $(if $(ZIG),--zig) --out target/wheels
	$(MATURIN) sdist --out target/wheels

# Everything the full test run needs beside cargo; nothing happens where it is already there.
setup:
	third_party/fetch.sh

# Rust tests (unit, snapshot, property, file, command line, ONNX Runtime), then those of the dialect and the passes in `mlir-opt`, then the Python
# ones: on what the program writes, on native code, and on the wheel. Tests, program, plugin and wheel are of one profile and one choice of features,
# so that each crate is compiled once. Files of Python tests run side by side.
PYTEST = $(PYTHON) -m pytest -q -rs -n $(or $(JOBS),2) --dist loadfile --durations=30
test: setup
	$(CARGO) test --workspace --no-fail-fast $(ALL_FEATURES)
	$(if $(HAVE_LLVM),$(MAKE) test-mlir,$(call NO_LLVM,tested))
	$(MAKE) test-wheel TESTS=
	$(MAKE) web
	$(PYTEST) test/python

# The same tests on all models, budgets, shapes and seeds, of which every change is tried on a few; properties on ten times as many cases, new ones in
# each run; what solvers claim of 10,000 tiny problems held against trying everything. `make test` and `make test-torch` build what it takes.
test-nightly: setup
	REMAT_NIGHTLY=1 $(CARGO) test --workspace --no-fail-fast $(ALL_FEATURES)
	$(BENCH) truth --problems 10000
	REMAT_NIGHTLY=1 $(PYTEST) test/python
	REMAT_NIGHTLY=1 PYTHONPATH=target/torch $(PYTEST) test/torch

# The wheel in an empty environment. It is built without optimization beyond that of tests, apart from those that are for others.
TESTS = test/python/test_wheel.py
test-wheel: setup
	rm -rf target/test-wheels
	if [ -x $(MATURIN) ]; then $(MATURIN) build --locked --quiet --profile dev --out target/test-wheels; fi
	$(if $(TESTS),$(PYTEST) $(TESTS))

# The wheel's `remat_opt.torch` in PyTorch, which is installed here and not by `setup`, because it brings gigabytes.
test-torch:
	third_party/fetch.sh torch
	$(MAKE) test-wheel TESTS=
	rm -rf target/torch
	if ! $(PYTHON) -c 'import torch' 2>/dev/null; then echo "SKIPPED: PyTorch is not installed, remat_opt.torch is not tested"; $(call UNLESS_REQUIRED,torch); \
		elif ! ls target/test-wheels/*.whl >/dev/null 2>&1; then echo "SKIPPED: there is no wheel, remat_opt.torch is not tested"; $(call UNLESS_REQUIRED,wheel); \
		else $(PYTHON) -m zipfile -e target/test-wheels/*.whl target/torch && PYTHONPATH=target/torch $(PYTEST) test/torch; fi

# Builds target/debug/remat-opt along with the plugin: all that the Rust tests build, so that cargo chooses the same features and compiles nothing again.
test-mlir:
	cmake -G Ninja -S . -B target/mlir -DMLIR_DIR=$(LLVM)/lib/cmake/mlir -DREMAT_CARGO_PROFILE=dev \
		"-DREMAT_CARGO_SELECTION=--workspace;--lib;--bins;--tests;$(subst --features ,--features=,$(ALL_FEATURES))"
	cmake --build target/mlir --target check-remat

# The documentation as a site in target/site. A link that leads nowhere fails it.
docs: setup
	@if [ -x third_party/venv/bin/mkdocs ]; then NO_MKDOCS_2_WARNING=1 third_party/venv/bin/mkdocs build --strict --quiet; \
		else echo "SKIPPED: MkDocs is not installed, the documentation is not built as a site"; fi

# The planner as a page for a browser, in target/web: files that any server of files serves. `setup` installs the standard library for WebAssembly.
WASM = wasm32-unknown-unknown
web: setup
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM)" ] && command -v wasm-opt >/dev/null; then set -ex; \
			$(CARGO) build --quiet --locked --profile wasm --target $(WASM) -p remat-web; \
			wasm-opt -Oz --strip-debug target/$(WASM)/wasm/remat_web.wasm -o target/$(WASM)/wasm/small.wasm; \
			$(CARGO) run --quiet --locked -p xtask --no-default-features --features web -- web target/$(WASM)/wasm/small.wasm target/web; \
		else echo "SKIPPED: there is no standard library for $(WASM) or no wasm-opt, the page is not built"; $(call UNLESS_REQUIRED,web); fi

# The program and the module of the wheel for systems that are not here, as far as their standard libraries are installed: types and borrows, no
# linking. CROSS=TRIPLES.
CROSS ?= x86_64-pc-windows-gnu aarch64-apple-darwin
cross: setup
	@for target in $(CROSS); do \
		if [ -d "$$(rustc --print sysroot)/lib/rustlib/$$target" ]; then set -ex; \
			RUSTFLAGS="$$RUSTFLAGS -D warnings" $(CARGO) check --quiet --locked -p remat-opt -p remat-python --target $$target; \
		else set +x; echo "SKIPPED: there is no standard library for $$target, the sources are not checked for it"; $(call UNLESS_REQUIRED,cross); fi; \
	done

# The crates as they are published, in target/package, each built from there; ARGS=--no-verify only puts them together, PACKAGES=publish publishes.
INTERNAL = $(shell grep -l '^publish = false' passes/*/*/Cargo.toml tools/*/Cargo.toml | xargs sed -sn '0,/^name = /s/^name = "\(.*\)"/\1/p')
packages:
	$(CARGO) $(or $(PACKAGES),package) --locked --workspace $(addprefix --exclude ,$(sort $(INTERNAL))) $(ARGS)

# One target of docs/fuzzing.md under libFuzzer, from the seeds of the tests and what earlier runs found. Needs `cargo install cargo-fuzz`.
fuzz:
	mkdir -p fuzz/corpus/$(TARGET)
	$(CARGO) run --quiet -p remat-fuzz -- seeds $(TARGET) fuzz/corpus/$(TARGET)
	$(CARGO) fuzz run -s none $(TARGET) -- -max_total_time=$(or $(SECONDS),60) -timeout=10 -rss_limit_mb=2048 -max_len=65536

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace $(ALL_FEATURES) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace $(ALL_FEATURES) --no-deps --quiet
	$(CARGO) run --quiet -p xtask -- tidy
	@$(if $(HAVE_LLVM),,$(call NO_LLVM,linted))

# The tables of docs/benchmarks.md, into which `WRITE="--write docs/benchmarks.md"` puts them. The graphs of the papers are
# used where they lie: GRAPHS=DIR. Solvers on OR-Tools take part where `setup` installed it. TIME and FREE_TIME are the seconds in fixed and in free order,
# LARGE_TIME those for each of the growing graphs, of up to a million nodes.
bench:
	$(BENCH) paper $(or $(GRAPHS),../shared/graphs) --budgets 90%,80%,70% --solvers paper,moccasin,gap,search,auto --threads 2 --time $(or $(TIME),10) --seeds $(or $(SEEDS),3) $(WRITE)
	$(BENCH) paper $(or $(GRAPHS),../shared/graphs) --budgets 90%,80%,70%,60% --solvers auto --order free --threads 2 --time $(or $(FREE_TIME),30) --seeds $(or $(SEEDS),3) $(WRITE)
	$(BENCH) scaling --threads 2 --time $(or $(LARGE_TIME),60) $(WRITE)

# The table of docs/comparison.md (`WRITE="--write docs/comparison.md"`); with LOGS=DIR also what dynamic
# rematerialization costs on the logs in that folder.
bench-compare:
	$(BENCH) compare $(or $(GRAPHS),../shared/graphs) --time $(or $(TIME),10) $(WRITE)
	$(if $(LOGS),$(BENCH) dtr $(LOGS))

# Order, recomputes and offsets of PyTorch's training steps beside the best known plans; the table of docs/training-graphs.md
# (`WRITE="--write docs/training-graphs.md"`).
bench-training:
	$(BENCH) training --time $(or $(TIME),10) --threads 2 --budgets $(or $(BUDGETS),min$(comma)40%$(comma)60%) $(WRITE)

# What ONNX Runtime takes before and after, and heap and growth of the process under the defaults, recommended settings (`--settings`), and with planned
# memory: the models of this repository and those in the folder MODELS=DIR. Then those of the test matrix, which are
# generated. WRITE=1 puts the tables into docs/ort-benchmarks.md, and the growth of processes into README.md.
# BUDGETS and TIME as on the command line.
ORT_MODELS = $(or $(MODELS),$(wildcard ../shared/models))
ORT_EFFORT = --budgets $(or $(BUDGETS),auto$(comma)60%) --time $(or $(TIME),10)
bench-ort: setup
	$(BENCH) ort test/models $(ORT_MODELS) $(ORT_EFFORT) --memory $(if $(WRITE),--write docs/ort-benchmarks.md --brief README.md)
	$(PYTHON) test/models/generate_matrix.py target/models
	$(BENCH) ort target/models --dim batch=8192 $(ORT_EFFORT) --mark ort-generated $(if $(WRITE),--write docs/ort-benchmarks.md)

# What ONNX Runtime takes for models whole and in tiles: the models in the folder MODELS=DIR, those of this repository without it, with these values of
# symbolic dimensions (DIMS="batch=4 seq=256"). WRITE=1 puts the table into docs/fission.md.
bench-fission: setup
	$(BENCH) fission $(or $(MODELS),$(wildcard ../shared/models),test/models) --time $(or $(TIME),60s) $(addprefix --dim ,$(DIMS)) --format markdown $(if $(WRITE),--write docs/fission.md)

# Every model below the folders ZOO=DIRS, one row each, whatever becomes of it. WRITE=1 puts the tables into docs/zoo.md. TIME and LIMIT are seconds to
# search and measure, and until the process of a model is killed; AGAIN=1 makes rows again that are there.
ZOO_EFFORT = --time $(or $(TIME),10) --limit $(or $(LIMIT),300) $(if $(AGAIN),--again)
bench-zoo: setup
	$(BENCH) zoo $(or $(ZOO),test/models $(wildcard ../shared/models)) $(ZOO_EFFORT) --format markdown $(if $(WRITE),--write docs/zoo.md)

# Energy, memory and time with a second memory, on the networks and devices of the POET paper.
bench-poet:
	$(BENCH) poet --time $(or $(TIME),10) --models test/models,$(or $(MODELS),../shared/models) $(WRITE)

# Licences, duplicate and unwanted crates, sources; known flaws where the database of them can be fetched. Installs the program once, among
# cargo's own, and unoptimized: it runs for seconds.
DENY = 0.20.2
QUICK_BUILD = --config profile.release.opt-level=0 --config profile.release.lto=false --config profile.release.codegen-units=256
deny:
	@$(CARGO) deny --version 2>/dev/null | grep -qx 'cargo-deny $(DENY)' || $(CARGO) install --quiet --locked $(QUICK_BUILD) cargo-deny@$(DENY)
	$(CARGO) deny --all-features check licenses bans sources
	@if $(CARGO) deny fetch db 2>/dev/null; then set -x; $(CARGO) deny --all-features check --disable-fetch advisories; \
		else echo "SKIPPED: advisories are not judged, their database cannot be fetched from here"; fi

clean:
	$(CARGO) clean

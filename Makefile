# Every target sets up what it needs in a virtual environment inside the checkout, then does its job.
# A stamp file remembers that an environment is up to date with the pyproject files.

PYTHON ?= python3

# Hundreds of new processes import corejax, and each worker the tests: compiling what they import takes half of that.
unexport PYTHONDONTWRITEBYTECODE

PACKS := plugins/lax_basic plugins/reductions plugins/control_flow plugins/special plugins/sorting plugins/collectives \
         plugins/windows plugins/linear_algebra plugins/fft plugins/numpy plugins/random plugins/nn \
         plugins/callbacks plugins/checkify plugins/references plugins/processes plugins/taylor
# Tools for authors of packs, which bring no primitives.
TOOLS := plugins/testing plugins/authoring
STANDARD := corejax-lax-basic,corejax-reductions,corejax-control-flow,corejax-special,corejax-sorting,corejax-collectives,corejax-windows,corejax-linear-algebra,corejax-fft,corejax-numpy,corejax-random,corejax-nn,corejax-checkify,corejax-callbacks,corejax-references,corejax-processes,corejax-taylor
EXAMPLE_PACK := examples/softplus_pack
# Built by tests: the first one takes a C++ compiler.
NATIVE_PACK := examples/native_pack
RATIONAL_PACK := examples/rational_pack
GENERATOR_PACK := examples/generator_pack
INVERSE_PACK := examples/inverse_pack
STUBS := stubs
PROJECTS := pyproject.toml $(PACKS:%=%/pyproject.toml) $(TOOLS:%=%/pyproject.toml) $(EXAMPLE_PACK)/pyproject.toml $(STUBS)/pyproject.toml
EDITABLE := $(PACKS:%=-e %) $(TOOLS:%=-e %) -e $(EXAMPLE_PACK) -e $(STUBS)

# Two test workers on few cores: one thread of XLA and BLAS in each. A target may have more flags, about the code.
CODE :=
TEST_ENV = XLA_FLAGS="--xla_cpu_multi_thread_eigen=false $(CODE)" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
EIGHT := COREJAX_NUM_CPU_DEVICES=8 JAX_NUM_CPU_DEVICES=8
WORKERS ?= 2
# Each worker takes whole files, which share programs and what they build, until one of them has nothing left to do.
PYTEST = -m pytest -n $(WORKERS) --dist worksteal -q

.PHONY: demo test test-quick quick-suite kernel-tests other-tests pack-tests device-tests test-matrix test-all mutants strength lint parity parity-all \
        bench bench-against entry-points stubs reference clean

demo: .venv/stamp
	.venv/bin/python examples/quickstart.py

# What a change must pass, in minutes: all tests but those marked exhaustive, which leave a fixed sample of their kind.
# Programs are compiled in half the time: tests/shared/quick_code.py.
# `make test PACK=fft` runs the tests of one pack, with the conformance kit, and those of the packs that require it.
test: WHICH = not exhaustive
ifdef PACK
test: .venv/stamp
	$(PACK_SUITES) -m "$(WHICH)" --also-dependents --rules $(PACK)
else
# One core checks types while the other begins with the tests.
test: .venv/stamp
	$(MAKE) --no-print-directory lint & \
	$(MAKE) --no-print-directory quick-suite WHICH="$(WHICH)" && { wait $$! || { echo "make lint failed: see above"; false; }; }
endif

# Without the tests that build wheels and environments, too.
test-quick quick-suite: WHICH = not slow and not exhaustive
test-quick: .venv/stamp quick-suite

# The quick tests in an environment that is there.
quick-suite: kernel-tests other-tests pack-tests device-tests

IN ?= .venv
WHICH ?=

# The kernel's tests see no pack: they bring toy primitives of their own.
kernel-tests: $(filter .venv/stamp,$(IN)/stamp)
	$(TEST_ENV) COREJAX_PACKS=none $(IN)/bin/python $(PYTEST) -m "$(WHICH)" tests/kernel

other-tests: $(filter .venv/stamp,$(IN)/stamp)
	$(TEST_ENV) $(IN)/bin/python $(PYTEST) -m "$(WHICH)" tests $(TOOLS) examples/softplus_pack/tests --ignore tests/kernel

# Each pack's own, where only that pack and those that it needs are in use; two packs at a time.
PACK_SUITES = $(TEST_ENV) $(IN)/bin/python tests/shared/pack_suites.py

pack-tests: $(filter .venv/stamp,$(IN)/stamp)
	$(PACK_SUITES) -m "$(WHICH)"

# Those with several devices, which a process has from its start.
device-tests: $(filter .venv/stamp,$(IN)/stamp)
	$(TEST_ENV) $(EIGHT) $(IN)/bin/python $(PYTEST) -m "$(WHICH)" tests/devices

# The quick tests under each release line of jaxlib on each CPython that is found, one after the other, and a table;
# `make test-matrix ONLY="3.12-0.11 3.13-0.12"` runs some.
test-matrix:
	$(PYTHON) tools/matrix.py --workers $(WORKERS) --only $(ONLY)

# Everything, in hours: all orderings, all mutants, all wheels, all that jax says, thousands of random programs beside it, of
# each mode, and so many calls of each function of corejax.numpy, and the quick tests on every CPython and jaxlib that is
# found. If ARRAY_API_SUITE is a checkout of the array API's test suite, which isn't part of this repository, so is that.
PROGRAMS ?= 20000
MODES := closures memory bits32 bits64 types clashes
PROGRAMS_OF_A_MODE ?= 5000
RANDOM_PROGRAMS = $(TEST_ENV) JAX_ENABLE_X64=1 .venv-parity/bin/python -m tests.random_programs --processes $(WORKERS)
CALLS ?= 20

# With the code that the compiler usually writes, also where `make test` takes less: tests/shared/quick_code.py.
test-all parity-all: export COREJAX_TESTS_FULL_CODE = 1
test-all: lint kernel-tests other-tests pack-tests device-tests parity-all
	$(RANDOM_PROGRAMS) --count $(PROGRAMS)
	$(foreach mode,$(MODES),$(RANDOM_PROGRAMS) --mode $(mode) --count $(PROGRAMS_OF_A_MODE) &&) true
	$(TEST_ENV) JAX_ENABLE_X64=1 .venv-parity/bin/python -m tests.numpy_search --count $(CALLS)
	$(TEST_ENV) .venv/bin/python -m tests.same_bits --count $(CALLS)
	$(if $(ARRAY_API_SUITE),$(TEST_ENV) .venv/bin/python -m tests.array_api --suite $(ARRAY_API_SUITE) --processes $(WORKERS))
	$(MAKE) --no-print-directory test-matrix

# Every fault in plugins/testing/tests/mutants against the conformance kit; `make test` runs a spread of them.
mutants: export COREJAX_TESTS_FULL_CODE = 1
mutants: .venv/stamp
	$(TEST_ENV) .venv/bin/python $(PYTEST) -k test_mutant_is_killed plugins/testing/tests/test_mutants.py

# How many faults are planted, of each kind, and how many of them the tests found; `NAMES=1` names each.
strength: .venv/stamp
	$(TEST_ENV) .venv/bin/python -m tests.strength $(if $(NAMES),--names) --processes $(WORKERS)

lint: .venv/stamp
	.venv/bin/python -m corejax entry-points --check $(PACKS) $(EXAMPLE_PACK) $(NATIVE_PACK) $(RATIONAL_PACK) $(GENERATOR_PACK) $(INVERSE_PACK)
	.venv/bin/python tools/check_table.py --check
	COREJAX_PACKS=$(STANDARD) .venv/bin/python tools/reference.py --check
	.venv/bin/ruff check .
	.venv/bin/mypy corejax $(PACKS:%=%/corejax_*) $(EXAMPLE_PACK)/corejax_softplus $(NATIVE_PACK)/corejax_native $(RATIONAL_PACK)/corejax_rational $(GENERATOR_PACK)/corejax_splitmix $(INVERSE_PACK)/corejax_inverse \
		$(TOOLS:%=%/corejax_*) tools

# The tests that compare with jax, which the product's environment does not have: "jax" or "parity" is in their names.
# parity-all has those marked exhaustive, too.
parity: WHICH = not exhaustive
# jax's programs compile in half the time, too. The flags are those of the pinned jaxlib.
parity: CODE = --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false
parity parity-all: .venv-parity/stamp
	$(TEST_ENV) JAX_ENABLE_X64=1 .venv-parity/bin/python $(PYTEST) -m "$(WHICH)" -k "jax or parity" \
		$$(grep -rlE --include '*.py' 'importorskip\("jax' tests plugins --exclude-dir devices)
	$(TEST_ENV) $(EIGHT) JAX_ENABLE_X64=1 .venv-parity/bin/python $(PYTEST) -m "$(WHICH)" -k "jax or parity" tests/devices

# Everything, into docs/, in some 20 minutes on a quiet machine; `make bench ONLY="calls real.greeks"` prints some of it,
# `make bench ONLY=public` times every public function beside JAX's, in half an hour, into docs/public-functions.md.
bench: .venv-bench/stamp
	.venv-bench/bin/python -m benchmarks $(ONLY)

# This checkout beside another revision, in pairs of processes: `make bench-against REV=main~3 ONLY="calls eager"`;
# or beside a rival: `make bench-against REV=jax ONLY=devices`. With ONLY=--quick, twenty rows in three minutes, and it
# fails if one is slower.
bench-against: .venv-bench/stamp
	.venv-bench/bin/python -m benchmarks.against $(REV) $(ONLY)

# Write the packs' entry points anew, and install them.
entry-points: .venv/stamp
	.venv/bin/python -m corejax entry-points --write $(PACKS) $(EXAMPLE_PACK) $(NATIVE_PACK) $(RATIONAL_PACK) $(GENERATOR_PACK) $(INVERSE_PACK)
	$(MAKE) .venv/stamp

# Write the stubs of the standard packs anew.
stubs: .venv/stamp
	COREJAX_PACKS=$(STANDARD) .venv/bin/python -m corejax stubs --partial $(STUBS)

reference: .venv/stamp
	COREJAX_PACKS=$(STANDARD) .venv/bin/python tools/reference.py

# What builds 18 distributions is installed once and not in an environment for each.
.venv/stamp: $(PROJECTS)
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q hatchling editables
	.venv/bin/python -m pip install -q --no-build-isolation -e ".[test]" $(EDITABLE)
	touch $@

# jax, and what it needs that isn't there already: all else is seen where the product's environment has it.
PACKAGES = bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'

.venv-parity/stamp: .venv/stamp
	$(PYTHON) -m venv .venv-parity
	echo "import site; site.addsitedir('$$(.venv/$(PACKAGES))')" > "$$(.venv-parity/$(PACKAGES))/product.pth"
	.venv-parity/bin/python -m pip install -q --no-build-isolation -e ".[parity]"
	touch $@

# torch is a rival where it can be had; the report says so when it is missing.
.venv-bench/stamp: $(PROJECTS)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install -q -e ".[bench]" $(EDITABLE)
	-.venv-bench/bin/python -m pip install -q torch==2.13.0
	touch $@

clean:
	rm -rf .venv .venv-parity .venv-bench .venv-matrix .venv-against build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

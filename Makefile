# `make demo` and `make test` need Python 3.11+ and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread is faster than two for the small problems of the tests.
export OMP_NUM_THREADS ?= 1
# Compiled files are kept, whatever the shell says: without them each process of the tests compiles the
# package and rewrites the assertions of 400 files, which is half of its start.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo gpu test test-all test-everywhere test-elsewhere test-far test-far-quick test-lowest test-extras lint bench tutorials docs clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/python -m benchmarks demo

# Tests share nothing, so that they run side by side.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
test: $(VENV)/.installed
	$(PYTEST) -m 'not slow'

test-all: $(VENV)/.installed
	$(PYTEST)

# What one processor rounds up another rounds down: the same tests as on other machines, with other
# instructions, more threads, single precision, and with what processors compute in their own way changed by
# a relative error that tests/processors.py makes, for three such processors each. Tolerances of mathematics
# follow from an error of 1e-14; decisions have to bear larger ones.
FORMULAS := tests/numerics tests/models tests/baselines tests/optim tests/kernels tests/acquisition
MATHEMATICS := $(FORMULAS) tests/laws
DECISIONS := tests/tuners tests/simulation tests/bandits tests/query
# Those laws that hang on a dtype and a device.
LAWS := $(patsubst %,tests/laws/test_%_laws.py,acquisition feature kernel model query)
test-everywhere: $(VENV)/.installed
	MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=default $(PYTEST) -m 'not slow'
	MKL_CBWR=SSE4_2 $(PYTEST) -m 'not slow'
	MKL_CBWR=AVX2 ATEN_CPU_CAPABILITY=avx2 $(PYTEST) -m 'not slow'
	OMP_NUM_THREADS=2 $(PYTEST) -m 'not slow' --threads 2
	$(PYTEST) -m 'not slow' --dtype float32 $(LAWS)
	set -e; for draw in 0 1 2; do \
		$(PYTEST) -m 'not slow' --draw $$draw --perturb 1e-14 $(MATHEMATICS) $(DECISIONS); \
		$(PYTEST) -m 'not slow' --draw $$draw --perturb 1e-12 $(DECISIONS); \
		$(PYTEST) -m 'not slow' --draw $$draw --perturb-single 1e-6 --dtype float32 $(DECISIONS); \
	done

# On a device without hardware, which refuses what a GPU refuses: see tests/far.
FAR := $(PYTEST) -p tests.far --device far
RECIPES := $(patsubst %,tests/benchmarks/test_%.py::TestRun::test_it_trains_and_is_resumed_on_the_device_of_its_recipe, \
	simclr stn_schedule)
WAITS := tests/tuners/online/test_waits.py tests/simulation/test_waits.py tests/validation/test_waits.py
# Thousands of steps of one walk, each as several on a device.
CHAIN := $(patsubst %,tests/numerics/test_ensemble_sampling.py::test_%, \
	moments_match_the_density_for_all_scales recorded_log_densities_match_the_points)
test-far: test-far-quick
	$(FAR) -m 'not slow' $(CHAIN) tests/models tests/baselines tests/acquisition tests/query $(LAWS) tests/tuners/test_offline_devices.py
	$(FAR) -m slow $(WAITS) tests/tuners/test_offline_devices.py

# The part of it that continuous integration has time for: there an operation takes several times as long.
test-far-quick: $(VENV)/.installed
	$(FAR) -m 'not slow' tests/numerics tests/kernels tests/optim tests/laws/test_device_laws.py \
		tests/laws/test_mirrored_calls.py $(WAITS) $(RECIPES) $(patsubst %,--deselect %,$(CHAIN))

# The smallest versions that pyproject.toml allows, in an environment of its own (5 GB). Matplotlib of that
# time calls the parser of today by names that it warns of.
.venv-lowest/.installed: pyproject.toml tests/lowest.py
	$(PYTHON) -m venv .venv-lowest
	mkdir -p out && $(PYTHON) -m tests.lowest > out/lowest.txt
	.venv-lowest/bin/python -m pip install -q -c out/lowest.txt -e '.[test]'
	touch $@

LOWEST := .venv-lowest/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m 'not slow' \
	-W ignore::pyparsing.warnings.PyparsingDeprecationWarning
test-lowest: .venv-lowest/.installed
	$(LOWEST)

# What continuous integration has time for: with the smallest versions, on instructions of another processor,
# what hangs on the libraries, and what hangs on rounding with the errors of another processor as well, which
# take twice the time; no benchmarks, no long runs of optimizers or simulations, and nothing about words or
# files alone; laws in single precision.
OTHERWISE := MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=default $(LOWEST)
LONG := tests/benchmarks tests/tuners tests/laws tests/machines tests/simulation tests/bandits
WORDS := $(patsubst %,tests/test_%.py,tutorials prose papers packaging site)
test-elsewhere: .venv-lowest/.installed $(VENV)/.installed
	$(OTHERWISE) --perturb 1e-14 $(FORMULAS) tests/query
	$(OTHERWISE) $(patsubst %,--ignore %,$(FORMULAS) tests/query $(LONG) $(WORDS))
	$(PYTEST) -m 'not slow' --dtype float32 $(LAWS)

# Each extra by itself, in environments in out/extras: EXTRAS="optuna ray" for some of them.
test-extras:
	$(PYTHON) -m tests.extras $(EXTRAS)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks table-a2
	$(BIN)/python -m benchmarks table-a2-loop
	$(BIN)/python -m benchmarks single-precision
	$(BIN)/python -m benchmarks streaming
	$(BIN)/python -m benchmarks speed
	$(BIN)/python -m benchmarks figure-1
	$(BIN)/python -m benchmarks figure-a3
	$(BIN)/python -m benchmarks priced
	$(BIN)/python -m benchmarks priced-effective-horizon
	$(BIN)/python -m benchmarks priced-budget
	$(BIN)/python -m benchmarks priced-arms
	$(BIN)/python -m benchmarks priced-continuous
	$(BIN)/python -m benchmarks priced-misspecified
	$(BIN)/python -m benchmarks priced-time
	$(BIN)/python -m benchmarks priced-picture
	$(BIN)/python -m benchmarks online-suite
	$(BIN)/python -m benchmarks online-suite --problems digits_optimization --methods default "random schedule" tuned \
		--seeds 100 --first-seed 1000 --store online-suite-hundred
	$(BIN)/python -m benchmarks online-suite --problems digits_augmentation --methods default tuned \
		--seeds 20 --first-seed 300 --store online-suite-fresh
	$(BIN)/python -m benchmarks online-suite-picture
	$(BIN)/python -m benchmarks online-suite-verdicts
	$(BIN)/python -m benchmarks demo --fresh --seeds 5 --store demo --picture benchmarks/results/demo.png
	$(BIN)/python -m benchmarks demo --fresh --first-seed 200 --seeds 8 --store demo-heldout
	$(BIN)/python -m benchmarks report --markdown

# An hour on a GPU (benchmarks/GPU.md), with any Python that has the package: MINUTES=15, RESULTS=DIRECTORY,
# or TINY=1 to run it in tiny sizes without a GPU.
MINUTES ?= 60
GPU_PYTHON ?= $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON))
gpu:
	$(GPU_PYTHON) -m benchmarks gpu --minutes $(MINUTES) $(if $(RESULTS),--results $(RESULTS)) $(if $(TINY),--tiny)

tutorials: $(VENV)/.installed
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[tutorials]'
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False tutorials/*.ipynb

# The pages open from out/docs/index.html, without a server.
docs: $(VENV)/.installed
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # not --quiet, which hides warnings from --strict

clean:
	rm -rf $(VENV) .venv-lowest out .pytest_cache .mypy_cache .ruff_cache

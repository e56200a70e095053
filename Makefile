# What each target does is in "make help". Everything runs offline once the
# modules are in the cache; the first "make lint" builds the linter (2 minutes).

BIN     := build/memorymark
GO      ?= go
TOOL    := $(GO) tool -modfile=tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
LDFLAGS := -s -w -X memorymark/internal/cli.version=$(VERSION) -X memorymark/internal/cli.commit=$(COMMIT)
ARGS    ?= serve
FUZZTIME ?= 30s
ENDURANCE ?= 10m
KILLS   ?= 50
CRASHES ?= 1000
ONLY    ?=
PLATFORM ?= all
NPM     ?= npm

# The tests run the prober with this Python: one with PyTorch and transformers
# that the environment names, or a virtual environment that is made once for
# each state of its requirements (2 minutes, 5 GB).
PYTHON       ?= python3
VENV         ?= build/venv
REQUIREMENTS := internal/measure/testdata/requirements.txt
VENV_MADE    := $(VENV)/made-$(firstword $(shell cksum < $(REQUIREMENTS)))
MEMORYMARK_TEST_PYTHON ?= $(abspath $(VENV)/bin/python)

# The page's packages are installed once for each state of their lock file.
WEB_MADE := web/node_modules/made-$(firstword $(shell cksum < web/package-lock.json))
CHROMIUM ?= /usr/bin/chromium

# The key that signs a release (never in quotes, so that ~ means the same in every shell), and the versions of the scanners for holes.
KEY         ?=
GOVULNCHECK := v1.8.0
PIP_AUDIT   := 2.10.1

.DEFAULT_GOAL := help
.PHONY: help build web check test unit unit-plain unit-python page browser venv lint vet fmt bench endurance bench-report test-gpu test-versions bench-gpu fuzz golden accuracy run pictures release clean wheel requirements vulnerabilities holes-go holes-npm holes-pip release-key

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the static binary build/memorymark, with the page if it was built
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/memorymark

web: $(WEB_MADE) ## Build the page into web/dist, which the next build embeds
	cd web && $(NPM) run --silent build

# Not "npm ci": it refuses a lock file that lacks the packages of other
# platforms, which a registry may not have. The versions are the lock file's.
$(WEB_MADE): web/package-lock.json
	@command -v $(NPM) >/dev/null || { echo 'The page is built with Node.js 20 or newer and its npm; install them, or set NPM.'; exit 1; }
	cd web && $(NPM) install --no-save --prefer-offline
	touch $@

test: lint unit page ## Check everything: format, vet, lint, go.mod, tests with -race, build, the page in a browser

# The race detector makes computing several times as long. Rooms of the core start no goroutines (TestCoreStartsNoGoroutines),
# so it finds nothing there. PLAIN are tests of other rooms that compute, or run one command after the other; what runs at the
# same time has tests of its own, with the detector. What is left out of one run is in another (TestPlainTestsAreRun).
# LIMIT only ends what hangs: a disturbed machine takes its time.
COMPUTING   := $(addprefix ./internal/,allocator change predict pymodule steptime timeline torch)
PLAIN       := ^Test(APIGuide|AdaptersProposed|ChangesFollowTheCard|Console|HostileAnswers|LeastSets|ManyCardsAreEachCard|OptionsArePredictions|PatchyFitting|Poison|PoisonedOrderFails|Predict|ReadProportionate|ReadmeCommands|Scripts|TerminalPicture|WhatDecidesThePeak)$$
PLAIN_ROOMS := $(addprefix ./internal/,cli analysis plan snapshot report)
LIMIT       := -timeout 80m

unit: venv build ## Run the tests alone, with the race detector but for those that only compute
	MEMORYMARK_TEST_PYTHON='$(MEMORYMARK_TEST_PYTHON)' $(TOOL) gotestsum --format pkgname -- -race -skip '$(PLAIN)' $(LIMIT) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(COMPUTING))")
	$(MAKE) --no-print-directory -j2 --output-sync=target unit-plain unit-python
	$(GO) test $(LIMIT) ./internal/server -run '^Test(WorstQuestions|LargePlan)$$'

unit-plain:
	MEMORYMARK_TEST_PYTHON='$(MEMORYMARK_TEST_PYTHON)' $(GO) test $(LIMIT) $(PLAIN_ROOMS) -run '$(PLAIN)|^TestAnswersAgreeWithPredictions$$'
	MEMORYMARK_TEST_PYTHON='$(MEMORYMARK_TEST_PYTHON)' $(GO) test $(LIMIT) $(COMPUTING)

unit-python:
	cd bench/gpu && '$(MEMORYMARK_TEST_PYTHON)' -m unittest --quiet
	cd python && MEMORYMARK_BINARY='$(abspath $(BIN))' '$(MEMORYMARK_TEST_PYTHON)' -m unittest discover --quiet tests

page: web browser venv ## Check the page: types, lint, unit tests, then the built binary in a real browser
	cd web && $(NPM) run --silent check && $(NPM) test --silent
	$(MAKE) --no-print-directory build
	cd web && CHROMIUM='$(CHROMIUM)' MEMORYMARK_BIN='$(abspath $(BIN))' MEMORYMARK_TEST_PYTHON='$(MEMORYMARK_TEST_PYTHON)' $(NPM) run --silent test:browser

# Debian's Chromium; elsewhere CHROMIUM names one.
browser:
	@test -x '$(CHROMIUM)' || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --no-install-recommends chromium; } || \
		{ echo 'The page is tested in Chromium: install it, or set CHROMIUM to where it is.'; exit 1; }

ifeq ($(origin MEMORYMARK_TEST_PYTHON),file)
venv: $(VENV_MADE) ## Set up the Python of the tests in VENV, if that was not done
else
venv:
	@'$(MEMORYMARK_TEST_PYTHON)' -c 'import peft, pytorch_lightning, torch, transformers' || \
		{ echo 'MEMORYMARK_TEST_PYTHON lacks packages of $(REQUIREMENTS). Unset it, and make sets up a Python of its own.'; exit 1; }
endif

$(VENV_MADE):
	$(PYTHON) -m venv --clear '$(VENV)'
	'$(VENV)/bin/python' -m pip install --quiet --no-deps --require-hashes -r $(REQUIREMENTS)
	'$(VENV)/bin/python' -m pip check
	'$(VENV)/bin/python' -c 'import torch, transformers'
	touch $@

requirements: ## Write the hashes of the tests' Python packages again (needs uv)
	uv pip compile $(REQUIREMENTS:.txt=.in) --quiet --generate-hashes --no-deps --universal --python-version 3.11 --no-header --no-annotate -o build/requirements
	{ head -2 $(REQUIREMENTS); cat build/requirements; } > build/requirements.txt && mv build/requirements.txt $(REQUIREMENTS)

# Each looks also when another has found something. Without --strict, pip-audit takes what it cannot look up for sound.
vulnerabilities: ## Look for known holes in what the program, its page and its tests are made of (needs the internet)
	$(MAKE) --no-print-directory --keep-going holes-go holes-npm holes-pip

holes-go:
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...

holes-npm:
	cd web && $(NPM) audit --omit=dev --audit-level=moderate

holes-pip:
	$(PYTHON) -m venv --clear build/audit
	build/audit/bin/python -m pip install --quiet pip-audit==$(PIP_AUDIT)
	build/audit/bin/pip-audit --strict --require-hashes --disable-pip -r $(REQUIREMENTS)

# These rooms' tests take minutes, or need Python.
SLOW := analysis|job|measure|phantom|server|study

check: vet ## Check quickly, with Go alone: format, vet and the fast tests (2 minutes)
	MEMORYMARK_TEST_PYTHON= $(GO) test -short $$($(GO) list ./... | grep -vE '/internal/($(SLOW))$$|/scripts/')

lint: vet ## Check format, vet, lint and go.mod
	$(TOOL) golangci-lint run ./...
	$(GO) mod tidy -diff

vet:
	@unformatted="$$($(TOOL) gofumpt -l .)"; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...

fmt: ## Format all Go files
	$(TOOL) gofumpt -w .

# Of what the tests say, only what was tried and what held, and what failed; without an ok they have failed.
HELD := awk '!/^(=== |PASS| *--- PASS)/ { sub(/^ *[a-z0-9_]+_test.go:[0-9]+: /, "  "); print; fflush() } /^ok / { ok = 1 } END { exit !ok }'

endurance: ## Kill, crash, stop, cut off and mistreat servers, let their disks fail, search the question that takes most, for ENDURANCE (10m) and a while; print what was tried and what held
	@MEMORYMARK_KILLS=$(KILLS) MEMORYMARK_CRASHES=$(CRASHES) MEMORYMARK_ENDURANCE=$(ENDURANCE) $(GO) test ./internal/job -run '^(TestKill|TestCrashAnywhere|TestFailingWrites|TestHistory)$$' -v -count 1 -timeout 0 | $(HELD)
	@MEMORYMARK_ENDURANCE=$(ENDURANCE) $(GO) test ./internal/cli -run '^TestEndurance$$' -v -count 1 -timeout 0 | $(HELD)
	@MEMORYMARK_ENDURANCE=$(ENDURANCE) $(GO) test ./internal/server -run '^Test(WorstQuestions|LargePlan)$$' -v -count 1 -timeout 0 | $(HELD)

bench: ## Run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-report: venv build ## Compare with PyTorch's tracker and with pickle, load the API, and write docs/benchmarks.md (10 minutes)
	'$(MEMORYMARK_TEST_PYTHON)' bench/report.py --memorymark $(BIN) $(BENCH_ARGS)

test-gpu: ## Run real steps on this machine's GPU; a machine without Go takes build/gpu.test along
	@if command -v $(GO) > /dev/null; then CGO_ENABLED=0 $(GO) test -c -o build/gpu.test ./internal/analysis; fi
	cd internal/analysis && MEMORYMARK_PYTHON='$(PYTHON)' ../../build/gpu.test -gpu -test.run '^TestGPU' -test.v $(TEST_ARGS)

test-versions: build ## Run programs on the emulated GPU with every PyTorch from 2.4 on, each in an environment of its own (an hour, 6 GB at a time); ONLY=2.6,2.8
	$(GO) run ./scripts/versions -memorymark $(BIN) -python '$(PYTHON)' -only '$(ONLY)'

bench-gpu: ## Compare finding the largest batch with other tools, on this machine's GPU; bench/gpu/README.md
	@if command -v $(GO) > /dev/null; then $(MAKE) build; fi
	$(PYTHON) bench/gpu/compare.py --memorymark $(BIN) $(BENCH_ARGS)

# Targets with goroutines take other paths each time, and inputs of theirs would be minimized for a minute each.
fuzz: ## Run each fuzz target for FUZZTIME (30s)
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$pkg || exit 1; \
		done; \
	done

golden: ## Rewrite the expected outputs of the tests; read the diff
	$(GO) test ./internal/cli ./internal/draw ./internal/server ./internal/study -update

accuracy: ## Predict the truth again and rewrite docs/accuracy.md and what the binary states
	$(GO) test ./internal/predict -run '^TestAccuracy$$' -update

run: ## Build, with the page where there is Node.js, and serve; ARGS='predict bert' runs something else
	@if command -v $(NPM) > /dev/null; then $(MAKE) --no-print-directory web; fi
	@$(MAKE) --no-print-directory build
	$(BIN) $(ARGS)

pictures: web build ## Take the README's pictures of the page and the terminal again
	$(GO) run ./scripts/terminal -memorymark $(BIN)
	$(BIN) snapshot timeline examples/gpt2_oom.pickle.xz -o docs/images/timeline.png
	$(BIN) plan llama-3.1-8b --sequence 2048 -o docs/images/plan.png >/dev/null
	CHROMIUM='$(CHROMIUM)' MEMORYMARK_BIN='$(abspath $(BIN))' node web/test/readme.mjs

wheel: web ## Build the Python wheels for Linux and macOS into build/wheels (needs gcc-aarch64-linux-gnu), or PLATFORM=here
	$(GO) run ./scripts/release -wheels -platform '$(PLATFORM)' -version '$(VERSION)' -commit '$(COMMIT)' -out build/wheels

release: web ## Build the archives for Linux and macOS into build/release, with checksums, bills of materials and, with KEY, a signature (needs gcc-aarch64-linux-gnu)
	$(GO) run ./scripts/release -version '$(VERSION)' -commit '$(COMMIT)' -out build/release $(if $(KEY),-key $(KEY))

release-key: ## Make the key that signs releases, once; KEY names its file. Commit allowed_signers then
	@test -n '$(KEY)' || { echo 'KEY names the file for the private key: make release-key KEY=~/.ssh/release_ed25519'; exit 1; }
	$(GO) run ./scripts/release -make-key -key $(KEY)

clean: ## Remove what was built
	rm -rf build web/node_modules web/dist/*

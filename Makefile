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

# The syntax trees of the models that others wrote, made once for each state of what they are made of.
TREES      := internal/pymodule/trees
OTHERS     := 4.51 4.57 5.22
RECORDED   := bart,bert,deberta_v2,distilbert,electra,gemma,gemma2,gemma3,gpt2,gpt_neox,llama,mistral,olmo2,opt,phi3,qwen2,qwen3,roberta,smollm3,t5,vit,xlm_roberta
TREES_FROM := internal/pymodule/source.txt $(OTHERS:%=internal/pymodule/source-%.txt) internal/pymodule/trees.py
TREES_MADE := $(TREES)/made-$(firstword $(shell { echo $(RECORDED); cat $(TREES_FROM); } | cksum))

# The page's packages are installed once for each state of their lock file.
WEB_MADE := web/node_modules/made-$(firstword $(shell cksum < web/package-lock.json))
CHROMIUM ?= /usr/bin/chromium

# The key that signs a release (never in quotes, so that ~ means the same in every shell), and the versions of the scanners for vulnerabilities.
KEY         ?=
GOVULNCHECK := v1.8.0
PIP_AUDIT   := 2.10.1

.DEFAULT_GOAL := help
.PHONY: help build web models families check test nightly compile unit unit-race unit-plain unit-computing unit-python page page-tests browser venv lint vet format fmt bench endurance bench-report test-gpu test-versions bench-gpu fuzz golden accuracy run pictures release clean site wheel requirements vulnerabilities vulnerabilities-go vulnerabilities-npm vulnerabilities-pip release-key

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the static binary build/memorymark, with the page and the source of models if these were made
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/memorymark

web: $(WEB_MADE) ## Build the page into web/dist, which the next build embeds
	cd web && $(NPM) run --silent build

models: $(TREES_MADE) ## Fetch the source of transformers' models (by hash, without PyTorch), which the next build embeds

$(TREES_MADE): $(TREES_FROM)
	rm -rf build/source* $(TREES)/*
	for version in '' $(OTHERS:%=-%); do $(PYTHON) -m pip download --quiet --no-deps --require-hashes --only-binary :all: \
		-d build/source$$version -r internal/pymodule/source$$version.txt || exit 1; done
	$(PYTHON) internal/pymodule/trees.py build/source/*.whl > build/source/transformers.zip
	for version in $(OTHERS); do $(PYTHON) internal/pymodule/trees.py --families=$(RECORDED) build/source-$$version/*.whl \
		> build/source/transformers-$$version.zip || exit 1; done
	$(PYTHON) -c 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); print(z.read(next(n for n in z.namelist() if n.endswith("/LICENSE"))).decode())' build/source/*.whl > $(TREES)/LICENSE
	mv build/source/*.zip $(TREES)
	touch $@

# Not "npm ci": it refuses a lock file that lacks the packages of other
# platforms, which a registry may not have. The versions are the lock file's.
$(WEB_MADE): web/package-lock.json
	@command -v $(NPM) >/dev/null || { echo 'The page is built with Node.js 20 or newer and its npm; install them, or set NPM.'; exit 1; }
	cd web && $(NPM) install --no-save --prefer-offline
	touch $@

# Everything is told at the end of its part, and a part that fails does not stop the others. The page is built first, since
# Go embeds it; what a bare machine downloads and compiles overlaps.
test: ## Check everything before a push: format, lint, go.mod, tests, the page in a browser (15 minutes on two cores)
	@$(PARTS) web models venv browser compile
	@$(MAKE) --no-print-directory build
	@$(PARTS) unit-computing unit-race unit-plain unit-python page-tests lint

nightly: build ## Run the long proofs before an issue is closed: all tests at full length, endurance, every PyTorch (2 hours)
	$(MAKE) --no-print-directory unit SHORT=
	$(MAKE) --no-print-directory endurance test-versions families

families: venv models build ## Emulate a small model of every family and head again, and compare the predictions (20 minutes)
	rm -f build/pairs.jsonl
	$(BIN) run --gpu h200 --values assumed --summary build/pairs-summary.json -- '$(MEMORYMARK_TEST_PYTHON)' testdata/truth/pairs/record.py testdata/truth/pairs/pairs.jsonl.xz build/pairs.jsonl
	MEMORYMARK_PAIRS='$(abspath build/pairs.jsonl)' $(GO) test ./internal/pymodule -run TestPairs -count=1

PARTS := $(MAKE) --no-print-directory -j6 --keep-going --output-sync=target

# Packages that start goroutines, in their code or their tests, are tested with the race detector. Files of theirs with tests
# that only compute say "//go:build !race": those run without it, since it makes computing ten times as long.
RACED     = $(addprefix ./,$(sort $(dir $(shell grep -rlE --include='*.go' '^\s*go [a-z]|[.]Go\>' internal))))
COMPUTING = $(shell grep -rlE --include='*_test.go' '^//go:build !race' internal)
UNRACED   = $(filter-out $(RACED:%/=%),$(patsubst memorymark%,.%,$(shell $(GO) list ./...)))
# Long proofs are short in "make test". LIMIT only ends what hangs: a disturbed machine takes its time.
SHORT    := -short
LIMIT    := -timeout 80m
GO_TEST   = MEMORYMARK_TEST_PYTHON='$(MEMORYMARK_TEST_PYTHON)' $(TOOL) gotestsum --format pkgname -- $(SHORT) $(LIMIT)

compile: web models
	$(GO) build ./... && $(GO) build -race $(RACED) && $(TOOL) golangci-lint version > /dev/null

unit: venv models build ## Run the tests of Go and Python alone
	@$(PARTS) unit-computing unit-race unit-plain unit-python

unit-race:
	$(GO_TEST) -race $(RACED)

unit-plain:
	$(GO_TEST) $(UNRACED)

unit-computing:
	$(GO_TEST) -run "^($$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' $(COMPUTING) | paste -sd '|'))$$" $(addprefix ./,$(sort $(dir $(COMPUTING))))

unit-python:
	cd bench/gpu && '$(MEMORYMARK_TEST_PYTHON)' -m unittest --quiet
	cd python && MEMORYMARK_BINARY='$(abspath $(BIN))' '$(MEMORYMARK_TEST_PYTHON)' -m unittest discover --quiet tests

page: web browser venv build ## Check the page: types, lint, unit tests, then the built binary in a real browser
	@$(MAKE) --no-print-directory page-tests

page-tests:
	$(MAKE) --no-print-directory site SITE=build/site-test SITE_ARGS='-models gpt2,llama-3.2-1b -cards rtx-4090,t4'
	cd web && $(NPM) run --silent check && $(NPM) test --silent
	cd web && CHROMIUM='$(CHROMIUM)' MEMORYMARK_SITE='$(abspath build/site-test)' MEMORYMARK_BIN='$(abspath $(BIN))' MEMORYMARK_TEST_PYTHON='$(MEMORYMARK_TEST_PYTHON)' $(NPM) run --silent test:browser

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
vulnerabilities: ## Look for known vulnerabilities in what the program, its page and its tests are made of (needs the internet)
	$(MAKE) --no-print-directory --keep-going vulnerabilities-go vulnerabilities-npm vulnerabilities-pip

vulnerabilities-go:
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...

vulnerabilities-npm:
	cd web && $(NPM) audit --omit=dev --audit-level=moderate

vulnerabilities-pip:
	$(PYTHON) -m venv --clear build/audit
	build/audit/bin/python -m pip install --quiet pip-audit==$(PIP_AUDIT)
	build/audit/bin/pip-audit --strict --require-hashes --disable-pip -r $(REQUIREMENTS)

# The tests of these packages take minutes, or need Python.
SLOW := analysis|engine|job|measure|emulate|server|study

check: vet ## Check quickly, with Go alone: format, vet and the fast tests (2 minutes)
	MEMORYMARK_TEST_PYTHON= $(GO) test -short $$($(GO) list ./... | grep -vE '/internal/($(SLOW))$$|/scripts/')
lint: format ## Check format, lint (which vets) and go.mod
	$(TOOL) golangci-lint run ./...
	$(GO) mod tidy -diff

vet: format
	$(GO) vet ./...

format:
	@unformatted="$$($(TOOL) gofumpt -l .)"; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi

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
	@if command -v $(GO) > /dev/null; then CGO_ENABLED=0 $(GO) test -c -o build/gpu.test ./internal/engine; fi
	cd internal/engine && MEMORYMARK_PYTHON='$(PYTHON)' ../../build/gpu.test -gpu -test.run '^TestGPU' -test.v $(TEST_ARGS)

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
	$(GO) test ./internal/cli ./internal/draw ./internal/report ./internal/server ./internal/study ./internal/workload -update

accuracy: ## Predict the truth again and rewrite docs/accuracy.md and what the binary states
	$(GO) test ./internal/predict -run '^TestAccuracy$$' -update

run: ## Build, with the page where there is Node.js, and serve; ARGS='predict bert' runs something else
	@if command -v $(NPM) > /dev/null; then $(MAKE) --no-print-directory web; fi
	@$(MAKE) --no-print-directory models || echo 'Only families that are written by hand are predicted: the source of the others could not be fetched.'
	@$(MAKE) --no-print-directory build
	$(BIN) $(ARGS)

pictures: web build venv ## Take the README's pictures of the page and the terminal again
	PATH="$(dir $(MEMORYMARK_TEST_PYTHON)):$$PATH" $(GO) run ./scripts/terminal -memorymark $(BIN)
	$(BIN) snapshot timeline examples/gpt2_oom.pickle.xz -o docs/images/timeline.png
	$(BIN) plan llama-3.1-8b --sequence 2048 -o docs/images/plan.png >/dev/null
	CHROMIUM='$(CHROMIUM)' MEMORYMARK_BIN='$(abspath $(BIN))' node web/test/readme.mjs

SITE_URL ?= https://memorymark.example/
SITE_ARGS ?=
SITE     ?= build/site

site: $(WEB_MADE) models ## Build the site of plain files into build/site, for any host; SITE_URL is its address, SITE_ARGS='-models all -cards all' writes every page
	cd web && $(NPM) run --silent types && $(NPM) run --silent standalone && npx vite build --base ./ --outDir ../build/site-page --emptyOutDir --logLevel warn
	rm -rf $(SITE)
	$(GO) run ./scripts/site -out $(SITE) -version '$(VERSION)' -url '$(SITE_URL)' $(SITE_ARGS)

wheel: web models ## Build the Python wheels for Linux and macOS into build/wheels (needs gcc-aarch64-linux-gnu), or PLATFORM=here
	$(GO) run ./scripts/release -wheels -platform '$(PLATFORM)' -version '$(VERSION)' -commit '$(COMMIT)' -out build/wheels

release: web models ## Build the archives for Linux and macOS into build/release, with checksums, bills of materials and, with KEY, a signature (needs gcc-aarch64-linux-gnu)
	$(GO) run ./scripts/release -version '$(VERSION)' -commit '$(COMMIT)' -out build/release $(if $(PROJECT),-project '$(PROJECT)') $(if $(DOWNLOADS),-downloads '$(DOWNLOADS)') $(if $(KEY),-key $(KEY))

release-key: ## Make the key that signs releases, once; KEY names its file. Commit allowed_signers then
	@test -n '$(KEY)' || { echo 'KEY names the file for the private key: make release-key KEY=~/.ssh/release_ed25519'; exit 1; }
	$(GO) run ./scripts/release -make-key -key $(KEY)

clean: ## Remove what was built
	rm -rf build web/node_modules web/dist/* $(TREES)/*

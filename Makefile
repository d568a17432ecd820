# Every target says what it does; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
# Programs that the scripts start may not be stopped half-way by a second job.
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/caisson, static and for this machine
	CGO_ENABLED=0 go build -trimpath -o bin/caisson .

.PHONY: demo
demo: build ## set up all it needs and show the main job through a real MCP client
	scripts/with-engine go run ./e2e/demo

.PHONY: serve
serve: build ## serve over Streamable HTTP and SSE on 127.0.0.1:8811
	scripts/with-engine bin/caisson serve --transport http

.PHONY: test
test: ## set up all it needs and run every test, on an engine of its own
	scripts/test

.PHONY: soak
soak: ## run thousands of commands, and what is left of them, on an engine of its own
	scripts/soak

.PHONY: chaos
chaos: ## kill servers, clients and engines for ten minutes, and look for lies and leftovers
	scripts/chaos

.PHONY: check
check: ## format, linters, shell scripts, known vulnerabilities; needs no engine
	scripts/check

.PHONY: release
release: ## build the archives of this commit for every system into dist/, with SBOMs and checksums
	scripts/release

.PHONY: verify-release
verify-release: ## the same twice, in other places, and compare
	scripts/release --verify
	CAISSON_VERIFY_RELEASE=1 go test ./e2e -run TwoBuildsAreEqual -timeout 20m

.PHONY: vulns
vulns: ## ask today's database of vulnerabilities, and fail where it cannot be asked
	CAISSON_VULNS_REQUIRED=1 scripts/vulns --latest

.PHONY: bench
bench: build ## measure on the development engine
	scripts/with-engine scripts/bench

.PHONY: generate
generate: ## rewrite what is made from code: tables of the docs, snapshots
	go generate ./...

.PHONY: fmt
fmt: ## format the Go files
	go tool gofumpt -w $$(git ls-files '*.go')

.PHONY: engine
engine: ## start the development engine; source .engine/env to use it
	scripts/engine up dev

.PHONY: engine-down
engine-down: ## stop the development engine and remove all that it made
	scripts/engine down dev

.PHONY: worker
worker: ## build images/tools/bin/caisson-worker, which the tool image takes in
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o images/tools/bin/caisson-worker ./executor/worker/caisson-worker

.PHONY: images
images: engine ## make the development engine's images
	scripts/images dev

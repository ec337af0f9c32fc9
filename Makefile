# Every target says what it does in `make help`. CI calls these names and nothing else.
SHELL := /bin/sh
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/tulle-mesh/tulle/internal/version.version=$(VERSION)
TOOL := go tool -modfile=hack/go.mod
GO_FILES = $(shell git ls-files --cached --others --exclude-standard '*.go' | grep -v '/zz_generated')
# Tests and the demo find the real Envoy here; ENVOY=path takes your own.
TULLE_ENVOY = $$(sh "$(CURDIR)/hack/envoy.sh")

.PHONY: help
help: ## Show this list.
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build tulle and tulle-agent into bin/.
	@sh hack/preflight.sh build
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: test
test: build ## Run all tests, with real Envoy and network namespaces.
	@sh hack/preflight.sh test
	TULLE_ENVOY="$(TULLE_ENVOY)" TULLE_BIN="$(CURDIR)/bin" go test ./...

.PHONY: race
race: ## Run the tests of everything that is concurrent under the race detector.
	go test -race ./internal/clock/... ./internal/store/... ./internal/xds/... ./internal/plane/... ./internal/files/... ./internal/metrics/...

.PHONY: lint
lint: ## Run the linters: correctness, size limits, layers.
	$(TOOL) golangci-lint run --allow-parallel-runners ./...
	cd hack && go tool golangci-lint run --allow-parallel-runners -c ../.golangci.yml ./image/... ./lab/...
	cd test/bench && go tool -modfile=../../hack/go.mod golangci-lint run --allow-parallel-runners -c ../../.golangci.yml ./...

.PHONY: fmt
fmt: ## Format Go files and the module files.
	@$(TOOL) golangci-lint fmt ./...
	@go mod tidy
	@cd test/bench && go mod tidy
	@cd hack && go mod tidy

.PHONY: generate
generate: ## Write deep copies, custom resource definitions and golden files again.
	sh hack/generate.sh

.PHONY: verify
verify: generate fmt lint ## Generate, format and lint; fail on any difference or untracked file.
	@sh hack/verify-clean.sh

.PHONY: demo
demo: build ## Run the DJ app with real Envoys on this machine and measure its canary.
	@sh hack/preflight.sh demo
	@TULLE_ENVOY="$(TULLE_ENVOY)" bin/tulle playground djapp

.PHONY: bench
bench: build ## Measure delivery against the floor and a SnapshotCache; writes test/bench/RESULTS.md.
	cd test/bench && go run . -tulle ../../bin/tulle -out RESULTS.md

.PHONY: image
image: build ## Build the container images of tulle and tulle-agent into dist/ (no Docker needed).
	cd hack && go run ./image -bin ../bin -envoy "$(TULLE_ENVOY)" -version '$(VERSION)' -out ../dist

.PHONY: charts
charts: ## Package the Helm charts into dist/charts, a Helm repository.
	@sh hack/charts.sh

.PHONY: demo-kind
demo-kind: ## Run the DJ app on a Kubernetes of its own, with Docker and kind.
	@sh hack/demo-kind.sh

.PHONY: lab
lab: ## Bring up a real one-node Kubernetes on this machine, built from Go modules (see hack/lab).
	hack/lab/up

.PHONY: e2e
e2e: ## Run the walkthroughs and users' cases on a real cluster of their own (RUN=regexp, KEEP=1; see test/e2e).
	@sh hack/preflight.sh e2e
	@test/e2e/run

.PHONY: e2e-measure
e2e-measure: ## Measure on such a cluster: change to ack, controller at rest and with 1,000 nodes, start of pods.
	@sh hack/preflight.sh e2e
	@TAGS=e2e,measure RUN=$(or $(RUN),TestMeasure) PARALLEL=1 test/e2e/run

.PHONY: lab-down
lab-down: ## Take it down; nothing stays behind.
	hack/lab/down

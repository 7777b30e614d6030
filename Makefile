# Everything that people and pipelines do, by environment: `make deploy ENV=prod`. `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

ENV ?= local
ARGS ?=
PYTHON ?= python3
export PATH := $(CURDIR)/.tools/bin:$(CURDIR)/.venv/bin:$(PATH)

CHART := helm/vllm-speculative
SETUP := $(PYTHON) scripts/setup
SPECDEC := specdec
# Plans of ENV's infrastructure that make cloud-plan left.
PLANS = $(wildcard environments/$(ENV)/.specdec/plans/*.json)
# What a deployment to an environment needs on this machine: the local one builds its own cluster and images.
NEEDS := python tools $(if $(filter local,$(ENV)),$(if $(KUBECONTEXT),,cluster) engine)
# An environment with variables for Terraform makes its cluster itself, unless one is named.
CLOUD := $(if $(KUBECONTEXT),,$(if $(wildcard environments/$(ENV)/terraform.tfvars),terraform))

# Stories that need a controller of their own.
CONTROLLED = $(addprefix tests/e2e/test_,autoscaling.py gateway.py scenarios.py)

.PHONY: help setup lint test e2e e2e-controllers golden docs lock clean engines engines-check
.PHONY: deploy plan validate render diff smoke bench status destroy
.PHONY: init cloud-plan apply drift comment package mutate-terraform fuzz mutate

help: ## List the targets
	@echo "usage: make TARGET [ENV=local|dev|prod] [ARGS='--flag value']"
	@echo
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18 | sed 's/^/  /'

setup: ## Install what everything else needs, into .venv and .tools (safe to repeat, resumes)
	@$(SETUP) all

##@ An environment
deploy: ## Deploy ENV and show that it works: `make deploy ENV=local` needs nothing but this checkout
	@$(SETUP) $(NEEDS) $(CLOUD)
	@$(SPECDEC) deploy $(ENV) $(ARGS)

plan: ## Say before any GPU is bought whether ENV's models fit, how fast they will be and which K to use
	@$(SETUP) python tools
	@$(SPECDEC) plan $(ENV) $(ARGS)

validate: ## Check ENV's rendered manifests against the rules
	@$(SETUP) python tools
	@$(SPECDEC) validate $(ENV) $(ARGS)

render: ## Print ENV's manifests
	@$(SETUP) --quiet python tools
	@$(SPECDEC) render $(ENV) $(ARGS)

smoke: ## Ask the deployed ENV for answers and check that it speculates
	@$(SETUP) python tools
	@$(SPECDEC) smoke $(ENV) $(ARGS)

bench: ## Measure ENV's engines against each other, and write a report: make bench ARGS='--concurrency 1,4,8'
	@$(SETUP) python tools
	@$(SPECDEC) bench $(ENV) $(ARGS)

status: ## Show what runs in ENV
	@$(SETUP) --quiet python tools
	@$(SPECDEC) status $(ENV) $(ARGS)

destroy: ## Take ENV down
	@$(SETUP) python tools $(CLOUD)
	@$(SPECDEC) destroy $(ENV) $(ARGS)

init: ## Make a new ENV from a few answers, and plan it: make init ENV=team-a
	@$(SETUP) python tools
	@$(SPECDEC) init $(ENV) $(ARGS)

cloud-plan: ## Plan ENV's infrastructure, check it, and keep the plan for make apply
	@$(SETUP) python tools terraform
	@$(SPECDEC) deploy $(ENV) --plan-only $(ARGS)

apply: ## Apply the plan that make cloud-plan kept, then platform, chart and smoke test
	@$(SETUP) python tools terraform
	@$(SPECDEC) deploy $(ENV) --from apply --yes $(ARGS)

drift: ## Say what in ENV's cloud is not as it was applied
	@$(SETUP) --quiet python tools terraform
	@$(SPECDEC) drift $(ENV) $(ARGS)

comment: ## Write what a change does to ENV as a comment: plan, guard, rules, memory, cost
	@$(SETUP) --quiet python tools
	@$(SPECDEC) comment $(ENV) $(foreach plan,$(PLANS),--plan $(plan)) $(ARGS)

package: ## Package the chart with the digests of its images, into dist/
	@$(SETUP) python tools
	@$(SPECDEC) package $(ARGS)

##@ This repository
lint: ## Run every linter
	@$(SETUP) python tools lint terraform checkov
	@scripts/lint

test: lint ## Lint, then run every test that needs no cluster
	@$(SETUP) python tools lint monitoring terraform engine schemas
	@pytest -n auto --dist loadgroup $(ARGS)

e2e: ## Run the end-to-end test on a cluster of its own (root, Linux, 20 minutes)
	@$(SETUP) python tools monitoring cluster engine
	@pytest tests/cluster/test_up_down.py tests/e2e $(addprefix --ignore=,$(CONTROLLED)) -v -s -x $(ARGS)

e2e-controllers: ## Scale with KEDA and stream through Traefik's Gateway and Ingress (their programs take 20 minutes to build)
	@$(SETUP) python tools monitoring cluster engine controllers
	@pytest $(CONTROLLED) -v -s -x $(ARGS)

fuzz: ## Render 10,000 engines with any values, and see a rendering or an error of ours (20 minutes)
	@$(SETUP) python tools
	@FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-10000} pytest -s tests/chart/test_properties.py $(ARGS)

mutate: ## Leave out each argument and move each version bound of the chart, and see a test fail (goes on where it was)
	@$(SETUP) python tools
	@PYTHONPATH=. python -m tests.chart.mutate

mutate-terraform: ## Take every validation out of the Terraform modules, one by one, and see a test fail (an hour)
	@$(SETUP) python tools terraform
	@pytest -m slow tests/terraform/test_mutation.py $(ARGS)

golden: ## Renew the golden renderings in rendered/
	@$(SETUP) python tools
	@$(CHART)/ci/render

engines: ## Write vLLM VERSION's names and metrics into the tables, and list what a person has to decide
	@$(if $(VERSION),,$(error VERSION is not set: make engines VERSION=0.34.0))$(SETUP) --quiet python uv
	@python -m specdec.engine_surface $(VERSION) $(SOURCE) --write

engines-check: ## Ask vLLM VERSION itself what the chart was asked: exit 1 where they differ (6 GB in .tools/engines)
	@$(if $(VERSION),,$(error VERSION is not set: make engines-check VERSION=0.28.0))$(SETUP) --quiet python tools uv
	@python -m specdec.engine_check $(VERSION) --build .tools/engines/$(VERSION)

docs: ## Renew the pages of the rules in docs/rules
	@$(SETUP) python
	@$(SPECDEC) rules --write docs/rules

lock: ## Renew the hashed requirements from their .in files
	@$(SETUP) uv
	@scripts/setup/lock

clean: ## Remove what set-up made (caches of pip, uv and Go stay)
	@rm -rf .venv .tools

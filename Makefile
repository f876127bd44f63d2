# make test    minutes, with Go alone: format, vet, every package with -short
# make check   everything else: staticcheck, the race detector, full corpora, real
#              databases, a browser, programs of npm, crashes, fuzzing
# make soak    the same at length, half an hour, with a table of what was seen

TOOL = go tool -modfile=$(CURDIR)/internal/tools/go.mod
GOTEST = internal/test/gotest.sh

# How long each fuzz target runs, and how many targets: all of them, or so many.
FUZZTIME ?= 10s
FUZZ ?= all

# How long make soak has an organization at work.
SOAK ?= 10m

# Packages that run without the race detector: the JavaScript engine is C that was
# translated to Go, and takes twenty times as long with it; the others start programs
# that are built without it.
PLAIN = ./internal/js/... ./model/script ./modules/chrome ./internal/test/e2e

# Tests in modules of their own, whose requirements are none of rolecall's.
MODULES = internal/test/scripts internal/test/crashtest

.PHONY: test check format vet short staticcheck race plain deps fuzz fuzz-some bench soak test-llm

# timed runs targets and prints how long they took.
timed = @start=$$(date +%s); $(MAKE) --no-print-directory $(1) && echo "make $@: $$(($$(date +%s) - start)) s"

test:
	$(call timed,format vet short)

check: deps
	$(call timed,staticcheck race plain fuzz-some)

format:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }

vet:
	go vet ./...
	@for m in bench $(MODULES); do go vet -C $$m ./... || exit 1; done

short:
	$(GOTEST) -short -shuffle=on ./...
	@for m in $(MODULES); do $(GOTEST) -C=$$m -short -shuffle=on ./... || exit 1; done

staticcheck:
	$(TOOL) staticcheck ./...
	@for m in $(MODULES); do (cd $$m && $(TOOL) staticcheck ./...) || exit 1; done

race:
	$(GOTEST) -race -shuffle=on -timeout=20m $$(go list ./... | grep -vxF "$$(go list $(PLAIN))")

plain:
	$(GOTEST) -shuffle=on -timeout=20m $(PLAIN)
	@for m in $(MODULES); do $(GOTEST) -C=$$m -shuffle=on -timeout=20m ./... || exit 1; done

# What the tests of make check start and a machine may lack.
deps:
	@internal/test/deps.sh

# Fuzz targets, each for FUZZTIME: make fuzz FUZZTIME=10m, or FUZZ=5 for five of them.
fuzz:
	@internal/test/fuzz.sh $(FUZZTIME) $(FUZZ)

fuzz-some:
	@internal/test/fuzz.sh 2s 6

# The figures of docs/performance.md.
bench:
	cd bench && go run .

# Crashes, power cuts, damage and load at length, with a table of what was seen
# in the end; docs/reliability.md shows a run. It takes half an hour and wants to be
# root.
soak: export ROLECALL_VERDICTS = $(CURDIR)/soak.jsonl
soak: deps
	@rm -f $(ROLECALL_VERDICTS)
	go test -C internal/test/crashtest -count=1 -timeout 90m . -cycles 1000 -cuts 40 -lives 20 -faults 20 -flips 2000 || $(call broken,internal/test/crashtest)
	go test -count=1 -run 'Crash|Stop|Stor|Backup|Schema|Open' ./gate ./runtime ./persist || $(call broken,gate runtime persist)
	go test -count=1 -timeout 60m -run '^(TestClosure|TestTask_NeverExceedsCaller)$$' ./property_test -closure 10000 || $(call broken,property_test)
	cd bench && go run . -for $(SOAK) append restart durabletask durable spawn idle load million soak || $(call broken,bench)
	go run ./internal/test/soakreport/table $(ROLECALL_VERDICTS)

# broken adds a line for a part of soak that did not come to its end.
broken = echo '{"part":"run","claim":"$(1) comes to its end","seen":"it failed"}' >> $(ROLECALL_VERDICTS)

# An organization that thinks with a small real model; not part of test.
test-llm: internal/test/e2e/.venv/ready
	go vet -tags llm ./internal/test/e2e
	go test -tags llm -count=1 -v -timeout 60m -run '^TestASmallModel' ./internal/test/e2e

internal/test/e2e/.venv/ready: internal/test/e2e/requirements.txt internal/test/e2e/llm.sh
	@internal/test/e2e/llm.sh

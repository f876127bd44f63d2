# make test    minutes, with Go alone: format, vet, every package with -short
# make check   everything else: staticcheck, other platforms, the race detector, full
#              corpora, real databases, a browser, programs of npm, crashes, fuzzing
# make soak    long runs of half an hour, with a table of results

TOOL = go tool -modfile=$(CURDIR)/internal/tools/go.mod
GOTEST = internal/test/gotest.sh

# Duration of each fuzz target, and the number of targets (all, or a number).
FUZZTIME ?= 10s
FUZZ ?= all

# Duration of the steady load in make soak.
SOAK ?= 10m

# Packages that run without the race detector. The first line waits for browsers and other
# programs, and starts first. The second has the JavaScript engine, which is C translated to Go
# and runs twenty times slower with it, and starts programs that are built without it. The
# others have one goroutine, and so has what they import.
PLAIN = ./modules/chrome ./internal/test/webpage ./internal/test/e2e \
	./internal/js/... ./model/script ./internal/test/contributing ./internal/test/dbtest ./examples/own-build \
	./internal/test/api ./internal/test/embed ./internal/test/mutations ./internal/yamldoc/... ./internal/argschema \
	./internal/config ./internal/hours ./modules/toolbox/toolboxfile

# Modules of their own, so that rolecall does not depend on what they require.
MODULES = modules/toolservice/kafka modules/toolservice/pulsar internal/test/scripts internal/test/crashtest internal/test/prompts internal/test/openapi internal/release internal/tools

# Modules that make test leaves to make check: the validator of OpenAPI alone compiles for
# five minutes, and the others have libraries that nothing else needs.
SLOW_MODULES = internal/test/openapi internal/release modules/toolservice/kafka modules/toolservice/pulsar internal/tools
QUICK_MODULES = $(filter-out $(SLOW_MODULES),$(MODULES))

# Packages that decide who may call a tool. Their own tests reach every statement.
COVERED = ./gate ./toolgroups

# Packages whose tests take longest. They start first, so that none of them ends alone.
LONGEST = ./runtime ./modules/mcpclient ./property_test ./cmd ./gateway ./internal/app ./builtin

# The platforms beside this one. The benchmarks and the crash tests are for Linux on a 64-bit
# processor.
PLATFORMS = darwin/arm64 windows/amd64 linux/386 linux/arm64 freebsd/amd64

.PHONY: test check disk format vet short short-packages short-modules staticcheck api cover portable portable-all race plain plain-packages plain-others deps tidy notices fuzz fuzz-some bench bench-once soak test-llm test-interop test-pulsar release

# Releases are built without cgo, and so are the tests: that links them without the linker
# of C. Only the race detector needs cgo.
export CGO_ENABLED = 0
race: export CGO_ENABLED = 1

# The race detector waits for a second before each package ends.
race: export GORACE = atexit_sleep_ms=100

# timed runs targets one after another and prints how long they took, together and each.
timed = @start=$$(date +%s); for target in $(1); do \
		from=$$(date +%s); $(MAKE) --no-print-directory $$target || exit 1; \
		parts="$$parts, $$target $$(($$(date +%s) - from))"; \
	done; echo "make $@: $$(($$(date +%s) - start)) s$$parts"

test:
	$(call timed,format vet short)

check: disk deps
	$(call timed,staticcheck api portable cover race plain bench-once fuzz-some)

format:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }

vet:
	go vet ./...
	@for m in $(QUICK_MODULES); do go vet -C $$m ./... || exit 1; done

# Both take less time with more memory: compilers and tests leave much garbage. The tests of
# make check collect it as often as usual. make test, which runs before, has vetted them.
test check: export GOGC = 800
test check: export GOMEMLIMIT = 2GiB
CHECKFLAGS = '-exec=env -u GOGC -u GOMEMLIMIT' -shuffle=on -vet=off -timeout=20m

# The packages beside the modules, since some of both wait for processes and the disk. vet
# has run before.
short:
	@$(MAKE) --no-print-directory -j2 short-packages short-modules

short-packages:
	$(GOTEST) -short -shuffle=on -vet=off -p=3 $(LONGEST) ./...

short-modules:
	@for m in $(QUICK_MODULES); do $(GOTEST) -C=$$m -short -shuffle=on -vet=off ./... || exit 1; done

staticcheck:
	$(TOOL) staticcheck ./...
	@for m in $(MODULES); do (cd $$m && $(TOOL) staticcheck ./...) || exit 1; done
	@for m in bench $(SLOW_MODULES); do go vet -C $$m ./... || exit 1; done

# The API of the stable packages, compared with the last tag.
api:
	@internal/test/apidiff.sh

cover:
	@internal/test/cover.sh $(COVERED)

# The types of every package and test for the other platforms; make soak builds the program for
# them. The last line runs what 386 can show on an amd64 kernel: the sandbox refuses.
portable:
	go run -C internal/tools ./typecheck $(CURDIR) $(PLATFORMS)
	@[ "$$(go env GOOS GOARCH | tr "\n" /)" != linux/amd64/ ] || GOARCH=386 $(GOTEST) -run '^TestLauncher_RefusesOnOtherPlatforms$$' ./builtin/sandbox

portable-all:
	go run -C internal/tools ./typecheck $(CURDIR)/internal/test/scripts $(PLATFORMS)
	@for p in $(PLATFORMS); do GOOS=$${p%/*} GOARCH=$${p#*/} go build -o /dev/null ./cmd/rolecall || { echo "not portable to $$p"; exit 1; }; done

race:
	$(GOTEST) $(CHECKFLAGS) -race -p=3 $$(go list $(LONGEST) ./... | grep -vxF "$$(go list $(PLAIN))")

# The first waits for browsers and other programs, so that the second has the processors. The
# second repeats the tests that sample lists under the race detector.
plain:
	@$(MAKE) --no-print-directory -j2 plain-packages plain-others

plain-packages:
	$(GOTEST) $(CHECKFLAGS) -p=2 $(PLAIN)

plain-others:
	@sampled="$$(go run ./internal/test/sampled $$(go list ./... | grep -vxF "$$(go list $(PLAIN))"))" && $(GOTEST) $(CHECKFLAGS) -p=1 $$sampled
	@for m in bench/peers $(MODULES); do $(GOTEST) -C=$$m $(CHECKFLAGS) ./... || exit 1; done

# A full disk ends make check after many minutes, with errors of the compiler and of tests.
disk:
	@internal/test/disk.sh 12

# What the tests of make check start and a machine may lack.
deps: tidy
	@internal/test/deps.sh

# Each go.mod requires what its module imports and nothing else.
tidy:
	@for m in . bench bench/peers $(MODULES); do go mod tidy -C $$m -diff || { echo "run go mod tidy in $$m"; exit 1; }; done

# The licences of what go.mod requires, for THIRD_PARTY_NOTICES.md.
notices:
	go run ./internal/test/notices

# Fuzz targets, each for FUZZTIME: make fuzz FUZZTIME=10m, or FUZZ=5 for five of them.
fuzz:
	@internal/test/fuzz.sh $(FUZZTIME) $(FUZZ)

fuzz-some:
	@internal/test/fuzz.sh 2s 4

# Measures the numbers of docs/performance.md.
bench:
	cd bench && go run .

# Runs benchmarks once, small, to see that they work. Their figures do not count.
bench-once:
	@cd bench && go run . -rounds 1 -agents 10000 -for 2s task spawn message idle soak >/dev/null

# Long runs of crashes, power cuts, damage, load and mutations, with a table of results
# at the end; docs/reliability.md shows one. It takes half an hour and needs root.
soak: export ROLECALL_VERDICTS = $(CURDIR)/soak.jsonl
soak: deps
	@rm -f $(ROLECALL_VERDICTS)
	go test -C internal/test/crashtest -count=1 -timeout 90m . -cycles 1000 -cuts 40 -processes 20 -faults 20 -flips 2000 || $(call broken,internal/test/crashtest)
	go test -count=1 -run 'Crash|Stop|Stor|Backup|Schema|Open' ./gate ./runtime ./persist || $(call broken,gate runtime persist)
	go test -count=1 -timeout 60m -run '^(TestClosure|TestTask_NeverExceedsCaller)$$' ./property_test -closure 10000 || $(call broken,property_test)
	go test -count=1 -timeout 60m -run '^TestBounds_NoCallIsWiderThanItsLine$$' ./property_test -graphs 1000000 || $(call broken,property_test of bounds)
	go run ./internal/test/mutations || $(call broken,internal/test/mutations)
	$(MAKE) --no-print-directory portable-all || $(call broken,portable-all)
	go test -count=1 -run '^TestListener_NewcomerBesideStalled$$' ./gateway -connections 5000 -parallel 1 || $(call broken,gateway)
	go test -count=1 -run '^TestPage_ManyEvents$$' ./internal/test/webpage -follow 5m || $(call broken,internal/test/webpage)
	cd bench && go run . -for $(SOAK) append restart durabletask durable spawn idle load million soak || $(call broken,bench)
	go run ./internal/test/soakreport/table $(ROLECALL_VERDICTS)

# broken adds a result for a part of soak that failed to complete.
broken = echo '{"part":"run","claim":"$(1) completes","seen":"it failed"}' >> $(ROLECALL_VERDICTS)

# An organization that uses a small real model. Not part of make test.
test-llm: internal/test/e2e/.venv/ready
	go vet -tags llm ./internal/test/e2e
	go test -tags llm -count=1 -v -timeout 60m -run '^TestSmallModel' ./internal/test/e2e

internal/test/e2e/.venv/ready: internal/test/e2e/requirements.txt internal/test/e2e/llm.sh
	@internal/test/e2e/llm.sh

# Tool services of TrustGraph, called through RabbitMQ, and services of this module that
# TrustGraph calls. Its Python packages come from the Python index.
test-interop: internal/test/interop/.venv-2.11/ready deps
	go vet -tags interop ./internal/test/interop
	go test -tags interop -count=1 -v -timeout 10m ./internal/test/interop

internal/test/interop/.venv-2.11/ready: internal/test/interop/requirements-2.7.txt internal/test/interop/requirements-2.11.txt internal/test/interop/install.sh
	@internal/test/interop/install.sh

# The driver for Pulsar with the real broker, and tool services of TrustGraph behind it. Maven
# brings the broker (200 MB), which needs a JDK 17.
test-pulsar: internal/test/pulsarbroker/.build/ready internal/test/interop/.venv-2.11/ready
	go vet -C modules/toolservice/pulsar -tags pulsar ./...
	go test -C modules/toolservice/pulsar -tags pulsar -count=1 -v -timeout 15m ./...

internal/test/pulsarbroker/.build/ready: internal/test/pulsarbroker/pom.xml internal/test/pulsarbroker/install.sh $(wildcard internal/test/pulsarbroker/src/org/apache/pulsar/opentelemetry/*.java)
	@internal/test/pulsarbroker/install.sh

# The files of a release of the last commit, in dist/: docs/install.md describes them.
release:
	go run -C internal/release .

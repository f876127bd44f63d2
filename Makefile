STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

FUZZTIME ?= 3s

# How long make soak has an organization at work.
SOAK ?= 10m

.PHONY: test lint fuzz bench soak e2e-deps test-llm

# Everything that CI runs.
test: lint e2e-deps
	@modules/chrome/deps.sh
	@internal/test/dbtest/deps.sh
	go test -race -shuffle=on -count=1 ./...
	go test -count=1 ./sandbox
	go test -count=1 -run '^(TestClosure|TestTask_NeverExceedsCaller)$$' ./property_test
	$(MAKE) fuzz FUZZTIME=1s

# Every fuzz target there is, each for FUZZTIME: make fuzz FUZZTIME=10m
# The engine may end a run that found nothing with "context deadline exceeded"
# when its time is up; such a run is made again.
fuzz:
	@targets="$$(go test -list '^Fuzz' ./...)" || { echo "$$targets"; exit 1; }; \
	try() { out="$$(go test -run '^$$' -fuzz "^$$2\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$1" 2>&1)"; }; \
	late() { echo "$$out" | grep -q 'context deadline exceeded' && ! echo "$$out" | grep -q 'Failing input'; }; \
	echo "$$targets" | awk '/^Fuzz/ {names = names " " $$1} /^ok/ {n = split(names, list, " "); for (i = 1; i <= n; i++) print $$2, list[i]; names = ""}' | \
	while read -r package target; do \
		echo "fuzz $$package $$target"; \
		try "$$package" "$$target" || { late && try "$$package" "$$target"; } || { echo "$$out"; exit 1; }; \
	done

lint:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	cd bench && go vet ./...

# The figures of docs/performance.md.
bench:
	cd bench && go run .

# Crashes, power cuts, damage and load at length, with a table of what was seen
# in the end; docs/reliability.md shows a run. It takes half an hour, wants to be
# root, and installs xfsprogs where apt-get is there and mkfs.xfs is not.
soak: export ROLECALL_VERDICTS = $(CURDIR)/soak.jsonl
soak:
	@rm -f $(ROLECALL_VERDICTS)
	@internal/test/crashtest/deps.sh
	go test -count=1 -timeout 90m ./internal/crashtest -cycles 1000 -cuts 40 -lives 20 -faults 20 -flips 2000 || $(call broken,internal/test/crashtest)
	go test -count=1 -run 'Crash|StoreStops|Backup|Schema|Open' ./gate ./runtime ./persist || $(call broken,gate runtime persist)
	cd bench && go run . -for $(SOAK) append restart durabletask durable spawn idle load million soak || $(call broken,bench)
	go run ./internal/verdict/table $(ROLECALL_VERDICTS)

# broken adds a line for a part of soak that did not come to its end.
broken = echo '{"part":"run","claim":"$(1) comes to its end","seen":"it failed"}' >> $(ROLECALL_VERDICTS)

# The real parts of e2e, as e2e/package-lock.json pins them: 360 MB, half of it
# the node of its own that some of them need. No script of a package is run.
e2e-deps: e2e/node_modules/.package-lock.json

e2e/node_modules/.package-lock.json: e2e/package.json e2e/package-lock.json
	cd e2e && npm ci --ignore-scripts --loglevel=error --no-audit --no-fund >/dev/null
	@touch $@

# An organization that thinks with a small real model; not part of test.
test-llm: e2e/.venv/ready
	go vet -tags llm ./e2e
	go test -tags llm -count=1 -v -timeout 60m -run '^TestASmallModel' ./e2e

e2e/.venv/ready: e2e/requirements.txt e2e/llm.sh
	@e2e/llm.sh

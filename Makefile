STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: test lint bench

# Everything that CI runs.
test: lint
	go test -race -shuffle=on -count=1 ./...

lint:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	cd bench && go vet ./...

# The figures of docs/performance.md.
bench:
	cd bench && go run .

// The command that writes release files. It is not part of rolecall.
module github.com/rolecall/rolecall/internal/release

go 1.26.0

require (
	github.com/in-toto/attestation v1.2.0
	github.com/spdx/tools-golang v0.5.7
	golang.org/x/mod v0.41.0
	google.golang.org/protobuf v1.36.12
)

require github.com/anchore/go-struct-converter v0.1.0 // indirect

package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// checksumFile has the checksums of all other files.
const checksumFile = "SHA256SUMS"

// writeChecksums writes checksumFile, which sha256sum -c reads.
func (r *release) writeChecksums() error {
	var b strings.Builder
	for _, f := range r.files {
		fmt.Fprintf(&b, "%s  %s\n", f.sha256, f.name)
	}
	return r.writeFile(checksumFile, []byte(b.String()))
}

// digest returns a SHA-256 in hexadecimal digits.
func digest(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

package toolboxfile

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
)

// fingerprint returns a digest of the document's content, in hexadecimal digits.
// It is the same for all spellings. The texts of more are part of it.
func (it item) fingerprint(more ...string) string {
	it.r.scratch = yamldoc.AppendTexts(appendItem(it.r.scratch[:0], it.Item), more...)
	return hexDigest(it.r.scratch)
}

// appendItem appends an encoding of the document's content to b.
func appendItem(b []byte, it docset.Item) []byte {
	b = yamldoc.AppendTexts(b, it.Kind, it.Name)
	for key, val := range it.MapPairs() {
		name := key.Node.Value
		switch {
		case name == "kind" && it.IsEntry:
			name = "type"
		case name == "kind", name == "name":
			continue
		}
		b = val.AppendContent(yamldoc.AppendTexts(b, name))
	}
	return b
}

// hexDigest returns a digest of b in hexadecimal digits.
func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fieldsDigest returns a digest of the named fields.
func (it item) fieldsDigest(fields ...string) string {
	b := it.r.scratch[:0]
	for _, name := range fields {
		if at, ok := it.FindField(name); ok {
			b = at.AppendContent(yamldoc.AppendTexts(b, name))
		}
	}
	it.r.scratch = b
	sum := sha256.Sum256(b)
	return string(sum[:])
}

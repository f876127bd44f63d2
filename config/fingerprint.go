package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"go.yaml.in/yaml/v4"
)

// fingerprint returns a digest of the document's content, in hexadecimal digits.
// It is the same for all spellings. The texts of more are part of it.
func (it docItem) fingerprint(more ...string) string {
	b := appendText(it.doc.scratch[:0], it.kind, it.name)
	for key, val := range it.pairs() {
		name := key.node.Value
		switch {
		case name == "kind" && it.v1Entry:
			name = "type"
		case name == "kind", name == "name":
			continue
		}
		b = val.appendTo(appendText(b, name))
	}
	b = appendText(b, more...)
	it.doc.scratch = b
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fieldsDigest returns a digest of the named fields.
func (it docItem) fieldsDigest(fields ...string) string {
	b := it.doc.scratch[:0]
	for _, name := range fields {
		if at, ok := it.child(name); ok {
			b = at.appendTo(appendText(b, name))
		}
	}
	it.doc.scratch = b
	sum := sha256.Sum256(b)
	return string(sum[:])
}

// appendTo appends an unambiguous encoding of v to b, with variables substituted.
// It reports errors in the variables.
func (v value) appendTo(b []byte) []byte {
	b = append(b, byte(v.node.Kind))
	if v.node.Kind == yaml.ScalarNode {
		text := v.node.Value
		if !v.doc.unexpanded {
			text, _ = v.substituted()
		}
		return appendText(b, v.node.Tag, v.shortDigest(text))
	}
	b = binary.AppendUvarint(b, uint64(len(v.node.Content)))
	for _, n := range v.node.Content {
		b = v.doc.value(n, v.field).appendTo(b)
	}
	return b
}

// shortDigest returns text, or its digest if it is long: many aliases may refer to
// it. The digest is cached.
func (v value) shortDigest(text string) string {
	const long = 512
	if len(text) < long {
		return text
	}
	sum, ok := v.doc.digests[v.node]
	if !ok {
		digest := sha256.Sum256([]byte(text))
		sum = string(digest[:])
		v.doc.digests[v.node] = sum
	}
	return sum
}

// appendText appends texts, each after its length, so that no two lists have the
// same encoding.
func appendText(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

package yamldoc

import (
	"crypto/sha256"
	"encoding/binary"
)

// AppendContent appends an unambiguous encoding of v to b, with variables substituted.
// It reports errors in the variables.
func (v Value) AppendContent(b []byte) []byte {
	b = append(b, byte(v.Node.Kind))
	if v.IsScalar() {
		text := v.Node.Value
		if !v.doc.unexpanded {
			v.fileAllowed = true
			text, _ = v.substituted()
		}
		return AppendTexts(b, v.Node.Tag, v.shortDigest(text))
	}
	b = binary.AppendUvarint(b, uint64(len(v.Node.Content)))
	for _, n := range v.Node.Content {
		b = v.doc.ValueOf(n, v.Path).AppendContent(b)
	}
	return b
}

// shortDigest returns text, or its digest if it is long: many aliases may refer to
// it. The digest is cached.
func (v Value) shortDigest(text string) string {
	const long = 512
	if len(text) < long {
		return text
	}
	sum, ok := v.doc.digests[v.Node]
	if !ok {
		digest := sha256.Sum256([]byte(text))
		sum = string(digest[:])
		v.doc.digests[v.Node] = sum
	}
	return sum
}

// AppendTexts appends texts, each after its length, so that no two lists have the
// same encoding.
func AppendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

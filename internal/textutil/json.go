package textutil

import "bytes"

// htmlEscapes are the escapes that encoding/json writes in place of characters that are
// special in HTML.
var htmlEscapes = map[string]byte{`u003c`: '<', `u003e`: '>', `u0026`: '&'}

// UnescapeHTML returns a JSON document with <, > and & in place of the escapes for HTML
// that encoding/json writes. The document means the same.
func UnescapeHTML(document []byte) []byte {
	const size = len(`u003c`)
	if !bytes.Contains(document, []byte(`\u00`)) {
		return document
	}
	out := make([]byte, 0, len(document))
	for i := 0; i < len(document); i++ {
		c := document[i]
		if c != '\\' || i+1 == len(document) {
			out = append(out, c)
			continue
		}
		if special, ok := htmlEscapes[string(bytes.ToLower(document[i+1:min(i+1+size, len(document))]))]; ok {
			out = append(out, special)
			i += size
			continue
		}
		out = append(out, c, document[i+1]) // the escaped character may be a backslash
		i++
	}
	return out
}

package parameter

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// object is the value of a map, with its members in the order of the caller.
type object []member

type member struct {
	key   string
	value any
}

// rawJSON is a value that is JSON text already.
type rawJSON string

// appendJSON appends a value of a parameter as JSON. Everything but a rawJSON is compact. HTML
// characters are not escaped; U+2028 and U+2029 are.
func appendJSON(out []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...)
	case int64:
		return strconv.AppendInt(out, v, 10)
	case json.Number:
		return append(out, v...)
	case rawJSON:
		return append(out, v...)
	case []any:
		out = append(out, '[')
		for i, element := range v {
			out = appendJSON(appendComma(out, i), element)
		}
		return append(out, ']')
	case object:
		out = append(out, '{')
		for i, m := range v {
			out = append(appendJSON(appendComma(out, i), m.key), ':')
			out = appendJSON(out, m.value)
		}
		return append(out, '}')
	}
	return appendScalar(out, v)
}

// appendComma appends a comma before each element but the first.
func appendComma(out []byte, i int) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	return out
}

// appendScalar appends a string, a boolean or a finite float. These always encode.
func appendScalar(out []byte, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

package database

// This file turns values in the text format of a PostgreSQL server into JSON.

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// pgTypes knows the element types of arrays.
var pgTypes = sync.OnceValue(pgtype.NewMap)

// textTypes are the types for which the driver prefers the binary format, changed to
// prefer text: the text format is exact for every type.
var textTypes = sync.OnceValue(func() (list []*pgtype.Type) {
	for oid := range uint32(endOID) {
		if t, ok := pgTypes().TypeForOID(oid); ok && t.Codec.PreferredFormat() != pgtype.TextFormatCode {
			list = append(list, &pgtype.Type{Name: t.Name, OID: oid, Codec: textCodec{t.Codec}})
		}
	}
	return list
})

// endOID is above the OIDs of all built-in types.
const endOID = 10_000

// textCodec is a codec that prefers the text format.
type textCodec struct{ pgtype.Codec }

// PreferredFormat implements pgtype.Codec.
func (textCodec) PreferredFormat() int16 { return pgtype.TextFormatCode }

// registerTextCodecs makes a connection request all columns as text.
func registerTextCodecs(m *pgtype.Map) {
	for _, t := range textTypes() {
		m.RegisterType(t)
	}
}

// appendPGText appends as JSON a value that is given in the server's text format; nil is NULL.
func appendPGText(buf, text []byte, oid uint32) []byte {
	if text == nil {
		return append(buf, "null"...)
	}
	switch oid {
	case pgtype.BoolOID:
		return append(buf, map[bool]string{true: "true", false: "false"}[string(text) == "t"]...)
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID:
		if isNumber(text) {
			return append(buf, text...)
		}
		return appendText(buf, string(text)) // NaN, Infinity
	case pgtype.JSONOID, pgtype.JSONBOID:
		return appendDocument(buf, string(text))
	case pgtype.ByteaOID:
		if data, err := hex.DecodeString(strings.TrimPrefix(string(text), `\x`)); err == nil {
			return appendValue(buf, data)
		}
	case pgtype.TimestamptzOID, pgtype.TimestampOID:
		return appendText(buf, pgTime(string(text)))
	}
	if element, ok := elementType(oid); ok {
		if list, rest, ok := readArray(string(text), element); ok && rest == "" {
			return append(buf, list...)
		}
	}
	return appendText(buf, string(text))
}

// isNumber reports whether text is a JSON number.
func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid(text)
}

// pgTime returns a time in the form of RFC 3339. A time without a zone gets none. A time that the
// form cannot express (infinity, BC, an offset with seconds) is returned unchanged.
func pgTime(text string) string {
	for _, layout := range []string{"2006-01-02 15:04:05.999999-07", "2006-01-02 15:04:05.999999-07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format(time.RFC3339Nano)
		}
	}
	if _, err := time.Parse("2006-01-02 15:04:05.999999", text); err == nil {
		return isoTime(text)
	}
	return text
}

// elementType returns the type of an array's elements, and reports whether oid is an
// array.
func elementType(oid uint32) (uint32, bool) {
	t, ok := pgTypes().TypeForOID(oid)
	if !ok {
		return 0, false
	}
	array, ok := t.Codec.(*pgtype.ArrayCodec)
	if !ok {
		return 0, false
	}
	return array.ElementType.OID, true
}

// readArray parses an array in the server's format, {1,NULL,"a b",{…}}, optionally
// with its bounds first. It returns the array as JSON and the text after it.
func readArray(text string, element uint32) (list []byte, rest string, ok bool) {
	if strings.HasPrefix(text, "[") { // [0:2]={…}
		if _, text, ok = strings.Cut(text, "="); !ok {
			return nil, "", false
		}
	}
	if text, ok = strings.CutPrefix(text, "{"); !ok {
		return nil, "", false
	}
	list = []byte{'['}
	if rest, ok = strings.CutPrefix(text, "}"); ok {
		return append(list, ']'), rest, true
	}
	for {
		if list, text, ok = readElement(list, text, element); !ok || text == "" {
			return nil, "", false
		}
		switch text[0] {
		case '}':
			return append(list, ']'), text[1:], true
		case ',':
			list, text = append(list, ','), text[1:]
		default:
			return nil, "", false
		}
	}
}

// readElement appends one element, which may be an array itself, as JSON and returns the text after
// it.
func readElement(list []byte, text string, element uint32) ([]byte, string, bool) {
	if strings.HasPrefix(text, "{") {
		inner, rest, ok := readArray(text, element)
		return append(list, inner...), rest, ok
	}
	if strings.HasPrefix(text, `"`) {
		value, rest, ok := readQuoted(text[1:])
		return appendPGText(list, []byte(value), element), rest, ok
	}
	end := strings.IndexAny(text, ",}")
	if end < 0 {
		return nil, "", false
	}
	if text[:end] == "NULL" {
		return append(list, "null"...), text[end:], true
	}
	return appendPGText(list, []byte(text[:end]), element), text[end:], true
}

// readQuoted reads up to the closing quote. The character after a backslash is literal.
func readQuoted(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

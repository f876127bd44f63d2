package database

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// table collects rows as JSON, up to a limit.
type table struct {
	maxRows, maxBytes int

	keys [][]byte // each column's name, quoted, with its colon
	buf  []byte
	rows int
}

// begin drops the rows collected so far and sets the columns of the next ones.
func (t *table) begin(columns []string) {
	t.keys, t.buf, t.rows = make([][]byte, len(columns)), nil, 0
	for i, name := range columns {
		t.keys[i] = append(appendText(nil, name), ':')
	}
}

// addRow adds a row. value appends the JSON of column i.
func (t *table) addRow(value func(buf []byte, i int) ([]byte, error)) (err error) {
	if t.rows++; t.rows > t.maxRows {
		return errcode.New(errcode.ResultTooLarge, "run a statement: more than %d rows; request fewer", t.maxRows)
	}
	if t.rows > 1 {
		t.buf = append(t.buf, ',')
	}
	t.buf = append(t.buf, '{')
	for i, key := range t.keys {
		if i > 0 {
			t.buf = append(t.buf, ',')
		}
		if t.buf, err = value(append(t.buf, key...), i); err != nil {
			return err
		}
		if len(t.buf) > t.maxBytes {
			return errcode.New(errcode.ResultTooLarge, "run a statement: the rows have more than %d bytes; request less data", t.maxBytes)
		}
	}
	t.buf = append(t.buf, '}')
	return nil
}

// json returns all rows as a JSON array.
func (t *table) json() json.RawMessage {
	out := make([]byte, 0, len(t.buf)+2)
	return append(append(append(out, '['), t.buf...), ']')
}

// appendValue appends a value of database/sql.
func appendValue(buf []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(buf, "null"...)
	case bool:
		return strconv.AppendBool(buf, v)
	case int64:
		return strconv.AppendInt(buf, v, 10)
	case uint64:
		return strconv.AppendUint(buf, v, 10)
	case float32:
		return appendFloat(buf, float64(v), 32)
	case float64:
		return appendFloat(buf, v, 64)
	case time.Time:
		return appendText(buf, v.Format(time.RFC3339Nano))
	case []byte:
		return appendText(buf, base64.StdEncoding.EncodeToString(v))
	case string:
		return appendText(buf, v)
	}
	return append(buf, "null"...)
}

// appendFloat appends a float as encoding/json does. NaN and infinities are strings.
func appendFloat(buf []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendText(buf, strconv.FormatFloat(f, 'g', -1, bits))
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(buf, f, format, -1, bits)
}

// appendDocument appends a JSON document compactly, and invalid JSON as a string.
func appendDocument(buf []byte, text string) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) != nil {
		return appendText(buf, text)
	}
	return append(buf, compact.Bytes()...)
}

// appendText appends a string as JSON. Invalid UTF-8 is replaced.
func appendText(buf []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7F || c == '"' || c == '\\' {
			return appendEscaped(buf, s)
		}
	}
	return append(append(append(buf, '"'), s...), '"')
}

// appendEscaped is appendText for strings with characters that need escaping.
func appendEscaped(buf []byte, s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string always encodes
	return append(buf, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

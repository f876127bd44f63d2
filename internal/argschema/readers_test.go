package argschema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/test/corpus"
)

// Property: in a document that Parse accepts, encoding/json, gjson and the schema validator find
// the same keys with the same values.
func TestSchema_AllReadersAgree(t *testing.T) {
	const seeds = 1500
	accepted, known := 0, 0
	for seed := range uint64(seeds) {
		choices := make([]byte, 200)
		for i, r := 0, rand.New(rand.NewPCG(seed, 5)); i < len(choices); i++ {
			choices[i] = byte(r.Uint32())
		}
		doc := (&documentWriter{choices: choices}).document()
		ok, err := readersAgree(doc)
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, doc, err)
		}
		if ok {
			accepted++
		}
		if json.Valid(doc) {
			known++
		}
	}
	t.Logf("%d of %d documents are JSON, %d are accepted", known, seeds, accepted)
	if accepted < seeds/4 || known == accepted || known == seeds {
		t.Errorf("%d of %d documents are JSON, %d are accepted; want some of each kind", known, seeds, accepted)
	}
}

func TestSchema_AllReadersAgreeOnTestSuite(t *testing.T) {
	accepted := 0
	for _, d := range corpus.JSONDocuments() {
		ok, err := readersAgree(d.Text)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if ok {
			accepted++
		}
	}
	if accepted < 93 {
		t.Errorf("got %d accepted documents, want 93 or more", accepted)
	}
}

// FuzzReaders checks the property for documents of the fuzzer.
func FuzzReaders(f *testing.F) {
	for _, d := range corpus.JSONDocuments() {
		if len(d.Text) < 1024 {
			f.Add(d.Text, false)
		}
	}
	f.Add([]byte("a document of choices, one after the other"), true)
	f.Fuzz(func(t *testing.T, doc []byte, choices bool) {
		if choices {
			doc = (&documentWriter{choices: doc}).document()
		}
		if _, err := readersAgree(doc); err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
	})
}

// readersAgree reports whether Parse accepts a document as the value of a property. It returns
// the first disagreement of the readers.
func readersAgree(doc []byte) (accepted bool, err error) {
	args := slices.Concat([]byte(`{"v":`), doc, []byte(`}`))
	if anyObject.Parse(args) != nil {
		return false, nil
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return true, fmt.Errorf("encoding/json: %w", err)
	}
	if len(tree) != 1 { // members, not a document
		return false, nil
	}
	if err := compareValue(tree, gjson.ParseBytes(args)); err != nil {
		return true, fmt.Errorf("gjson: %w", err)
	}
	return true, checkSchemas(args, tree)
}

// anyObject is a schema that allows every object.
var anyObject = func() *argschema.Schema {
	s, err := argschema.Compile(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		panic(err)
	}
	return s
}()

// compareValue compares a value of encoding/json with one of gjson.
func compareValue(v any, r gjson.Result) error {
	switch v := v.(type) {
	case map[string]any:
		return compareObject(v, r)
	case []any:
		list := r.Array()
		if !r.IsArray() || len(list) != len(v) {
			return fmt.Errorf("%d elements, want %d: %.100s", len(list), len(v), r.Raw)
		}
		for i := range v {
			if err := compareValue(v[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		return mismatch(r.Type == gjson.String && r.Str == v, v, r)
	case json.Number:
		return mismatch(r.Type == gjson.Number && r.Raw == string(v), v, r)
	case bool:
		return mismatch(r.IsBool() && r.Bool() == v, v, r)
	}
	return mismatch(r.Type == gjson.Null && r.Raw == "null", v, r)
}

func mismatch(ok bool, want any, got gjson.Result) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%.100s, want %.100v", got.Raw, want)
}

func compareObject(v map[string]any, r gjson.Result) (err error) {
	if !r.IsObject() {
		return fmt.Errorf("%.100s is not an object", r.Raw)
	}
	n := 0
	r.ForEach(func(key, value gjson.Result) bool {
		n++
		inner, ok := v[key.Str]
		if !ok {
			err = fmt.Errorf("unexpected key %q", key.Str)
			return false
		}
		err = compareValue(inner, value)
		return err == nil
	})
	if err == nil && n != len(v) {
		err = fmt.Errorf("%d keys, want %d", n, len(v))
	}
	return err
}

// checkSchemas validates arguments with schemas that describe exactly what encoding/json read,
// and with schemas that describe something else.
func checkSchemas(args []byte, tree map[string]any) error {
	if depthOf(tree) > 25 { // the schema would be nested too deep
		return nil
	}
	other := map[string]any{"v": changeValue(tree["v"])}
	for _, c := range []struct {
		name   string
		rule   any
		agrees bool
	}{
		{"schema of its parts", schemaFor(tree), true},
		{"schema of its value", objectSchema(map[string]any{"v": rule{"const": tree["v"]}}), true},
		{"schema of another's parts", schemaFor(other), false},
		{"schema of another value", objectSchema(map[string]any{"v": rule{"const": other["v"]}}), false},
	} {
		input, err := json.Marshal(c.rule)
		if err != nil {
			return err
		}
		if len(input) > argschema.MaxSchema {
			continue
		}
		s, err := argschema.Compile(input)
		if err != nil {
			return fmt.Errorf("%s %.500s: %w", c.name, input, err)
		}
		if err := s.Parse(args); err != nil && c.agrees {
			return fmt.Errorf("%s %.500s: %w", c.name, input, err)
		}
		if err := s.Validate(args); (err == nil) != c.agrees {
			return fmt.Errorf("%s %.500s: got %v from Validate", c.name, input, err)
		}
	}
	return nil
}

type rule = map[string]any

// schemaFor returns a schema that only this value satisfies.
func schemaFor(v any) rule {
	switch v := v.(type) {
	case map[string]any:
		members := map[string]any{}
		for name, inner := range v {
			members[name] = schemaFor(inner)
		}
		return objectSchema(members)
	case []any:
		parts := make([]any, len(v))
		for i := range v {
			parts[i] = schemaFor(v[i])
		}
		r := rule{"type": "array", "minItems": len(v), "maxItems": len(v)}
		if len(parts) > 0 {
			r["prefixItems"] = parts
		}
		return r
	case string:
		n := utf8.RuneCountInString(v)
		return rule{"type": "string", "minLength": n, "maxLength": n, "enum": []any{v}}
	case json.Number:
		return rule{"type": "number", "minimum": v, "maximum": v}
	case bool:
		return rule{"type": "boolean", "const": v}
	}
	return rule{"type": "null"}
}

// objectSchema returns the schema of an object with exactly these properties.
func objectSchema(members map[string]any) rule {
	names := []string{}
	for name := range members {
		names = append(names, name)
	}
	return rule{"type": "object", "properties": members, "required": names, "additionalProperties": false}
}

// changeValue returns a value that differs from v in one leaf.
func changeValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return changeMember(v)
	case []any:
		if len(v) == 0 {
			return []any{nil}
		}
		return append(slices.Clone(v[:len(v)-1]), changeValue(v[len(v)-1]))
	case string:
		return v + "x"
	case json.Number:
		return changeNumber(v)
	case bool:
		return !v
	}
	return false
}

// changeMember returns an object whose first member has another value or name.
func changeMember(v map[string]any) map[string]any {
	if len(v) == 0 {
		return map[string]any{"x": nil}
	}
	next, name := maps.Clone(v), slices.Min(slices.Collect(maps.Keys(v)))
	next[name] = changeValue(v[name])
	if len(name)%2 == 0 { // change the name instead of the value
		delete(next, name)
		next[name+"x"] = v[name]
	}
	return next
}

// changeNumber returns a number that differs in the last digit before the exponent.
func changeNumber(n json.Number) json.Number {
	text := []byte(n)
	end := bytes.IndexAny(text, "eE")
	if end < 0 {
		end = len(text)
	}
	if text[end-1]++; text[end-1] > '9' {
		text[end-1] = '8'
	}
	return json.Number(text)
}

func depthOf(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			most = max(most, 1+depthOf(inner))
		}
	case []any:
		for _, inner := range v {
			most = max(most, 1+depthOf(inner))
		}
	}
	return most
}

// documentWriter writes unusual documents, of which many are invalid. Each byte of choices makes
// one decision; without further bytes, the first choice is taken.
type documentWriter struct {
	choices []byte
	out     strings.Builder
}

func (w *documentWriter) pick(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	choice := int(w.choices[0]) % n
	w.choices = w.choices[1:]
	return choice
}

func (w *documentWriter) document() []byte {
	w.value(6)
	return []byte(w.out.String())
}

func (w *documentWriter) value(depth int) {
	w.space()
	kind := w.pick(8)
	switch {
	case kind >= 6 && depth > 0:
		w.list("{}", func() { w.text(); w.space(); w.out.WriteString(":"); w.value(depth - 1) })
	case kind == 5 && depth > 0:
		w.list("[]", func() { w.value(depth - 1) })
	case kind >= 3:
		w.text()
	case kind == 2:
		w.out.WriteString(w.one("0", "-0", "1", "1.0", "10e-1", "1E+2", "-1.5e-3", "9007199254740993", "1e400", "1e-400", "0.1", "00", "1.", ".5", "+1", "1e401", "NaN"))
	default:
		w.out.WriteString(w.one("null", "true", "false", "nul", "True"))
	}
	w.space()
}

func (w *documentWriter) list(ends string, element func()) {
	w.out.WriteByte(ends[0])
	for i := range w.pick(5) {
		if i > 0 {
			w.out.WriteString(",")
		}
		element()
	}
	w.space()
	w.out.WriteByte(ends[1])
}

func (w *documentWriter) text() {
	w.out.WriteString(`"`)
	for range w.pick(4) {
		w.out.WriteString(w.one("a", "A", "b", "k", "s", `\u0061`, `\u0041`, `\u212a`, "\u212a", `\u017f`, "\u017f", `\/`, "/", `\n`, `\"`, `\\`,
			`\u0000`, `\ud83d\ude00`, "😀", "é", "e\u0301", ".", "*", "?", "@this", "|", "#", "~", "0", "\u2028", "<", "$ref", `\ud83d`, `\x`))
	}
	w.out.WriteString(`"`)
}

func (w *documentWriter) space() { w.out.WriteString(w.one("", "", "", "", " ", "\n\t", "\r", "\v")) }

// one returns one of a list. It returns the last one rarely, since that is invalid.
func (w *documentWriter) one(list ...string) string {
	if w.pick(64) == 63 {
		return list[len(list)-1]
	}
	return list[w.pick(len(list)-1)]
}

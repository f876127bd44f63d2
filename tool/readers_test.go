package tool_test

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

	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/tool"
)

// Property: whatever Parse accepts, all that read it later read alike: for
// encoding/json, gjson and the schema the same keys hold the same values.
func TestAllReadersReadAlike(t *testing.T) {
	const seeds = 1500
	accepted, known := 0, 0
	for seed := range uint64(seeds) {
		choices := make([]byte, 200)
		for i, r := 0, rand.New(rand.NewPCG(seed, 5)); i < len(choices); i++ {
			choices[i] = byte(r.Uint32())
		}
		doc := (&writer{choices: choices}).document()
		ok, err := readAlike(doc)
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
		t.Errorf("%d of %d documents are JSON, %d are accepted: some of each kind were wanted", known, seeds, accepted)
	}
}

func TestAllReadersReadTheSuiteAlike(t *testing.T) {
	accepted := 0
	for _, d := range corpus.Documents() {
		ok, err := readAlike(d.Text)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if ok {
			accepted++
		}
	}
	if accepted < 93 {
		t.Errorf("only %d documents were accepted, want 93 and more", accepted)
	}
}

// FuzzReaders is the property for documents that are written by nobody.
func FuzzReaders(f *testing.F) {
	for _, d := range corpus.Documents() {
		if len(d.Text) < 1024 {
			f.Add(d.Text, false)
		}
	}
	f.Add([]byte("a document of choices, one after the other"), true)
	f.Fuzz(func(t *testing.T, doc []byte, choices bool) {
		if choices {
			doc = (&writer{choices: doc}).document()
		}
		if _, err := readAlike(doc); err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
	})
}

// readAlike says whether a document is accepted as the value of a property,
// and then what its readers disagree about.
func readAlike(doc []byte) (accepted bool, err error) {
	args := slices.Concat([]byte(`{"v":`), doc, []byte(`}`))
	if anything.Parse(args) != nil {
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
	if err := same(tree, gjson.ParseBytes(args)); err != nil {
		return true, fmt.Errorf("gjson: %w", err)
	}
	return true, schemaAgrees(args, tree)
}

// anything is the schema of any object.
var anything = func() *tool.Schema {
	s, err := tool.Compile(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		panic(err)
	}
	return s
}()

// same compares what encoding/json read with what gjson reads.
func same(v any, r gjson.Result) error {
	switch v := v.(type) {
	case map[string]any:
		return sameMembers(v, r)
	case []any:
		list := r.Array()
		if !r.IsArray() || len(list) != len(v) {
			return fmt.Errorf("%d elements, want %d: %.100s", len(list), len(v), r.Raw)
		}
		for i := range v {
			if err := same(v[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		return differs(r.Type == gjson.String && r.Str == v, v, r)
	case json.Number:
		return differs(r.Type == gjson.Number && r.Raw == string(v), v, r)
	case bool:
		return differs(r.IsBool() && r.Bool() == v, v, r)
	}
	return differs(r.Type == gjson.Null && r.Raw == "null", v, r)
}

func differs(ok bool, want any, got gjson.Result) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%.100s, want %.100v", got.Raw, want)
}

func sameMembers(v map[string]any, r gjson.Result) (err error) {
	if !r.IsObject() {
		return fmt.Errorf("%.100s is no object", r.Raw)
	}
	n := 0
	r.ForEach(func(key, value gjson.Result) bool {
		n++
		inner, ok := v[key.Str]
		if !ok {
			err = fmt.Errorf("key %q, which is none", key.Str)
			return false
		}
		err = same(inner, value)
		return err == nil
	})
	if err == nil && n != len(v) {
		err = fmt.Errorf("%d keys, want %d", n, len(v))
	}
	return err
}

// schemaAgrees holds arguments against the schemas that describe exactly what
// encoding/json read, and against those that describe something else.
func schemaAgrees(args []byte, tree map[string]any) error {
	if deepest(tree) > 25 { // the schema would nest too deep to be one
		return nil
	}
	other := map[string]any{"v": changed(tree["v"])}
	for _, c := range []struct {
		name   string
		rule   any
		agrees bool
	}{
		{"a schema of its parts", described(tree), true},
		{"a schema of its value", exactly(map[string]any{"v": rule{"const": tree["v"]}}), true},
		{"a schema of another's parts", described(other), false},
		{"a schema of another value", exactly(map[string]any{"v": rule{"const": other["v"]}}), false},
	} {
		input, err := json.Marshal(c.rule)
		if err != nil {
			return err
		}
		if len(input) > tool.MaxSchema {
			continue
		}
		s, err := tool.Compile(input)
		if err != nil {
			return fmt.Errorf("%s %.500s: %w", c.name, input, err)
		}
		if err := s.Parse(args); err != nil && c.agrees {
			return fmt.Errorf("%s %.500s: %w", c.name, input, err)
		}
		if err := s.Validate(args); (err == nil) != c.agrees {
			return fmt.Errorf("%s %.500s says %v", c.name, input, err)
		}
	}
	return nil
}

type rule = map[string]any

// described gives a schema that this value alone satisfies.
func described(v any) rule {
	switch v := v.(type) {
	case map[string]any:
		members := map[string]any{}
		for name, inner := range v {
			members[name] = described(inner)
		}
		return exactly(members)
	case []any:
		parts := make([]any, len(v))
		for i := range v {
			parts[i] = described(v[i])
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

// exactly is the schema of an object of these properties, all and no others.
func exactly(members map[string]any) rule {
	names := []string{}
	for name := range members {
		names = append(names, name)
	}
	return rule{"type": "object", "properties": members, "required": names, "additionalProperties": false}
}

// changed gives another value: one leaf of it differs.
func changed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return changedMember(v)
	case []any:
		if len(v) == 0 {
			return []any{nil}
		}
		return append(slices.Clone(v[:len(v)-1]), changed(v[len(v)-1]))
	case string:
		return v + "x"
	case json.Number:
		return near(v)
	case bool:
		return !v
	}
	return false
}

// changedMember gives an object whose first member has another value or name.
func changedMember(v map[string]any) map[string]any {
	if len(v) == 0 {
		return map[string]any{"x": nil}
	}
	next, name := maps.Clone(v), slices.Min(slices.Collect(maps.Keys(v)))
	next[name] = changed(v[name])
	if len(name)%2 == 0 { // the value stays, the name does not
		delete(next, name)
		next[name+"x"] = v[name]
	}
	return next
}

// near gives a number that differs in the last digit before the exponent.
func near(n json.Number) json.Number {
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

func deepest(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			most = max(most, 1+deepest(inner))
		}
	case []any:
		for _, inner := range v {
			most = max(most, 1+deepest(inner))
		}
	}
	return most
}

// writer writes documents as nobody would: each choice is a byte, and what is
// left when they are used up is plain.
type writer struct {
	choices []byte
	out     strings.Builder
}

func (w *writer) pick(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	choice := int(w.choices[0]) % n
	w.choices = w.choices[1:]
	return choice
}

func (w *writer) document() []byte {
	w.value(6)
	return []byte(w.out.String())
}

func (w *writer) value(depth int) {
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

func (w *writer) list(ends string, element func()) {
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

func (w *writer) text() {
	w.out.WriteString(`"`)
	for range w.pick(4) {
		w.out.WriteString(w.one("a", "A", "b", "k", "s", `\u0061`, `\u0041`, `\u212a`, "\u212a", `\u017f`, "\u017f", `\/`, "/", `\n`, `\"`, `\\`,
			`\u0000`, `\ud83d\ude00`, "😀", "é", "e\u0301", ".", "*", "?", "@this", "|", "#", "~", "0", "\u2028", "<", "$ref", `\ud83d`, `\x`))
	}
	w.out.WriteString(`"`)
}

func (w *writer) space() { w.out.WriteString(w.one("", "", "", "", " ", "\n\t", "\r", "\v")) }

// one picks the last of a list rarely: what stands there is wrong.
func (w *writer) one(list ...string) string {
	if w.pick(64) == 63 {
		return list[len(list)-1]
	}
	return list[w.pick(len(list)-1)]
}

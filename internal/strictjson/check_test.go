package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/test/corpus"
)

func Example() {
	shape := new(strictjson.Shape)
	shape.Add("path", nil)
	for _, doc := range []string{
		`{"path": "a.txt"}`,
		`{"path": "a.txt", "p\u0061th": "/etc/passwd"}`,
		`{"PATH": "/etc/passwd"}`,
		`["a.txt"]`,
	} {
		fmt.Println(strictjson.CheckObject([]byte(doc), shape))
	}
	// Output:
	// <nil>
	// duplicate key "path" at byte 18
	// key "PATH" differs from "path" in case only: write "path" at byte 1
	// not an object at byte 0
}

func TestCheck_Rejects(t *testing.T) {
	tests := []struct {
		name, doc string
		offset    int
		reason    string
	}{
		{"empty document", ``, 0, "document ends where a value was expected"},
		{"white space only", " \n", 2, "document ends where a value was expected"},
		{"byte order mark", "\ufeff{}", 0, "expected a value"},
		{"comment", `{/**/}`, 1, "expected a key"},
		{"trailing comma in an array", `[1,]`, 3, "expected a value"},
		{"trailing comma in an object", `{"a":1,}`, 7, "expected a key"},
		{"key without a value", `{"a"}`, 4, "expected ':'"},
		{"unterminated object", `{"a":1`, 6, "document ends where ',' or '}' was expected"},
		{"array closed as an object", `[1}`, 2, "expected ',' or ']'"},
		{"two documents", `{} {}`, 3, "text after the document"},
		{"unterminated string", `"a`, 2, "string without end"},
		{"string that ends in a backslash", `"a\`, 2, "string without end"},
		{"unknown escape", `"\x"`, 1, "invalid escape"},
		{"short unicode escape", `"\u00"`, 1, `invalid \u escape`},
		{"raw control character", "\"a\tb\"", 2, "control character in a string"},
		{"invalid UTF-8", "[\"\xff\"]", 2, "invalid UTF-8"},
		{"encoded surrogate", "[\"\xed\xa0\x80\"]", 2, "invalid UTF-8"},
		{"lone high surrogate", `"\ud800"`, 1, "lone surrogate escape"},
		{"lone low surrogate", `"\udc00"`, 1, "lone surrogate escape"},
		{"two high surrogates", `"\ud800\ud800"`, 1, "lone surrogate escape"},
		{"surrogate in a key", `{"\ud800":1}`, 2, "lone surrogate escape"},
		{"leading zero", `[01]`, 2, "expected ',' or ']'"},
		{"minus only", `-`, 1, "document ends where a digit was expected"},
		{"fraction without digits", `[1.]`, 3, "expected a digit"},
		{"large exponent", `[1e999999999]`, 1, "exponent beyond 400"},
		{"small exponent", `[1e-0000401]`, 1, "exponent beyond 400"},
		{"number of many digits", "[" + strings.Repeat("9", 401) + "]", 1, "number longer than 400 bytes"},
		{"misspelt literal", `[nul]`, 1, "expected null"},
		{"duplicate key", `{"a":1,"b":2,"a":3}`, 13, `duplicate key "a"`},
		{"duplicate key with an escape", `{"\u0061":1,"a":3}`, 12, `duplicate key "a"`},
		{"duplicate key with two escapes", `{"\u002f":1,"\/":3}`, 12, `duplicate key "/"`},
		{"duplicate key around an inner object", `{"a":{"a":1},"a":3}`, 13, `duplicate key "a"`},
		{"duplicate empty key", `{"":1,"":2}`, 6, `duplicate key ""`},
		{"duplicate long key", objectWithKeyTwice(strings.Repeat("é", 99)), 204, `duplicate key "` + strings.Repeat("é", 32) + `…"`},
		{"nested arrays", strings.Repeat("[", 65) + strings.Repeat("]", 65), 64, "nesting deeper than 64"},
		{"unterminated nested arrays", strings.Repeat("[", 1<<20), 64, "nesting deeper than 64"},
		{"nested objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), 320, "nesting deeper than 64"},
		{"document too large", `"` + strings.Repeat("a", strictjson.MaxSize) + `"`, strictjson.MaxSize, "document longer than 8388608 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantError(t, strictjson.CheckKeys([]byte(tt.doc), nil), tt.offset, tt.reason) })
	}
}

func objectWithKeyTwice(key string) string { return fmt.Sprintf(`{"%s":1,"%s":2}`, key, key) }

func wantError(t *testing.T, err error, offset int, reason string) {
	t.Helper()
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		t.Fatalf("got %v, want an *Error", err)
	}
	if e.Offset != offset || e.Reason != reason {
		t.Errorf("got %q at %d, want %q at %d", e.Reason, e.Offset, reason, offset)
	}
}

func TestCheck_Accepts(t *testing.T) {
	tests := []struct{ name, doc string }{
		{"scalar with white space", " \t\r\n-0.5e+10 \n"},
		{"empty containers", `[{},[],[{}]]`},
		{"all escapes", `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`},
		{"same key in several objects", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`},
		{"keys that differ in case only", `{"a":1,"A":2}`},
		{"keys that differ in normal form only", "{\"\u00e9\":1,\"e\u0301\":2}"},
		{"64 levels", strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		{"numbers at the bounds", `[1e400,-1e-400,` + strings.Repeat("9", 400) + `]`},
		{"document of the maximum size", `"` + strings.Repeat("a", strictjson.MaxSize-2) + `"`},
		{"100 keys and 100 inner keys", `{"in":` + objectWithKeys(100) + "," + objectWithKeys(100)[1:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := strictjson.CheckKeys([]byte(tt.doc), nil); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
}

// objectWithKeys returns an object with n keys that contain escapes.
func objectWithKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"key\u0020%d":[%d]`, i, i)
	}
	return "{" + b.String()[1:] + "}"
}

// A document that is decoded has at most MaxDecoded values, containers included.
func TestCheckDecodable(t *testing.T) {
	list := strings.Repeat("1,", strictjson.MaxDecoded-3)
	if err := strictjson.CheckDecodable([]byte(`{"a":[`+list+`1]}`), nil); err != nil {
		t.Error(err)
	}
	if err := strictjson.CheckDecodable([]byte(`{"a":[`+list+`1,1]}`), nil); err == nil {
		t.Error("one value more is accepted")
	}
	if err := strictjson.CheckDecodable([]byte(`[]`), nil); err == nil {
		t.Error("a list is accepted")
	}
}

func TestObject_RejectsOtherValues(t *testing.T) {
	for _, doc := range []string{`[]`, `null`, `"{}"`, `1`, ` true`} {
		wantError(t, strictjson.CheckObject([]byte(doc), nil), len(doc)-len(strings.TrimSpace(doc)), "not an object")
	}
	if err := strictjson.CheckObject([]byte(" {} "), nil); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestCheck_FindsDuplicateAmongManyKeys(t *testing.T) {
	for _, n := range []int{2, 24, 25, 26, 100} {
		for duplicate := range n {
			whole := objectWithKeys(n)
			doc := whole[:len(whole)-1] + fmt.Sprintf(`,"key %d":0}`, duplicate)
			wantError(t, strictjson.CheckKeys([]byte(doc), nil), len(whole), fmt.Sprintf(`duplicate key "key %d"`, duplicate))
		}
	}
}

func TestCheck_IsLinearInKeys(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"x":0`)
	for i := 0; b.Len() < strictjson.MaxSize/4; i++ {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	b.WriteByte('}')
	if err := strictjson.CheckKeys(b.Bytes(), nil); err != nil { // takes minutes if keys are compared pairwise
		t.Errorf("got %v, want nil", err)
	}
}

func TestCheck_RejectsCaseVariantsOfKnownKeys(t *testing.T) {
	inner := new(strictjson.Shape)
	inner.Add("kind", nil)
	shape := &strictjson.Shape{Other: &strictjson.Shape{Items: inner}}
	shape.Add("path", nil)
	shape.Add("mask", inner)
	shape.Add("list", &strictjson.Shape{Items: inner})
	shape.Add("Both", nil)
	shape.Add("both", nil)
	shape.Add("straße", nil)
	shape.Add("self", shape)
	tests := []struct{ name, doc, known string }{
		{"exact names", `{"path":1,"mask":{"kind":2},"list":[{"kind":3}],"straße":4}`, ""},
		{"unknown names", `{"pathname":1,"pat":2,"":3}`, ""},
		{"names known in two cases", `{"Both":1,"both":2}`, ""},
		{"third case", `{"BOTH":1}`, "both"},
		{"upper case letter", `{"Path":1}`, "path"},
		{"upper case letter as an escape", `{"\u0050ath":1}`, "path"},
		{"Kelvin sign for k", "{\"mas\u212a\":1}", "mask"},
		{"long s for s", "{\"ma\u017fk\":1}", "mask"},
		{"long s as an escape", `{"ma\u017fk":1}`, "mask"},
		{"letters beyond ASCII", `{"STRAẞE":1}`, "straße"},
		{"together with the exact name", `{"path":1,"PATH":2}`, "path"},
		{"one level down", `{"mask":{"Kind":1}}`, "kind"},
		{"names of other levels", `{"mask":{"Path":1},"Kind":2}`, ""},
		{"in elements", `{"list":[1,{"kind":1},{"KIND":1}]}`, "kind"},
		{"in elements of unknown names", `{"any":[{"KIND":1}]}`, "kind"},
		{"recursive", `{"self":{"self":{"Path":1}}}`, "path"},
		{"elements of a value without items", `{"path":[{"Path":1}]}`, ""},
		{"long key", `{"` + strings.Repeat("ſ", 999) + `":1}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := strictjson.CheckKeys([]byte(tt.doc), shape)
			if tt.known == "" && err != nil {
				t.Errorf("got %v, want nil", err)
			}
			if want := "differs from " + strconv.Quote(tt.known) + " in case only"; tt.known != "" && !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// rejectedByOwnRule has the documents of the suite that must be accepted by RFC 8259 but break
// a rule of this package.
var rejectedByOwnRule = map[string]string{
	"y_object_duplicated_key.json":           `duplicate key "a"`,
	"y_object_duplicated_key_and_value.json": `duplicate key "a"`,
}

// Of the suite, 188 documents are rejected and 93 of 95 accepted; the others are up to the
// parser.
func TestCheck_JSONTestSuite(t *testing.T) {
	for _, d := range corpus.JSONDocuments() {
		t.Run(d.Name, func(t *testing.T) { checkExpectation(t, d.Name, d.Expect, strictjson.CheckKeys(d.Text, nil)) })
	}
}

func checkExpectation(t *testing.T, name, expect string, err error) {
	rule, isStricter := rejectedByOwnRule[name]
	switch {
	case isStricter:
		if e, ok := errors.AsType[*strictjson.Error](err); !ok || e.Reason != rule {
			t.Errorf("got %v, want %s", err, rule)
		}
	case expect == corpus.ExpectAccept && err != nil:
		t.Errorf("got %v, want nil", err)
	case expect == corpus.ExpectReject && err == nil:
		t.Error("got no error, want one")
	}
}

// FuzzCheck checks that encoding/json accepts every document that Check accepts, with unique
// keys, and rejects every document that Check rejects unless a rule of its own applies.
func FuzzCheck(f *testing.F) {
	for _, d := range corpus.JSONDocuments() {
		if len(d.Text) < 4096 {
			f.Add(d.Text)
		}
	}
	f.Add([]byte(objectWithKeys(30)))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := strictjson.CheckKeys(data, nil)
		if valid := json.Valid(data); err == nil && !valid {
			t.Fatal("Check accepts, but encoding/json rejects")
		} else if err != nil && valid && !isOwnRule(err) {
			t.Fatalf("Check returns %v, but encoding/json accepts", err)
		}
		if err != nil {
			return
		}
		if key := firstDuplicate(json.NewDecoder(bytes.NewReader(data))); key != "" {
			t.Fatalf("Check accepts duplicate key %q", key)
		}
	})
}

func isOwnRule(err error) bool {
	return slices.ContainsFunc([]string{"duplicate key", "nesting deeper", "lone surrogate", "invalid UTF-8", "number longer", "exponent beyond"},
		func(rule string) bool { return strings.HasPrefix(err.Error(), rule) })
}

// firstDuplicate returns a duplicate key, "" if there is none. It is the oracle and decodes token
// by token.
func firstDuplicate(d *json.Decoder) string {
	d.UseNumber()
	token, _ := d.Token()
	switch token {
	case json.Delim('['):
		for d.More() {
			if key := firstDuplicate(d); key != "" {
				return key
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			name, _ := d.Token()
			if seen[name.(string)] {
				return strconv.Quote(name.(string))
			}
			seen[name.(string)] = true
			if key := firstDuplicate(d); key != "" {
				return key
			}
		}
	default:
		return ""
	}
	_, _ = d.Token()
	return ""
}

func TestObject_DoesNotAllocate(t *testing.T) {
	doc, shape := exampleDocument(), exampleShape()
	if got := testing.AllocsPerRun(100, func() { _ = strictjson.CheckObject(doc, shape) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func BenchmarkCheck(b *testing.B) {
	doc, shape := exampleDocument(), exampleShape()
	b.SetBytes(int64(len(doc)))
	b.Run("strictjson", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if err := strictjson.CheckObject(doc, shape); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gjson", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			gjson.ValidBytes(doc)
		}
	})
	b.Run("encodingjson", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			json.Valid(doc)
		}
	})
}

// exampleDocument returns 2 KB of arguments as a model writes them.
func exampleDocument() []byte {
	const item = `{"id": 17, "path": "src/main.go", "kind": "file", "size": 10.5e3, "tags": ["a", "b"], "text": "A line of text.\nAnd one more."}`
	return []byte(`{"query": "find it", "limit": 25, "items": [` + strings.TrimSuffix(strings.Repeat(item+", ", 15), ", ") + `]}`)
}

func exampleShape() *strictjson.Shape {
	item, top := new(strictjson.Shape), new(strictjson.Shape)
	for _, name := range []string{"id", "path", "kind", "size", "tags", "text"} {
		item.Add(name, nil)
	}
	top.Add("query", nil)
	top.Add("limit", nil)
	top.Add("items", &strictjson.Shape{Items: item})
	return top
}

// A sender chooses how many keys an object has. They take little memory, and each duplicate is found.
func TestCheck_ManyKeys(t *testing.T) {
	const n = 1 << 17
	var doc strings.Builder
	for i := range n {
		fmt.Fprintf(&doc, `,"%d":1`, i)
	}
	text := "{" + doc.String()[1:]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := strictjson.CheckKeys([]byte(text+"}"), nil)
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / n; err != nil || got > 90 {
		t.Errorf("%d bytes for a key, %v", got, err)
	}
	for _, again := range []int{0, 23, 24, 25, 1000, n - 1} {
		if err := strictjson.CheckKeys(fmt.Appendf(nil, `%s,"%d":1}`, text, again), nil); err == nil || !strings.Contains(err.Error(), "duplicate key") {
			t.Errorf("key %d again: %v", again, err)
		}
	}
}

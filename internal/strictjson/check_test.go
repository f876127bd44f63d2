package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/test/corpus"
)

func Example() {
	shape := new(strictjson.KeySet)
	shape.Add("path", nil)
	for _, doc := range []string{
		`{"path": "a.txt"}`,
		`{"path": "a.txt", "p\u0061th": "/etc/passwd"}`,
		`{"PATH": "/etc/passwd"}`,
		`["a.txt"]`,
	} {
		fmt.Println(strictjson.Object([]byte(doc), shape))
	}
	// Output:
	// <nil>
	// duplicate key "path" at byte 18
	// key "PATH" is almost "path": write it exactly so at byte 1
	// not an object at byte 0
}

func TestCheckRefuses(t *testing.T) {
	tests := []struct {
		name, doc string
		offset    int
		reason    string
	}{
		{"nothing", ``, 0, "document ends where a value was expected"},
		{"white space alone", " \n", 2, "document ends where a value was expected"},
		{"a byte order mark", "\ufeff{}", 0, "expected a value"},
		{"a comment", `{/**/}`, 1, "expected a key"},
		{"a trailing comma", `[1,]`, 3, "expected a value"},
		{"a trailing comma after a member", `{"a":1,}`, 7, "expected a key"},
		{"a key without a value", `{"a"}`, 4, "expected ':'"},
		{"an object without end", `{"a":1`, 6, "document ends where ',' or '}' was expected"},
		{"an array closed as an object", `[1}`, 2, "expected ',' or ']'"},
		{"two documents", `{} {}`, 3, "text after the document"},
		{"a string without end", `"a`, 2, "string without end"},
		{"a string that ends in a backslash", `"a\`, 2, "string without end"},
		{"an unknown escape", `"\x"`, 1, "invalid escape"},
		{"a short unicode escape", `"\u00"`, 1, `invalid \u escape`},
		{"a raw control character", "\"a\tb\"", 2, "control character in a string"},
		{"invalid UTF-8", "[\"\xff\"]", 2, "invalid UTF-8"},
		{"an encoded surrogate", "[\"\xed\xa0\x80\"]", 2, "invalid UTF-8"},
		{"a high surrogate alone", `"\ud800"`, 1, "lone surrogate escape"},
		{"a low surrogate alone", `"\udc00"`, 1, "lone surrogate escape"},
		{"two high surrogates", `"\ud800\ud800"`, 1, "lone surrogate escape"},
		{"a surrogate in a key", `{"\ud800":1}`, 2, "lone surrogate escape"},
		{"a leading zero", `[01]`, 2, "expected ',' or ']'"},
		{"a bare minus", `-`, 1, "document ends where a digit was expected"},
		{"a fraction without digits", `[1.]`, 3, "expected a digit"},
		{"an enormous exponent", `[1e999999999]`, 1, "exponent beyond 400"},
		{"a tiny exponent", `[1e-0000401]`, 1, "exponent beyond 400"},
		{"a number of many digits", "[" + strings.Repeat("9", 401) + "]", 1, "number longer than 400 bytes"},
		{"a misspelt literal", `[nul]`, 1, "expected null"},
		{"a repeated key", `{"a":1,"b":2,"a":3}`, 13, `duplicate key "a"`},
		{"a key repeated by an escape", `{"\u0061":1,"a":3}`, 12, `duplicate key "a"`},
		{"a key repeated by two escapes", `{"\u002f":1,"\/":3}`, 12, `duplicate key "/"`},
		{"a key repeated around an inner object", `{"a":{"a":1},"a":3}`, 13, `duplicate key "a"`},
		{"an empty key repeated", `{"":1,"":2}`, 6, `duplicate key ""`},
		{"a long key repeated, cut", twice(strings.Repeat("é", 99)), 204, `duplicate key "` + strings.Repeat("é", 32) + `..."`},
		{"nesting in arrays", strings.Repeat("[", 65) + strings.Repeat("]", 65), 64, "nesting deeper than 64"},
		{"nesting without end", strings.Repeat("[", 1<<20), 64, "nesting deeper than 64"},
		{"nesting in objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), 320, "nesting deeper than 64"},
		{"a document over the size", `"` + strings.Repeat("a", strictjson.MaxSize) + `"`, strictjson.MaxSize, "document longer than 8388608 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, strictjson.Check([]byte(tt.doc), nil), tt.offset, tt.reason) })
	}
}

func twice(key string) string { return fmt.Sprintf(`{"%s":1,"%s":2}`, key, key) }

func refused(t *testing.T, err error, offset int, reason string) {
	t.Helper()
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		t.Fatalf("got %v, want an *Error", err)
	}
	if e.Offset != offset || e.Reason != reason {
		t.Errorf("got %q at %d, want %q at %d", e.Reason, e.Offset, reason, offset)
	}
}

func TestCheckAccepts(t *testing.T) {
	tests := []struct{ name, doc string }{
		{"a scalar with space around", " \t\r\n-0.5e+10 \n"},
		{"empty containers", `[{},[],[{}]]`},
		{"every escape", `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`},
		{"the same key in several objects", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`},
		{"keys that differ in case only", `{"a":1,"A":2}`},
		{"keys that differ in normal form only", "{\"\u00e9\":1,\"e\u0301\":2}"},
		{"64 levels", strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		{"a number at its bounds", `[1e400,-1e-400,` + strings.Repeat("9", 400) + `]`},
		{"a document at the size", `"` + strings.Repeat("a", strictjson.MaxSize-2) + `"`},
		{"a hundred keys and a hundred more inside", `{"in":` + keys(100) + "," + keys(100)[1:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := strictjson.Check([]byte(tt.doc), nil); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
}

// keys is an object of n keys, some of them escaped.
func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"key\u0020%d":[%d]`, i, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestObjectWantsAnObject(t *testing.T) {
	for _, doc := range []string{`[]`, `null`, `"{}"`, `1`, ` true`} {
		refused(t, strictjson.Object([]byte(doc), nil), len(doc)-len(strings.TrimSpace(doc)), "not an object")
	}
	if err := strictjson.Object([]byte(" {} "), nil); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// However many keys an object has, wherever the second of two equal ones
// stands, it is found.
func TestDuplicateIsFoundAmongManyKeys(t *testing.T) {
	for _, n := range []int{2, 24, 25, 26, 100} {
		for again := range n {
			whole := keys(n)
			doc := whole[:len(whole)-1] + fmt.Sprintf(`,"key %d":0}`, again)
			refused(t, strictjson.Check([]byte(doc), nil), len(whole), fmt.Sprintf(`duplicate key "key %d"`, again))
		}
	}
}

func TestManyKeysAreLinear(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"x":0`)
	for i := 0; b.Len() < strictjson.MaxSize/4; i++ {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	b.WriteByte('}')
	if err := strictjson.Check(b.Bytes(), nil); err != nil { // pairwise this takes minutes
		t.Errorf("got %v, want nil", err)
	}
}

func TestShapeRefusesAlmostKnownKeys(t *testing.T) {
	inner := new(strictjson.KeySet)
	inner.Add("kind", nil)
	shape := &strictjson.KeySet{Other: &strictjson.KeySet{Items: inner}}
	shape.Add("path", nil)
	shape.Add("mask", inner)
	shape.Add("list", &strictjson.KeySet{Items: inner})
	shape.Add("Both", nil)
	shape.Add("both", nil)
	shape.Add("straße", nil)
	shape.Add("self", shape)
	tests := []struct{ name, doc, almost string }{
		{"exact names pass", `{"path":1,"mask":{"kind":2},"list":[{"kind":3}],"straße":4}`, ""},
		{"unknown names pass", `{"pathname":1,"pat":2,"":3}`, ""},
		{"names known in two cases pass in both", `{"Both":1,"both":2}`, ""},
		{"a third case does not", `{"BOTH":1}`, "both"},
		{"an upper case letter is refused", `{"Path":1}`, "path"},
		{"also by an escape", `{"\u0050ath":1}`, "path"},
		{"the Kelvin sign is a k", "{\"mas\u212a\":1}", "mask"},
		{"the long s is an s", "{\"ma\u017fk\":1}", "mask"},
		{"also by an escape, long s", `{"ma\u017fk":1}`, "mask"},
		{"letters beyond ASCII fold too", `{"STRAẞE":1}`, "straße"},
		{"beside the exact name", `{"path":1,"PATH":2}`, "path"},
		{"one level down", `{"mask":{"Kind":1}}`, "kind"},
		{"names of other levels are free", `{"mask":{"Path":1},"Kind":2}`, ""},
		{"within elements", `{"list":[1,{"kind":1},{"KIND":1}]}`, "kind"},
		{"within elements of unknown names", `{"any":[{"KIND":1}]}`, "kind"},
		{"within itself", `{"self":{"self":{"Path":1}}}`, "path"},
		{"elements of what is no array are free", `{"path":[{"Path":1}]}`, ""},
		{"a long key passes", `{"` + strings.Repeat("ſ", 999) + `":1}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := strictjson.Check([]byte(tt.doc), shape)
			if tt.almost == "" && err != nil {
				t.Errorf("got %v, want nil", err)
			}
			if want := "is almost " + strconv.Quote(tt.almost); tt.almost != "" && !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// stricter lists the must-accept documents that a documented rule refuses.
var stricter = map[string]string{
	"y_object_duplicated_key.json":           `duplicate key "a"`,
	"y_object_duplicated_key_and_value.json": `duplicate key "a"`,
}

// The whole suite: 188 documents are refused, 93 of 95 accepted, and none of
// the others crashes.
func TestJSONTestSuite(t *testing.T) {
	for _, d := range corpus.Documents() {
		t.Run(d.Name, func(t *testing.T) { verdict(t, d.Name, d.Expect, strictjson.Check(d.Text, nil)) })
	}
}

func verdict(t *testing.T, name, expect string, err error) {
	rule, isStricter := stricter[name]
	switch {
	case isStricter:
		if e, ok := errors.AsType[*strictjson.Error](err); !ok || e.Reason != rule {
			t.Errorf("got %v, want %s", err, rule)
		}
	case expect == corpus.Accept && err != nil:
		t.Errorf("got %v, want nil", err)
	case expect == corpus.Reject && err == nil:
		t.Error("accepted, want a refusal")
	}
}

// Everything Check accepts is JSON to encoding/json, with keys that are
// unique once decoded; what it refuses without one of its own rules is none.
func FuzzCheck(f *testing.F) {
	for _, d := range corpus.Documents() {
		if len(d.Text) < 4096 {
			f.Add(d.Text)
		}
	}
	f.Add([]byte(keys(30)))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := strictjson.Check(data, nil)
		if valid := json.Valid(data); err == nil && !valid {
			t.Fatal("accepted, but encoding/json refuses")
		} else if err != nil && valid && !ownRule(err) {
			t.Fatalf("got %v, but encoding/json accepts", err)
		}
		if err != nil {
			return
		}
		if again := duplicate(json.NewDecoder(bytes.NewReader(data))); again != "" {
			t.Fatalf("accepted with duplicate key %q", again)
		}
	})
}

func ownRule(err error) bool {
	return slices.ContainsFunc([]string{"duplicate key", "nesting deeper", "lone surrogate", "invalid UTF-8", "number longer", "exponent beyond"},
		func(rule string) bool { return strings.HasPrefix(err.Error(), rule) })
}

// duplicate is the naive model: it decodes token by token into sets.
func duplicate(d *json.Decoder) string {
	d.UseNumber()
	token, _ := d.Token()
	switch token {
	case json.Delim('['):
		for d.More() {
			if again := duplicate(d); again != "" {
				return again
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
			if again := duplicate(d); again != "" {
				return again
			}
		}
	default:
		return ""
	}
	_, _ = d.Token()
	return ""
}

func TestCheckAllocatesNothing(t *testing.T) {
	doc, shape := document(), documentShape()
	if got := testing.AllocsPerRun(100, func() { _ = strictjson.Object(doc, shape) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func BenchmarkCheck(b *testing.B) {
	doc, shape := document(), documentShape()
	b.SetBytes(int64(len(doc)))
	b.Run("strictjson", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if err := strictjson.Object(doc, shape); err != nil {
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

// document is 2 KB of arguments as a model writes them.
func document() []byte {
	const item = `{"id": 17, "path": "src/main.go", "kind": "file", "size": 10.5e3, "tags": ["a", "b"], "text": "A line of text.\nAnd one more."}`
	return []byte(`{"query": "find it", "limit": 25, "items": [` + strings.TrimSuffix(strings.Repeat(item+", ", 15), ", ") + `]}`)
}

func documentShape() *strictjson.KeySet {
	item, top := new(strictjson.KeySet), new(strictjson.KeySet)
	for _, name := range []string{"id", "path", "kind", "size", "tags", "text"} {
		item.Add(name, nil)
	}
	top.Add("query", nil)
	top.Add("limit", nil)
	top.Add("items", &strictjson.KeySet{Items: item})
	return top
}

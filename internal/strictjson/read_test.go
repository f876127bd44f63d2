package strictjson_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// shortString allows strings of up to nine bytes.
type shortString struct{ strictjson.KeyRules }

// FitsString implements strictjson.KeyRules.
func (shortString) FitsString(quoted []byte, escaped bool) bool { return !escaped && len(quoted) <= 9 }

func ExampleRead() {
	keys := new(strictjson.Shape)
	keys.Add("path", &strictjson.Shape{Rules: shortString{}})
	for _, doc := range []string{`{"path": "a.txt"}`, `{"path": "a/long/path.txt"}`, `{"path": "a.txt", "more": [1, 2]}`, `{"Path": "a.txt"}`} {
		fmt.Println(strictjson.Read([]byte(doc), keys))
	}
	// Output:
	// {true 2} <nil>
	// {false 2} <nil>
	// {true 5} <nil>
	// {false 0} key "Path" differs from "path" in case only: write "path" at byte 1
}

func TestRead_NoRulesAllowEverything(t *testing.T) {
	for _, keys := range []*strictjson.Shape{nil, new(strictjson.Shape)} {
		if r, err := strictjson.Read(exampleDocument(), keys); err != nil || !r.Valid {
			t.Errorf("got %+v, %v, want Valid true", r, err)
		}
	}
}

// callRecorder records the calls of its methods. It allows every value except the rejected one.
type callRecorder struct {
	calls          []string
	rejected       string // a call
	unique, closed bool
}

func (r *callRecorder) record(format string, args ...any) bool {
	call := fmt.Sprintf(format, args...)
	r.calls = append(r.calls, call)
	return call != r.rejected
}

// The methods of strictjson.KeyRules.
func (r *callRecorder) FitsLiteral(word string) bool { return r.record("%s", word) }
func (r *callRecorder) FitsInteger(v int64, known bool) bool {
	return r.record("integer %d %v", v, known)
}
func (r *callRecorder) FitsNumber(literal []byte) bool { return r.record("number %s", literal) }
func (r *callRecorder) FitsString(text []byte, esc bool) bool {
	return r.record("string %s %v", text, esc)
}
func (r *callRecorder) FitsArray(count int) bool { return r.record("array %d", count) }
func (r *callRecorder) FitsObject(count int, seen uint64) bool {
	return r.record("object %d %b", count, seen)
}
func (r *callRecorder) UniqueElements() bool { return r.unique }
func (r *callRecorder) KnownNamesOnly() bool { return r.closed }

func TestRead_CallsRules(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"null", `null`, `null`},
		{"true", `true`, `true`},
		{"false", `false`, `false`},
		{"integer", `-12`, `integer -12 true`},
		{"integer of 18 digits", `123456789012345678`, `integer 123456789012345678 true`},
		{"fraction", `-1.50`, `number -1.50`},
		{"exponent", `1e2`, `number 1e2`},
		{"string", `"a b"`, `string a b false`},
		{"string with an escape", `"a\n"`, `string a\n true`},
		{"array", `[1,[],2]`, `array 3`},
		{"object", `{"x":1,"b":2,"a":{}}`, `object 3 11`},
		{"object without known names", `{"x":1}`, `object 1 0`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, rejected := range []string{"", tt.want} {
				rules := &callRecorder{rejected: rejected}
				if valid := readValue(t, rules, tt.value); valid != (rejected == "") {
					t.Errorf("got Valid %v with %q rejected", valid, rejected)
				}
				if !slices.Equal(rules.calls, []string{tt.want}) {
					t.Errorf("got calls %q, want %q", rules.calls, tt.want)
				}
			}
		})
	}
}

func TestRead_ChecksUniqueElementsAndKnownNames(t *testing.T) {
	tests := []struct {
		name, value    string
		unique, closed bool // whether the value is valid with that rule
	}{
		{"different elements", `[1,2,"1"]`, true, true},
		{"equal elements", `[1,2,1]`, false, true},
		{"elements that may be equal", `["a","\u0061"]`, false, true},
		{"known names", `{"a":1,"b":1}`, true, true},
		{"unknown name", `{"a":1,"x":1}`, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readValue(t, &callRecorder{unique: true}, tt.value); got != tt.unique {
				t.Errorf("unique: got Valid %v, want %v", got, tt.unique)
			}
			if got := readValue(t, &callRecorder{closed: true}, tt.value); got != tt.closed {
				t.Errorf("closed: got Valid %v, want %v", got, tt.closed)
			}
		})
	}
}

// readValue reads an object whose member v has the value and the rules, and the known names a
// and b. It reports Result.Valid.
func readValue(t *testing.T, rules strictjson.KeyRules, value string) bool {
	t.Helper()
	inner, keys := &strictjson.Shape{Rules: rules}, new(strictjson.Shape)
	inner.Add("a", nil)
	inner.Add("b", nil)
	keys.Add("v", inner)
	r, err := strictjson.Read([]byte(`{"v":`+value+`}`), keys)
	if err != nil {
		t.Fatal(err)
	}
	return r.Valid
}

func TestCodePoints(t *testing.T) {
	for quoted, want := range map[string]int{
		``: 0, `abc`: 3, `äß`: 2, `a\nb`: 3, `\u00e4`: 1, `\ud83d\ude00!`: 2, `😀\"\\`: 3,
	} {
		if got := strictjson.CodePoints([]byte(quoted)); got != want {
			t.Errorf("%s: got %d, want %d", quoted, got, want)
		}
	}
}

package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/tool"
)

// argsFixture is a gate with one tool that keeps the arguments it receives.
type argsFixture struct {
	*fixture
	got [][]byte // one entry for each run
}

// newArgsFixture returns a gate whose tool has the given properties in its schema.
func newArgsFixture(t testing.TB, properties string) *argsFixture {
	t.Helper()
	d, p := definition("a", tool.Mutating), &argsFixture{}
	d.Input = json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
	p.fixture = newFixture(t, &fakeTool{definition: d, run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		p.got = append(p.got, bytes.Clone(c.Args))
		return tool.Result{}, nil
	}})
	return p
}

// wantRun checks that the tool runs once with exactly the bytes of args.
func (p *argsFixture) wantRun(t *testing.T, args string) {
	t.Helper()
	p.got = nil
	a := p.call("a", args)
	if a.Code() != "" || len(p.got) != 1 {
		t.Fatalf("got %.200s, ran %d times, want one run", a.Result.JSON(), len(p.got))
	}
	if string(p.got[0]) != args {
		t.Errorf("the tool got %.200q, authorised was %.200q", p.got[0], args)
	}
}

// wantRefusal checks that args are rejected, with why in the message.
func (p *argsFixture) wantRefusal(t *testing.T, args, why string) {
	t.Helper()
	p.got = nil
	a := p.call("a", args)
	if a.Code() != errcode.InvalidArguments || a.Allowed() || len(p.got) != 0 {
		t.Fatalf("got %q, ran with %.200q, want invalid_arguments", a.Code(), p.got)
	}
	if text := string(a.Result.JSON()); !strings.Contains(text, why) || len(text) > 1000 {
		t.Errorf("got %.1000s, want %q in a few words", text, why)
	}
}

// duplicates are the valid documents of the suite that are rejected nevertheless:
// two readers could find two values under one key.
var duplicates = map[string]bool{"y_object_duplicated_key.json": true, "y_object_duplicated_key_and_value.json": true}

// Each document of JSONTestSuite is sent as the value of a property. None of the 188
// invalid documents reaches the tool. 93 of the 95 valid ones reach it byte for
// byte. The others must not crash the gate; those that run reach the tool unchanged.
func TestCall_JSONTestSuiteAsValue(t *testing.T) {
	p, ran := newArgsFixture(t, ""), map[string]int{}
	for _, d := range corpus.JSONDocuments() {
		t.Run(d.Name, func(t *testing.T) {
			args := `{"value":` + string(d.Text) + `}`
			switch {
			case d.Expect == corpus.ExpectAccept && !duplicates[d.Name]:
				p.wantRun(t, args)
			case d.Expect == corpus.ExpectEither && p.call("a", args).Allowed():
				p.wantRun(t, args)
			default:
				p.wantRefusal(t, args, "at byte ")
			}
			ran[d.Expect] += len(p.got)
		})
	}
	if ran[corpus.ExpectAccept] != 93 || ran[corpus.ExpectReject] != 0 {
		t.Errorf("got %v runs, want 93 of valid documents and none of invalid ones", ran)
	}
}

// Sent as the arguments themselves, only the objects of the suite reach the tool.
func TestCall_JSONTestSuiteAsArguments(t *testing.T) {
	p, ran := newArgsFixture(t, ""), 0
	for _, d := range corpus.JSONDocuments() {
		t.Run(d.Name, func(t *testing.T) {
			args, object := string(d.Text), strings.HasPrefix(strings.TrimSpace(string(d.Text)), "{")
			switch {
			case args == "": // left out
				return
			case d.Expect == corpus.ExpectAccept && object && !duplicates[d.Name]:
				ran++
				p.wantRun(t, args)
			case d.Expect == corpus.ExpectEither && p.call("a", args).Allowed():
				p.wantRun(t, args)
			default:
				p.wantRefusal(t, args, "at byte ")
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d of the suite's objects ran", ran)
	}
}

// Documents that the gate and a tool could read differently are rejected. Unusual
// documents that mean the same to all readers reach the tool unchanged.
func TestCall_RejectsAmbiguousJSON(t *testing.T) {
	p := newArgsFixture(t, `"path":{"type":"string"},"mask":{"type":"object","properties":{"kind":{}}}`)
	tests := []struct{ name, args, why string }{ // the tool runs if why is ""
		{"byte order mark", "\ufeff{}", "not an object"},
		{"byte order mark at the end", "{}\ufeff", "text after"},
		{"half a byte order mark", "\xef\xbb{}", "invalid UTF-8"},
		{"UTF-16", "{\x00}\x00", "expected"},
		{"zero byte at the end", "{}\x00", "text after"},
		{"line break at the end", "{}\n", ""},
		{"a second object", `{}{"path":"x"}`, "text after"},
		{"a second line", "{}\n{}", "text after"},
		{"comma at the end", `{},`, "text after"},
		{"a comment", `{/*"path":1*/}`, "expected"},
		{"white space only", " ", "not an object"},
		{"null", `null`, "not an object"},
		{"a list of one object", `[{"path":"x"}]`, "not an object"},
		{"a text of an object", `"{\"path\":\"x\"}"`, "not an object"},
		{"a number", `7`, "not an object"},
		{"a key in upper case", `{"PATH":"x"}`, `differs from \"path\"`},
		{"key and key in upper case", `{"path":"x","Path":"y"}`, `differs from \"path\"`},
		{"a key in upper case by an escape", `{"\u0050ath":"x"}`, `differs from \"path\"`},
		{"a long s", "{\"ma\u017fk\":{}}", `differs from \"mask\"`},
		{"a long s by an escape", `{"ma\u017Fk":{}}`, `differs from \"mask\"`},
		{"the Kelvin sign", "{\"mas\u212a\":{}}", `differs from \"mask\"`},
		{"the Kelvin sign one level down", "{\"mask\":{\"\u212aind\":1}}", `differs from \"kind\"`},
		{"an escaped key", `{"p\u0061th":"x"}`, ""},
		{"an escaped key and the key", `{"p\u0061th":"x","path":"y"}`, "duplicate key"},
		{"a key escaped in two ways", `{"a\/":1,"a\u002f":2}`, "duplicate key"},
		{"a zero byte in a key", `{"path\u0000":"x","path":"y"}`, ""},
		{"a raw zero byte in a key", "{\"path\x00\":1}", "control character"},
		{"keys that differ in normal form", "{\"\u00e9\":1,\"e\u0301\":2}", ""},
		{"the empty key twice", `{"":1,"":2}`, "duplicate key"},
		{"keys with a meaning in gjson paths", `{"a.b":1,"*":2,"@reverse":3,"#":4,"a|b":5}`, ""},
		{"keys of JavaScript prototypes", `{"__proto__":{"path":"x"},"constructor":1}`, ""},
		{"minus zero", `{"n":-0,"m":-0.0e-0}`, ""},
		{"integer beyond 64 bits", `{"n":123456789012345678901234567890}`, ""},
		{"number beyond a double", `{"n":1e400}`, ""},
		{"a number of 400 digits", `{"n":` + strings.Repeat("9", 400) + `}`, ""},
		{"a number of 1,000 digits", `{"n":` + strings.Repeat("9", 1000) + `}`, "number longer"},
		{"a fraction of 1,000 digits", `{"n":0.` + strings.Repeat("9", 1000) + `}`, "number longer"},
		{"huge exponent", `{"n":1e999}`, "exponent"},
		{"huge negative exponent", `{"n":1e-999}`, "exponent"},
		{"exponent with many leading zeros", `{"n":1e` + strings.Repeat("0", 300) + `1}`, ""},
		{"not a number", `{"n":NaN}`, "expected"},
		{"infinity", `{"n":-Infinity}`, "expected"},
		{"hexadecimal", `{"n":0x1}`, "expected"},
		{"plus sign", `{"n":+1}`, "expected"},
		{"a lone high surrogate", `{"path":"\ud800"}`, "lone surrogate"},
		{"a lone low surrogate", `{"path":"\udfff"}`, "lone surrogate"},
		{"surrogates in the wrong order", `{"path":"\ude00\ud83d"}`, "lone surrogate"},
		{"a lone surrogate in a key", `{"\ud800":1}`, "lone surrogate"},
		{"a pair of surrogates", `{"path":"\ud83d\ude00"}`, ""},
		{"an overlong encoding", "{\"path\":\"\xc0\xaf\"}", "invalid UTF-8"},
		{"a surrogate in UTF-8", "{\"path\":\"\xed\xa0\x80\"}", "invalid UTF-8"},
		{"64 levels", `{"v":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, ""},
		{"65 levels", `{"v":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "nesting deeper"},
		{"6 MB of brackets", strings.Repeat("[", 6<<20), "not an object"},
		{"6 MB of brackets in a value", `{"v":` + strings.Repeat("[", 6<<20), "nesting deeper"},
		{"6 MB of objects", strings.Repeat(`{"a":`, 6<<20/5), "nesting deeper"},
		{"6 MB of open text", `{"path":"` + strings.Repeat("a", 6<<20), "string without end"},
		{"8 MiB", sized(8 << 20), ""},
		{"one byte more than 8 MiB", sized(8<<20 + 1), "8388609 bytes; at most 8388608"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.why == "" {
				p.wantRun(t, tt.args)
				return
			}
			p.wantRefusal(t, tt.args, tt.why)
			wantDeniedToo(t, p, tt.args)
		})
	}
}

// sized returns arguments of n bytes.
func sized(n int) string {
	const frame = `{"path":""}`
	return frame[:len(frame)-2] + strings.Repeat("x", n-len(frame)) + frame[len(frame)-2:]
}

// wantDeniedToo checks that rejected arguments do not lead past the authorization
// of a tool of another group.
func wantDeniedToo(t *testing.T, p *argsFixture, args string) {
	t.Helper()
	switch a := p.call("theirs", args); a.Code() {
	case errcode.InvalidArguments, errcode.ToolNotAvailable:
	default:
		t.Errorf("tool of another group: got %q", a.Code())
	}
}

// FuzzArguments checks that a tool runs with the bytes that were sent or not at all,
// and that all readers find the same value in the declared field.
func FuzzArguments(f *testing.F) {
	for _, d := range corpus.JSONDocuments() {
		if len(d.Text) < 1024 {
			f.Add(append(append([]byte(`{"path":`), d.Text...), '}'))
		}
	}
	f.Add([]byte(`{"p\u0061th":"x"}`))
	f.Add([]byte(`{"path":"x","Path":"y"}`))
	p := newArgsFixture(f, `"path":{"type":"string"}`)
	f.Fuzz(func(t *testing.T, args []byte) {
		p.got = nil
		list, err := p.Call(t.Context(), ann, []gate.CallRequest{request("a", string(args)), request("theirs", string(args))}, &fakeRecorder{})
		if err != nil || len(list) != 2 || list[1].Allowed() {
			t.Fatalf("got %d outcomes, %v", len(list), err)
		}
		if a := list[0]; a.Allowed() != (len(p.got) == 1) || !a.Allowed() && a.Code() != errcode.InvalidArguments {
			t.Fatalf("allowed %v, code %q, ran %d times", a.Allowed(), a.Code(), len(p.got))
		}
		if len(p.got) == 1 {
			wantField(t, args, p.got[0])
		}
	})
}

func wantField(t *testing.T, sent, got []byte) {
	t.Helper()
	if len(sent) > 0 && !bytes.Equal(sent, got) {
		t.Fatalf("the tool got %q, sent was %q", got, sent)
	}
	var exact map[string]any
	var bound struct{ Path any }
	if json.Unmarshal(got, &exact) != nil || json.Unmarshal(got, &bound) != nil {
		t.Fatalf("%q ran and is not an object", got)
	}
	if bound.Path != exact["path"] {
		t.Errorf("a struct reads %q, a map %q", bound.Path, exact["path"])
	}
}

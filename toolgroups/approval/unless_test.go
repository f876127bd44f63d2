package approval_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// unlessRule returns a rule that leaves out the calls within bounds.
func unlessRule(t testing.TB, text string) approval.Rule {
	t.Helper()
	bound, err := bounds.ParseRule([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return approval.Rule{Tools: []string{"t"}, Unless: bound, From: approval.Approvers{Any: []approval.Quorum{{Operator: true}}}}
}

// asks reports whether a call with these arguments waits.
func asks(r approval.Rule, args string) bool {
	return len(approval.Rules{r}.ForArguments(json.RawMessage(args), nil)) == 1
}

func TestRules_ForArguments(t *testing.T) {
	amount, to := unlessRule(t, `{"/amount": {"max": 1000}}`), unlessRule(t, `{"/to/*": {"equal": "é@x"}}`)
	for _, tt := range []struct {
		rule approval.Rule
		args string
		want bool
	}{
		{amount, `{"amount":1000}`, false},
		{amount, `{"amount":1e3}`, false},
		{amount, `{"amount":1000.0000000000000000001}`, true},
		{amount, `{"amount":1e400}`, true},
		{amount, `{"amount":"1000"}`, true},
		{amount, `{"amount":true}`, true},
		{amount, `{"amount":null}`, true},
		{amount, `{"amount":{}}`, true},
		{amount, `{}`, true},
		{amount, `{"Amount":5}`, true},
		{amount, `{"amount":5,"AMOUNT":5}`, true},
		{amount, `{"\u0061mount":5}`, false},
		{amount, `{"deep":{"amount":5}}`, true},
		{to, `{"to":["é@x"]}`, false},
		{to, `{"to":["\u00e9@x"]}`, false},
		{to, `{"to":["e\u0301@x"]}`, true}, // the same letter in two code points
		{to, `{"to":["é@x","b@x"]}`, true},
		{to, `{"to":["é@x",null]}`, true},
		{to, `{"to":[["é@x"]]}`, true},
		{to, `{"to":[]}`, true},
		{to, `{"to":"é@x"}`, true},
	} {
		if got := asks(tt.rule, tt.args); got != tt.want {
			t.Errorf("unless %s, %s: asks %v", tt.rule.Unless, tt.args, got)
		}
	}
	rules := approval.Rules{amount, {Tools: []string{"t"}}, to}
	if got := rules.ForArguments(json.RawMessage(`{"amount":5}`), nil); len(got) != 2 || !got[1].Equal(&to) || len(rules) != 3 || !rules[0].Equal(&amount) {
		t.Errorf("%v of %v", got, rules)
	}
}

// A stored rule whose unless cannot be read selects all calls, and keeps its text.
func TestRule_StoredUnless(t *testing.T) {
	for _, text := range []string{`{"/a":{"most":1}}`, `{}`, `[]`, `1`, `"x"`, `{"/a":{"max":1,"missing":"allow"}}`} {
		var r approval.Rule
		if err := json.Unmarshal([]byte(`{"tools":["t"],"unless":`+text+`,"from":{"any":[{"operator":true}]}}`), &r); err != nil {
			t.Fatal(err)
		}
		stored, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(stored), `"unless":`+text) || !asks(r, `{"a":1}`) || !asks(r, `{}`) || r.Check() == nil {
			t.Errorf("%s is stored as %s, %v; check: %v", text, stored, err, r.Check())
		}
	}
	r := unlessRule(t, `{"/a":{"max":1}}`)
	stored, _ := json.Marshal(r)
	var again approval.Rule
	if err := json.Unmarshal(stored, &again); err != nil || !again.Equal(&r) || asks(again, `{"a":1}`) || r.Check() != nil {
		t.Errorf("%s: %v", stored, err)
	}
	if plain, _ := json.Marshal(approval.Rule{}); strings.Contains(string(plain), "unless") {
		t.Errorf("%s", plain)
	}
}

func TestRule_String(t *testing.T) {
	r := unlessRule(t, `{"/a":{"max":1}}`)
	r.Groups, r.Effect, r.From = []string{"g"}, "mutating", approval.Approvers{All: []approval.Quorum{{Role: "finance", Count: 2}, {Operator: true}}}
	if got, want := r.String(), `tools t; groups g; effect mutating; unless {"/a":{"max":1}}; from 2 of finance and operator`; got != want {
		t.Errorf("%s", got)
	}
	r.From = approval.Approvers{Any: []approval.Quorum{{Role: "a"}, {Role: "b"}}}
	if got := r.String(); !strings.HasSuffix(got, "from a or b") {
		t.Errorf("%s", got)
	}
}

// oddValues are values of arguments that programs take for each other.
var oddValues = []string{
	`1`, `1.0`, `1e0`, `10e-1`, `-0`, `0`, `1000`, `1e3`, `1000.0000000000001`, `1e400`, `9007199254740993`, `9007199254740992`,
	`"1"`, `"1e3"`, `true`, `false`, `"true"`, `null`, `"null"`, `""`, `"a"`, `"A"`, `"\u0061"`, `"é"`, `"e\u0301"`, `"a\u0000"`, `"a "`,
	`{}`, `[]`, `[1]`, `[1,1e0]`, `["a"]`, `["a",null]`, `[[1]]`, `{"x":1}`, `{"x":null}`, `{"X":1}`, `{"x":1,"X":1}`, `{"x":[1]}`, `[{"x":1}]`,
}

// naive evaluates bounds of the operators equal, min, max and any as their documentation says,
// on decoded values.
type naive struct{}

func decoded(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		panic(text)
	}
	return v
}

func (n naive) allows(rule, args string) bool {
	for pointer, c := range decoded(rule).(map[string]any) {
		if !n.path(decoded(args), strings.Split(pointer, "/")[1:], c.(map[string]any)) {
			return false
		}
	}
	return true
}

func (n naive) path(v any, steps []string, c map[string]any) bool {
	if len(steps) == 0 {
		return n.value(v, c)
	}
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if key != steps[0] && strings.EqualFold(key, steps[0]) {
				return false
			}
		}
		next, ok := v[steps[0]]
		return ok && steps[0] != "*" && n.path(next, steps[1:], c)
	case []any:
		for _, e := range v {
			if !n.path(e, steps[1:], c) {
				return false
			}
		}
		return len(v) > 0 && steps[0] == "*"
	}
	return false
}

func (n naive) value(v any, c map[string]any) bool {
	for name, want := range c {
		number, isNumber := rational(v)
		bound, _ := rational(want)
		switch {
		case name == "any":
			ok := false
			for _, one := range want.([]any) {
				ok = ok || n.value(v, one.(map[string]any))
			}
			if !ok {
				return false
			}
		case name == "equal" && isNumber && bound != nil:
			if number.Cmp(bound) != 0 {
				return false
			}
		case name == "equal":
			_, object := v.(map[string]any)
			_, list := v.([]any)
			if object || list || v != want {
				return false
			}
		case !isNumber, name == "max" && number.Cmp(bound) > 0, name == "min" && number.Cmp(bound) < 0:
			return false
		}
	}
	return true
}

// rational returns the exact value of a number.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

// randomRule returns bounds on one path or two.
func randomRule(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var condition func(depth int) string
	condition = func(depth int) string {
		switch r.IntN(5 - depth) {
		case 0:
			return `{"max":` + pick("1", "1000", "1e3", "-1", "9007199254740992") + `}`
		case 1:
			return `{"min":` + pick("0", "1", "999.5") + `,"max":` + pick("1", "2e3") + `}`
		case 2, 3:
			return `{"equal":` + pick(`"a"`, `"é"`, `"1"`, `1`, `1e3`, `true`, `9007199254740993`) + `}`
		}
		return `{"any":[` + condition(1) + `,` + condition(1) + `]}`
	}
	rule := map[string]json.RawMessage{}
	for range 1 + r.IntN(2) {
		rule[pick("/v", "/v/*", "/v/x", "/v/*/x", "/w")] = json.RawMessage(condition(0))
	}
	text, _ := json.Marshal(rule)
	return string(text)
}

// The bounds of unless decide as the naive evaluator does, about odd values in all places.
func TestUnless_AsNaiveEvaluator(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 54))
	passed := 0
	for range short.Count(20_000, 100_000) {
		text := randomRule(random)
		args := map[string]json.RawMessage{}
		for _, key := range []string{"v", "w", "V"} {
			if random.IntN(4) > 0 && (key != "V" || random.IntN(8) == 0) {
				args[key] = json.RawMessage(oddValues[random.IntN(len(oddValues))])
			}
		}
		doc, _ := json.Marshal(args)
		want := !naive{}.allows(text, string(doc))
		if got := asks(unlessRule(t, text), string(doc)); got != want {
			t.Fatalf("unless %s, %s: asks %v, want %v", text, doc, got, want)
		}
		if !want {
			passed++
		}
	}
	if passed == 0 {
		t.Error("no call was left out")
	}
}

// Whatever the bounds are, a call waits whose arguments have null or nothing at one of the paths
// of the top level, and equal documents are decided alike.
func FuzzUnless(f *testing.F) {
	f.Add(`{"/amount": {"max": 1e3}}`, `{"amount": 1000}`)
	f.Add(`{"/to/*": {"any": [{"equal": "a"}, {"glob": "*@x"}]}}`, `{"to": ["é@x", null]}`)
	f.Add(`{"/a/b/0": {"matches": "a+"}, "/u": {"url": {"host": "a.b"}}}`, `{"a": {"b": ["aa"]}, "u": "https://a.b"}`)
	f.Fuzz(func(t *testing.T, text, args string) {
		bound, err := bounds.ParseRule([]byte(text))
		if err != nil || strictjson.CheckObject([]byte(args), nil) != nil {
			return
		}
		r := approval.Rule{Unless: bound}
		got := asks(r, args)
		var spaced bytes.Buffer
		if json.Indent(&spaced, []byte(args), " ", "\t") == nil && asks(r, spaced.String()) != got {
			t.Fatalf("%s: white space decides about %s", text, args)
		}
		doc := decoded(args).(map[string]any)
		for _, path := range bound.Paths() {
			name := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.Split(path, "/")[1])
			if v, ok := doc[name]; (!ok || v == nil) && !got {
				t.Fatalf("unless %s, %s: does not ask", text, args)
			}
		}
	})
}

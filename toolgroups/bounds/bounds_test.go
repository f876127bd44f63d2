package bounds_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/toolgroups/bounds"
)

func ExampleRule_CheckArguments() {
	rule, err := bounds.ParseRule([]byte(`{"/to": {"any": [{"equal": "a@x.example"}, {"glob": "*@y.example"}]}, "/amount": {"max": 1000}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rule.CheckArguments([]byte(`{"to": "b@y.example", "amount": 1e3}`), nil) == nil)
	fmt.Println(rule.CheckArguments([]byte(`{"to": "b@y.example", "amount": 1000.0000000000001}`), nil))
	// Output:
	// true
	// /amount: the argument is outside the bound; the bound is {"max":1000}
}

// rule parses a rule.
func rule(t testing.TB, text string) bounds.Rule {
	t.Helper()
	r, err := bounds.ParseRule([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// inputs are the task inputs of the tests.
func inputs(name string) (json.RawMessage, bool) {
	value, ok := map[string]string{
		"recipients": `["a@x", "b@x", 7]`, "one": `"a@x"`, "limit": `1e3`, "flag": `true`, "none": `null`, "object": `{"a": "a@x"}`, "nested": `[["a@x"]]`, "empty": `[]`,
	}[name]
	return json.RawMessage(value), ok
}

// quote returns a text as JSON.
func quote(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// Each case is a condition of /v, with the values that it allows and those that it rejects.
func TestCheckArguments_Values(t *testing.T) {
	for _, c := range []struct {
		condition     string
		allow, reject []string
	}{
		{`{"equal": "a@x"}`, []string{`"a@x"`, `"\u0061@x"`}, []string{`"A@x"`, `"a@x "`, `"ａ@x"`, `"a@x\u0000"`, `["a@x"]`, `{"a":"a@x"}`, `null`, `1`, `true`, `""`}},
		{`{"equal": "\u00e9"}`, []string{`"é"`, `"\u00E9"`}, []string{`"e\u0301"`, `"É"`}},
		{`{"equal": 1000}`, []string{`1000`, `1e3`, `1E+3`, `1000.0`, `100000e-2`, `0.1e4`}, []string{`1000.0000000000001`, `999.9999999999999999999999`, `"1000"`, `-1000`, `true`}},
		{`{"equal": 0}`, []string{`0`, `-0`, `0.0`, `0e400`, `-0.0e-3`}, []string{`1e-400`, `false`, `""`}},
		{`{"equal": 9007199254740993}`, []string{`9007199254740993`}, []string{`9007199254740992`, `9007199254740994`}},
		{`{"equal": false}`, []string{`false`}, []string{`true`, `0`, `"false"`, `null`}},
		{`{"max": 1000}`, []string{`1000`, `1e3`, `-5`, `999.99999999999999999999`, `0`}, []string{`1000.0000000000001`, `1001`, `1e400`, `"1"`, `[1]`, `1.00000000000000000000000000001e3`}},
		{`{"min": -1.5, "max": 1.5}`, []string{`-1.5`, `1.5`, `-15e-1`, `0`}, []string{`-1.50000000000000000001`, `1.50000000000000000001`, `-2`, `2`}},
		{`{"any": [{"equal": "a"}, {"max": 1}]}`, []string{`"a"`, `1`}, []string{`"b"`, `2`, `[1]`}},
		{`{"any": [{"equal": "a"}, {"equal": "b"}], "glob": "a*"}`, []string{`"a"`}, []string{`"b"`}},
		{`{"glob": "*@y.example"}`, []string{`"a@y.example"`, `"@y.example"`, `"a.b+c@y.example"`, `"ä@y.example"`}, []string{
			`"evil@z.example,a@y.example"`, `"evil@z.example;a@y.example"`, `"evil@z.example a@y.example"`, `"evil@z.example\na@y.example"`, `"evil@z.example\u0000@y.example"`,
			`"evil@z.example\u2028a@y.example"`, `"evil@z.example\u00a0a@y.example"`, `"a@y.example.evil"`, `"a@y.example\n"`, `"a@Y.example"`, `"a@xy.example"`, `"a\u200b@y.example"`,
			`"\u202ea@y.example"`, `"evil＠z.example，a@y.example"`, `"a/b@y.example"`, `"a\ufffd@y.example"`, `"a\u007f@y.example"`, `"evil@z.example>@y.example"`, `"evil\u037ea@y.example"`}},
		{`{"glob": "a*b*c"}`, []string{`"abc"`, `"aXbYc"`, `"abbc"`, `"abcbc"`}, []string{`"ab"`, `"ac"`, `"a bc"`, `"abcd"`}},
		{`{"glob": "*"}`, []string{`""`, `"abc"`}, []string{`"a b"`, `"a@b"`, `1`}},
		{`{"matches": "[A-Z]{2}[0-9]+"}`, []string{`"AT1"`}, []string{`"xAT1"`, `"AT1\n"`, `"AT1x"`, `"at1"`, `"AT"`, `1`}},
		{`{"matches": "a|b"}`, []string{`"a"`, `"b"`}, []string{`"ab"`, `"ax"`, `"xb"`}},
		{`{"matches": "(?m)^a$"}`, []string{`"a"`}, []string{`"b\na"`, `"a\nb"`}},
		{`{"under": "reports"}`, []string{`"reports"`, `"reports/a"`, `"./reports//a/"`, `"reports/../reports/a"`, `"reports/a/../b"`}, []string{
			`"reports/../x"`, `"reportsx"`, `"/reports/a"`, `"../reports/a"`, `"reports\\..\\x"`, `""`, `"."`, `"reports/\u0000"`, `"Reports/a"`, `"x/reports"`, `["reports"]`, `"reports/../../reports"`}},
		{`{"under": "/srv/data/"}`, []string{`"/srv/data/a"`, `"/srv/data"`, `"/srv/x/../data/b"`}, []string{`"/srv/database"`, `"srv/data/a"`, `"/srv/data/../x"`, `"C:/srv/data/a"`}},
		{`{"under": "."}`, []string{`"a"`, `"a/../b"`}, []string{`"../a"`, `"a/../../b"`, `"/a"`, `".."`, `"c:/a"`, `""`}},
		{`{"under": "/"}`, []string{`"/a"`, `"/"`, `"/../a"`}, []string{`"a"`, `"../a"`}},
		{`{"input": "recipients"}`, []string{`"a@x"`, `"b@x"`, `7`, `7.0`}, []string{`"c@x"`, `"7"`, `["a@x"]`}},
		{`{"input": "one"}`, []string{`"a@x"`}, []string{`"b@x"`}},
		{`{"input": "limit"}`, []string{`1000`}, []string{`"1000"`, `1001`}},
		{`{"input": "flag"}`, []string{`true`}, []string{`false`, `"true"`}},
		{`{"input": "none"}`, nil, []string{`null`, `"a@x"`}},
		{`{"input": "object"}`, nil, []string{`"a@x"`, `{"a": "a@x"}`}},
		{`{"input": "nested"}`, nil, []string{`"a@x"`, `["a@x"]`}},
		{`{"input": "empty"}`, nil, []string{`"a@x"`, `[]`}},
		{`{"input": "unknown"}`, nil, []string{`"a@x"`, `null`}},
	} {
		r := rule(t, `{"/v": `+c.condition+`}`)
		for _, value := range c.allow {
			if v := r.CheckArguments([]byte(`{"w": 1, "v": `+value+`}`), inputs); v != nil {
				t.Errorf("%s rejects %s: %v", c.condition, value, v)
			}
		}
		for _, value := range c.reject {
			if v := r.CheckArguments([]byte(`{"w": 1, "v": `+value+`}`), inputs); v == nil {
				t.Errorf("%s allows %s", c.condition, value)
			}
		}
	}
}

// Each URL is checked against https or http URLs of api.x.example below /v1/.
func TestCheckArguments_URLs(t *testing.T) {
	r := rule(t, `{"/v": {"url": {"host": "api.x.example", "path": "/v1/"}}}`)
	for _, text := range []string{
		"https://api.x.example/v1/", "http://api.x.example/v1/a", "https://API.X.EXAMPLE/v1/a", "HTTPS://api.x.example/v1/a?b=..%2f&c=@", "https://api.x.example:443/v1/a",
		"https://api.x.example./v1/a", "https://api.x.example/v1/a#@evil.example", "https://api.x.example/v1/a%20b", "https://api.x.example/v1/%C3%A9", "https://api.x.example/v1//a", "https://api.x.example:/v1/a",
	} {
		if v := r.CheckArguments([]byte(`{"v": `+quote(text)+`}`), nil); v != nil {
			t.Errorf("%s: %v", text, v)
		}
	}
	for _, text := range []string{
		"https://evil.example/v1/", "https://api.x.example.evil.example/v1/", "https://api.x.example@evil.example/v1/", "https://evil.example@api.x.example/v1/", "https://user:pass@api.x.example/v1/",
		"https://@api.x.example/v1/", "https://api.x.example:8443/v1/", "https://api.x.example:80/v1/", "http://api.x.example:443/v1/", "https://api.x.example/v1", "https://api.x.example/v2/", "https://api.x.example/V1/",
		"https://api.x.example/v1/../admin", "https://api.x.example/v1/%2e%2e/admin", "https://api.x.example/v1/%2E./admin", "https://api.x.example/v1/..%2fadmin", "https://api.x.example/v1/.%2e/admin",
		"https://api.x.example/v1/..%5cadmin", `https://api.x.example/v1/..\admin`, `https://api.x.example\@evil.example/v1/`, "https://api.x.example/v1/%252e%252e/admin", "https://api.x.example/v1/..;/admin",
		"https://api.x.example/v1/..;a=b/admin", "https://api.x.example/v1/./a", "https://api.x.example/v1/.", "https://api.x.example/v1/..", "https://api.x.example/v1/%00", "https://api.x.example/v1/%0d%0aHost:evil",
		"https://api.x.example/v1/%3f", "https://api.x.example/v1/%23", "https://api.x.example/v1/%40", "https://api.x.example/v1/%c0%ae%c0%ae/", "https://api.x.example/%76%31/", "https://api.x.example//v1/",
		"https:/api.x.example/v1/", "https:///api.x.example/v1/", "https:api.x.example/v1/", "//api.x.example/v1/", "/v1/", "", "ftp://api.x.example/v1/", "javascript:https://api.x.example/v1/",
		" https://api.x.example/v1/", "https://api.x.example/v1/ ", "https://api.x.example/v1/\n", "https://api.x.example\t/v1/", "ht\ntps://api.x.example/v1/", "https://аpi.x.example/v1/", "https://api。x.example/v1/",
		"https://ａpi.x.example/v1/", "https://api.x.example%2f@evil.example/v1/", "https://api.x.example%00.evil.example/v1/", "https://api.x.example:0443@evil.example/v1/", "https://[::1]/v1/",
		"https://api.x.example/v1/" + strings.Repeat("a", 9000), "https://api.x.example/v1/%zz", "https://api.x.example/v1/%2", "https://sub.api.x.example/v1/", "https://x.example/v1/", "https://api.x.example?/v1/", "https://api.x.example#/v1/",
	} {
		if v := r.CheckArguments([]byte(`{"v": `+quote(text)+`}`), nil); v == nil {
			t.Errorf("%s is allowed", text)
		}
	}
	port := rule(t, `{"/v": {"url": {"scheme": "https", "host": "*.x.example:8443"}}}`)
	for text, want := range map[string]bool{"https://a.x.example:8443/x": true, "https://a.x.example:8443": true, "http://a.x.example:8443/x": false, "https://a.x.example/x": false, "https://x.example:8443/": false} {
		if v := port.CheckArguments([]byte(`{"v": `+quote(text)+`}`), nil); (v == nil) != want {
			t.Errorf("%s: %v", text, v)
		}
	}
}

// Each case has a rule, arguments, and the operator that rejects them, "" for none.
func TestCheckArguments_Paths(t *testing.T) {
	for _, c := range []struct{ rule, args, operator string }{
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": ["a@y", "b@y"]}`, ""},
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": ["a@y", "b@z"]}`, "glob"},
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": ["a@y", null]}`, "missing"},
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": ["a@y", ["b@y"]]}`, "type"},
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": []}`, "missing"},
		{`{"/to/*": {"glob": "*@y", "missing": "allow"}}`, `{"to": []}`, ""},
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": "a@y"}`, "type"},
		{`{"/to/*": {"glob": "*@y"}}`, `{"to": {"a": "a@y"}}`, "type"},
		{`{"/to/*/mail": {"equal": "a"}}`, `{"to": [{"mail": "a"}, {"mail": "a", "x": 1}]}`, ""},
		{`{"/to/*/mail": {"equal": "a"}}`, `{"to": [{"mail": "a"}, {"mail": "b"}]}`, "equal"},
		{`{"/to/*/mail": {"equal": "a"}}`, `{"to": [{"mail": "a"}, {}]}`, "missing"},
		{`{"/to/*/*": {"equal": "a"}}`, `{"to": [["a"], ["a", "a"]]}`, ""},
		{`{"/to/0": {"equal": "a"}}`, `{"to": ["a", "b"]}`, ""},
		{`{"/to/1": {"equal": "a"}}`, `{"to": ["a", "b"]}`, "equal"},
		{`{"/to/2": {"equal": "a"}}`, `{"to": ["a", "b"]}`, "missing"},
		{`{"/to/00": {"equal": "a"}}`, `{"to": ["a"]}`, "type"},
		{`{"/to/x": {"equal": "a"}}`, `{"to": ["a"]}`, "type"},
		{`{"/a/b": {"equal": 1}}`, `{"a": {"b": 1}}`, ""},
		{`{"/a/b": {"equal": 1}}`, `{"a": {"b": 2}, "b": 1}`, "equal"},
		{`{"/a/b": {"equal": 1}}`, `{"a": 1}`, "type"},
		{`{"/a/b": {"equal": 1}}`, `{"a": null}`, "missing"},
		{`{"/a/b": {"equal": 1}}`, `{}`, "missing"},
		{`{"/a/b": {"equal": 1, "missing": "allow"}}`, `{}`, ""},
		{`{"/a/b": {"equal": 1, "missing": "allow"}}`, `{"a": {"b": null}}`, ""},
		{`{"/a/b": {"equal": 1, "missing": "allow"}}`, `{"a": {"b": [1]}}`, "type"},
		{`{"/a/b": {"equal": 1, "missing": "allow"}}`, `{"a": "x"}`, "type"},
		{`{"/a/b": {"equal": 1, "missing": "allow"}}`, `{"a": {"B": 2}}`, "case"},
		{`{"/to": {"equal": "a"}}`, `{"to": "a", "TO": "evil"}`, "case"},
		{`{"/k": {"equal": "a"}}`, `{"k": "a", "\u212a": "evil"}`, "case"},
		{`{"/a~1b/c~0d": {"equal": 1}}`, `{"a/b": {"c~d": 1}}`, ""},
		{`{"/a.b": {"equal": 1}}`, `{"a.b": 1, "a": {"b": 2}}`, ""},
		{`{"/": {"equal": 1}}`, `{"": 1}`, ""},
		{`{"/a": {"equal": 1}, "/b": {"equal": 2}}`, `{"a": 1, "b": 3}`, "equal"},
		{`{"/a": {"equal": 1}}`, `{"\u0061": 1}`, ""},
	} {
		got := ""
		if v := rule(t, c.rule).CheckArguments([]byte(c.args), nil); v != nil {
			got = v.Operator
		}
		if got != c.operator {
			t.Errorf("%s with %s: got %q, want %q", c.rule, c.args, got, c.operator)
		}
	}
}

// Arguments that a call leaves out have the defaults of the schema.
func TestForSchema_Defaults(t *testing.T) {
	schema := json.RawMessage(`{"type": "object", "$defs": {"money": {"type": "number", "default": 5000}}, "properties": {
		"low": {"type": "number", "default": 5}, "high": {"type": "number", "default": 5000}, "ref": {"$ref": "#/$defs/money"},
		"outer": {"type": "object", "default": {"inner": 7}, "properties": {"inner": {"type": "number", "default": 5000}}},
		"list": {"type": "array", "items": {"type": "object", "properties": {"n": {"default": 5000}}}}, "loop": {"$ref": "#/properties/loop"}}}`)
	for _, c := range []struct{ rule, args, operator string }{
		{`{"/low": {"max": 10}}`, `{}`, ""},
		{`{"/low": {"max": 10}}`, `{"low": 11}`, "max"},
		{`{"/low": {"max": 10}}`, `{"low": null}`, "missing"},
		{`{"/high": {"max": 10}}`, `{}`, "max"},
		{`{"/high": {"max": 10, "missing": "allow"}}`, `{}`, "max"},
		{`{"/ref": {"max": 10, "missing": "allow"}}`, `{}`, "max"},
		{`{"/outer/inner": {"max": 10}}`, `{}`, ""},
		{`{"/outer/inner": {"max": 10, "missing": "allow"}}`, `{"outer": {}}`, "max"},
		{`{"/list/*/n": {"max": 10, "missing": "allow"}}`, `{"list": [{"n": 1}, {}]}`, "max"},
		{`{"/loop": {"max": 10}}`, `{}`, "missing"},
		{`{"/absent": {"max": 10}}`, `{}`, "missing"},
	} {
		got := ""
		if v := rule(t, c.rule).ForSchema(schema).CheckArguments([]byte(c.args), nil); v != nil {
			got = v.Operator
		}
		if got != c.operator {
			t.Errorf("%s with %s: got %q, want %q", c.rule, c.args, got, c.operator)
		}
	}
}

func TestParse_RejectsMalformed(t *testing.T) {
	long := strings.Repeat("a", 5000)
	for text, want := range map[string]string{
		``: "not an object", `[]`: "not an object", `{}`: "no path", `{"to": {"equal": 1}}`: "begins with", `{"/a~2": {"equal": 1}}`: "~0", `{"/a": {}}`: "no operator", `{"/a": {"missing": "allow"}}`: "no operator",
		`{"/a": {"missing": "deny", "equal": 1}}`: `want "allow"`, `{"/a": 1}`: "object of operators", `{"/a": {"eq": 1}}`: "is no operator", `{"/a": {"equal": null}}`: "a text, a number",
		`{"/a": {"equal": [1]}}`: "a text, a number", `{"/a": {"equal": "` + long + `"}}`: "too long", `{"/a": {"any": []}}`: "list of conditions", `{"/a": {"any": [{"missing": "allow", "equal": 1}]}}`: "is no operator",
		`{"/a": {"any": [{"any": [{"any": [{"any": [{"any": [{"equal": 1}]}]}]}]}]}}`: "nested", `{"/a": {"glob": "a"}}`: "use equal", `{"/a": {"glob": 1}}`: "want a text", `{"/a": {"max": "1"}}`: "want a number",
		`{"/a": {"matches": "("}}`: "not a regular expression", `{"/a": {"matches": "(a{1000}){1000}"}}`: "not a regular expression", `{"/a": {"matches": "` + strings.Repeat(`\\pL`, 125) + `"}}`: "too large",
		`{"/a": {"matches": "a)|(b"}}`: "not a regular expression", `{"/a": {"matches": "(?=a)"}}`: "not a regular expression", `{"/a": {"matches": "` + long[:600] + `"}}`: "at most 512", `{"/a": {"matches": "[^a]{900}b{200}"}}`: "too large",
		`{"/a": {"url": "https://a"}}`: "want {", `{"/a": {"url": {"path": "/a"}}}`: "host is missing", `{"/a": {"url": {"host": "a", "query": "x"}}}`: "no", `{"/a": {"url": {"host": "a/b"}}}`: "host",
		`{"/a": {"url": {"host": "a", "path": "a"}}}`: "path", `{"/a": {"url": {"host": "a", "path": "/../a"}}}`: "path", `{"/a": {"url": {"host": "a", "path": "/%61"}}}`: "path", `{"/a": {"url": {"host": "a", "scheme": "ftp"}}}`: "http or https",
		`{"/a": {"under": ".."}}`: "lead up", `{"/a": {"under": "a/../../b"}}`: "lead up", `{"/a": {"under": "a\\b"}}`: "lead up", `{"/a": {"under": ""}}`: "want a text", `{"/a": {"input": 1}}`: "want a text",
		`{"/a": {"equal": 1}, "/a": {"equal": 2}}`: "duplicate", `{"/a": {"equal": 1e9999}}`: "exponent", `{"/a": {"equal": "\ud800"}}`: "surrogate", `{"` + strings.Repeat("/a", 17) + `": {"equal": 1}}`: "16 steps",
		`{"/a": {"equal": "` + strings.Repeat("a", 70_000) + `"}}`: "65536",
	} {
		_, err := bounds.ParseRule([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q", text, err, want)
		}
		if strings.HasPrefix(text, `{"/a": {`) && err != nil && !strings.Contains(text, `"/a": {"equal": 1}, `) && !strings.Contains(err.Error(), "/a: ") && !strings.Contains(err.Error(), "at byte") && !strings.Contains(err.Error(), "bytes;") {
			t.Errorf("%.80s: the error does not name the path: %v", text, err)
		}
	}
	for text, want := range map[string]string{`{"t": 1}`: "t: want", `{"": {"/a": {"equal": 1}}}`: "name of a tool", `{"*": {"/a": {"equal": 1}}}`: "name of a tool", `{"t": {"/a": {"max": true}}}`: "t: /a: max: want a number"} {
		if _, err := bounds.ParseBind([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestParse_LimitsCounts(t *testing.T) {
	var conditions, paths, tools []string
	for i := range 300 {
		conditions = append(conditions, fmt.Sprintf(`{"equal": %d}`, i))
		paths = append(paths, fmt.Sprintf(`"/%d": {"equal": 1}`, i))
		tools = append(tools, fmt.Sprintf(`"t%d": {"/a": {"equal": 1}}`, i))
	}
	for text, want := range map[string]string{
		`{"t": {"/a": {"any": [` + strings.Join(conditions, ",") + `]}}}`: "256 conditions", `{"t": {` + strings.Join(paths, ",") + `}}`: "at most 32", `{` + strings.Join(tools, ",") + `}`: "at most 256",
	} {
		if _, err := bounds.ParseBind([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestZeroValuesReject(t *testing.T) {
	if (bounds.Rule{}).CheckArguments([]byte(`{}`), nil) == nil || new(bounds.Check).CheckArguments([]byte(`{}`), nil) == nil {
		t.Error("the zero value allows")
	}
}

// A stored rule that cannot be read rejects all arguments of its tool, and a Bind that cannot
// be read those of all tools. Both keep their text.
func TestUnmarshal_UnreadableRejects(t *testing.T) {
	for text, unread := range map[string][]string{
		`{"a": {"/x": {"future": 1}}, "b": {"/x": {"equal": 1}}}`: {"a"}, `{"a": null, "b": {"/x": {"equal": 1}}}`: {"a"}, `{"a": {}}`: {"a"}, `[]`: {"a", "b", "c"}, `"x"`: {"a", "b", "c"}, `7`: {"a"},
		`{"a": {"/x": {"equal": 1}}, "a": {"/x": {"equal": 2}}}`: {"a", "b"},
	} {
		var b bounds.Bind
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		again := roundTrip(t, b)
		for _, tool := range unread {
			for _, bind := range []bounds.Bind{b, again} {
				r, ok := bind.RuleFor(tool)
				if !ok || r.Readable() || r.CheckArguments([]byte(`{"x": 1}`), nil) == nil {
					t.Errorf("%s: %s is not denied", text, tool)
				}
			}
		}
	}
	var none bounds.Bind
	if err := json.Unmarshal([]byte(`null`), &none); err != nil || none != nil {
		t.Error("null is a Bind")
	}
}

// roundTrip stores b and reads it.
func roundTrip(t *testing.T, b bounds.Bind) (again bounds.Bind) {
	t.Helper()
	data, err := json.Marshal(b)
	if err == nil {
		err = json.Unmarshal(data, &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// A value that would take long to check is rejected, soon.
func TestCheckArguments_LimitsWork(t *testing.T) {
	r := rule(t, `{"/v": {"matches": "(a|aa|aaa){0,60}b"}}`)
	if v := r.CheckArguments([]byte(`{"v": "`+strings.Repeat("a", 1<<20)+`"}`), nil); v == nil || v.Operator != "size" {
		t.Errorf("got %v", v)
	}
	many := rule(t, `{"/v/*": {"any": [`+strings.TrimSuffix(strings.Repeat(`{"glob": "*a*a*a*a*"},`, 100), ",")+`]}}`)
	if v := many.CheckArguments([]byte(`{"v": [`+strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 5000), ",")+`]}`), nil); v == nil {
		t.Error("allowed")
	}
	huge := rule(t, `{"/v": {"equal": 1, "missing": "allow"}}`)
	if v := huge.CheckArguments([]byte(`{`+strings.Repeat(`"aaaaaaaaaaaaaaaaaaaaaaaaaaa": 1,`, 10)+`"v": 1}`), nil); v != nil {
		t.Errorf("got %v", v)
	}
}

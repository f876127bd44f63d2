package parameter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// allTypes are template parameters of every type. All but the first are optional.
const allTypes = `[{"name":"s","type":"string"},{"name":"w","type":"string","required":false},{"name":"n","type":"integer","required":false},
 {"name":"f","type":"float","required":false},{"name":"b","type":"boolean","required":false},{"name":"l","type":"array","required":false,"items":{"type":"string"}},
 {"name":"q","type":"array","required":false,"items":{"type":"string","escape":"double-quotes"}},{"name":"m","type":"map","required":false},{"name":"x-y","type":"string","required":false}]`

func fill(t testing.TB, set *parameter.Set, text, args string) (string, error) {
	t.Helper()
	template, err := set.StatementTemplate(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return template.RenderText(parseArgs(t, set, args))
}

func TestTemplate_RenderText(t *testing.T) {
	set := compile(t, `[]`, allTypes)
	for _, c := range []struct{ text, args, want string }{
		{`SELECT {{.s}}`, `{"s":"a"}`, `SELECT a`},
		{`{{.s}}{{"}}"}}`, `{"s":"it's {{.n}}"}`, `it's {{.n}}}}`},
		{`{{.s}}`, `{"s":""}`, ``},
		{`{{.n}}`, `{"s":"","n":-9007199254740993}`, `-9007199254740993`},
		{`{{.f}} {{.b}}`, `{"s":"","f":1.5,"b":true}`, `1.5 true`},
		{`{{.f}}`, `{"s":"","f":1e21}`, `1e+21`},
		{`{{array .l}}`, `{"s":"","l":["a","b"]}`, `a, b`},
		{`{{array .l}}`, `{"s":"","l":[]}`, ``},
		{`{{array .q}}`, `{"s":"","q":["a","b\"c"]}`, `"a", "b""c"`},
		{`{{.l}}`, `{"s":"","l":["a","b"]}`, `[a b]`},
		{`{{if .w}}'{{.w}}'{{else}}none{{end}}`, `{"s":""}`, `none`},
		{`{{if .w}}'{{.w}}'{{else}}none{{end}}`, `{"s":"","w":"q"}`, `'q'`},
		{`{{with .w}}{{.}}{{else with .s}}{{.}}{{end}}`, `{"s":"x"}`, `x`},
		{`{{with .w}}{{.}}{{else}}{{.s}}{{end}}`, `{"s":"x"}`, `x`},
		{`{{or .w .s}}`, `{"s":"x"}`, `x`},
		{`{{range .l}}{{.}}{{else}}none{{end}}`, `{"s":""}`, `none`},
		{`{{range $i, $e := .l}}{{if $i}}, {{end}}{{$e}}{{$.s}}{{end}}`, `{"s":"!","l":["a","b"]}`, `a!, b!`},
		{`{{range .l}}{{if eq . "b"}}{{break}}{{end}}{{.}}{{end}}`, `{"s":"","l":["a","b","c"]}`, `a`},
		{`{{range .n}}{{.}}{{end}}`, `{"s":"","n":3}`, `012`},
		{`{{range $k, $v := .m}}{{$k}}={{$v}};{{end}}`, `{"s":"","m":{"b":1.5,"a":[true]}}`, `a=[true];b=1.5;`},
		{`{{if eq .m.k 9007199254740993}}{{.m.k}}{{end}}`, `{"s":"","m":{"k":9007199254740993}}`, `9007199254740993`},
		{`{{index . "x-y"}}`, `{"s":"","x-y":"z"}`, `z`},
		{`{{(index .l 1)}}{{len .l}}`, `{"s":"","l":["a","b"]}`, `b2`},
		{`{{$x := .w}}{{$x = .s}}{{$x}}`, `{"s":"v"}`, `v`},
		{`a {{- /* none */ -}} b`, `{"s":""}`, `ab`},
		{`{{json .m}} {{json .w}} {{json .s}}`, `{"s":"<\"","m":{"k":[1,null]}}`, `{"k":[1,null]} null "<\""`},
		{`{{printf "%05d %q" .n .s}} {{.s | printf "%s-%s" "x"}}`, `{"s":"a","n":7}`, `00007 "a" x-a`},
		{`{{print .s 1}}{{println .s}}{{html .s}}{{js .s}}{{urlquery .s}}`, `{"s":"<"}`, "<1<\n&lt;\\u003C%3C"},
		{`{{slice .s 1}}{{not .b}}{{and .s .s}}`, `{"s":"ab"}`, `btrueab`},
		{`no places`, `{"s":""}`, `no places`},
		{``, `{"s":""}`, ``},
	} {
		if got, err := fill(t, set, c.text, c.args); got != c.want || err != nil {
			t.Errorf("%s of %s: got %q, %v; want %q", c.text, c.args, got, err, c.want)
		}
	}
}

// No function and no action prints a missing value.
func TestTemplate_RejectsMissingValue(t *testing.T) {
	set := compile(t, `[]`, allTypes)
	for _, text := range []string{`{{.w}}`, `'{{.w}}'`, `{{.l}}`, `{{array .l}}`, `{{.n}}`, `{{$x := .w}}{{$x}}`, `{{print .w}}`, `{{println "x" .w}}`, `{{printf "%v" .w}}`, `{{.w | printf "%s"}}`,
		`{{html .w}}`, `{{.w | js}}`, `{{urlquery .w}}`, `{{index . "zzz"}}`, `{{.m.k}}`, `{{.f | print | print}}`, `{{or .w .n}}`, `{{with .s}}{{$.w}}{{end}}`, `{{if true}}{{(.w)}}{{end}}`, `{{range .n}}{{else}}{{.n}}{{end}}`, `{{(.).zzz}}`} {
		got, err := fill(t, set, text, `{"s":"x"}`)
		if got != "" {
			t.Errorf("%s: got %q", text, got)
		}
		wantError(t, err, errcode.InvalidArguments, "no value", "{{if}}")
	}
	_, err := fill(t, set, `{{.w}}`, `{"s":"x"}`)
	wantError(t, err, errcode.InvalidArguments, "{{.w}}")
	_, err = fill(t, set, `{{.l}}{{.m.k}}`, `{"s":"x","l":[],"m":{"k":[1,null]}}`)
	wantError(t, err, errcode.InvalidArguments, "{{.m.k}}", "no value")
}

// Errors that depend on the values end the call.
func TestTemplate_RejectsValues(t *testing.T) {
	set := compile(t, `[]`, allTypes)
	for text, words := range map[string]string{
		`{{array .s}}`:              "not an array",
		`{{array .m.k}}`:            "element #0 is not a string",
		`{{.m}}`:                    "no text",
		`{{.}}`:                     "no text",
		`{{print .m}}`:              "no text",
		`{{index .l 5}}`:            "out of range",
		`{{range .l}}{{.x}}{{end}}`: "can't evaluate field x",
		`{{call .s}}`:               "non-function",
		`{{range .n}}{{range $.n}}{{end}}{{end}}`:              "steps",
		`{{range .n}}` + strings.Repeat("x", 64) + `{{end}}`:   "1048576 bytes",
		`{{$x := "x"}}{{range .n}}{{$x = print $x $x}}{{end}}`: "bytes",
		`{{range .n}}{{$y := json $.m}}{{end}}`:                "steps",
	} {
		got, err := fill(t, set, text, `{"s":"x","l":["a"],"n":9223372036854775807,"m":{"k":[5]}}`)
		if got != "" {
			t.Errorf("%s: got %q", text, got)
		}
		wantError(t, err, errcode.InvalidArguments, words)
	}
}

// NUL would end a statement early, also from within a map.
func TestTemplate_RejectsNUL(t *testing.T) {
	set := compile(t, `[]`, allTypes)
	for _, text := range []string{`{{.m.k}}`, `{{range $k, $v := .m}}{{$v}}{{end}}`, `{{index .m.l 0}}`, `{{print .m.k}}`} {
		got, err := fill(t, set, text, `{"s":"x","m":{"k":"a\u0000","l":["\u0000"]}}`)
		if got != "" {
			t.Errorf("%s: got %q", text, got)
		}
		wantError(t, err, errcode.InvalidArguments, "U+0000")
	}
}

// A value may be as long as the text, but not longer.
func TestTemplate_LimitsText(t *testing.T) {
	set := compile(t, `[]`, `[{"type":"string"}]`)
	for _, size := range []int{parameter.MaxText, parameter.MaxText + 1} {
		got, err := fill(t, set, `{{.a}}`, `{"a":"`+strings.Repeat("x", size)+`"}`)
		if ok := size == parameter.MaxText; (err == nil) != ok || ok && len(got) != size {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
}

// Templates that can never succeed are rejected when they are parsed.
func TestSet_TemplateRejectsText(t *testing.T) {
	set := compile(t, `[{"name":"o","type":"string"}]`, allTypes)
	for text, words := range map[string]string{
		`SELECT {{.s`:                         "unclosed",
		`{{.zzz}}`:                            `"zzz"`,
		`{{.o}}`:                              `"o"`,
		`{{.S}}`:                              `"S"`,
		`{{if .zzz}}{{end}}`:                  `"zzz"`,
		`{{if .s}}{{else}}{{.zzz}}{{end}}`:    `"zzz"`,
		`{{with .s}}{{$.zzz}}{{else}}{{end}}`: `"zzz"`,
		`{{range .l}}{{else}}{{.zzz}}{{end}}`: `"zzz"`,
		`{{array (or .w .zzz)}}`:              `"zzz"`,
		`{{(.zzz).x}}`:                        `"zzz"`,
		`{{$x := .zzz}}`:                      `"zzz"`,
		`{{nofunc .s}}`:                       "nofunc",
		`{{define "x"}}{{end}}`:               "define",
		`{{define "x"}}{{template "x"}}{{end}}{{.s}}`: "define",
		`{{block "x" .}}{{end}}`:                      "define",
		`{{template "x"}}`:                            "nested templates",
		`{{template "statement" .}}`:                  "nested templates",
		`{{$ := .l}}`:                                 "$",
		`{{$ = .l}}`:                                  "$",
		`{{range $ := .l}}{{end}}`:                    "$",
		`{{printf .s .l}}`:                            "constant",
		`{{printf "%*d" 9 .n}}`:                       "width",
		`{{.s | printf}}`:                             "constant",
		`{{_emit "x" .s}}`:                            "_emit",
		`{{if (_step)}}{{end}}`:                       "_step",
		`{{.x-y}}`:                                    "bad character",
	} {
		if template, err := set.StatementTemplate(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, %v; want an error with %q", text, template, err, words)
		}
	}
}

// Without template parameters the text is not a template.
func TestTemplate_WithoutParameters(t *testing.T) {
	got, err := fill(t, compile(t, `[{"type":"string"}]`, `[]`), `SELECT '{{.a}}', '{{'`, `{"a":"x"}`)
	if want := `SELECT '{{.a}}', '{{'`; got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// A template can name other parameters.
func TestSet_TemplateOfNamedParameters(t *testing.T) {
	set := compile(t, `[{"name":"a","type":"string"},{"name":"b","type":"integer","required":false}]`, `[{"name":"t","type":"string"}]`)
	template, err := set.StatementTemplate(`{"a":{{json .a}},"b":{{json .b}}}`, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.RenderText(parseArgs(t, set, `{"a":"\"","t":"x"}`))
	if want := `{"a":"\"","b":null}`; got != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for text, names := range map[string][]string{`{{.t}}`: {"a"}, `x`: {"a", "zzz"}} {
		if _, err := set.StatementTemplate(text, names...); err == nil {
			t.Errorf("%s of %q: no error", text, names)
		}
	}
	if _, err := template.RenderText(parseArgs(t, compile(t, `[{"name":"a","type":"string"}]`, `[]`), `{"a":"x"}`)); errcode.CodeOf(err) != errcode.Internal {
		t.Errorf("values of another set: got %v", err)
	}
}

// In MySQL a backslash would escape the closing quote.
func TestTemplate_DoublesBackslash(t *testing.T) {
	for style, want := range map[string]string{
		parameter.EscapeSingleQuotes: `'\\'' OR 1=1 -- '`, parameter.EscapeDoubleQuotes: `"\\' OR 1=1 -- "`, parameter.EscapeBackticks: "`\\' OR 1=1 -- `", parameter.EscapeSquareBrackets: `[\' OR 1=1 -- ]`,
	} {
		set, problems := parameter.CompileSet(parameter.Options{Backslash: true}, nil, specsOf(fmt.Sprintf(`[{"type":"string","escape":%q}]`, style)))
		if problems != nil {
			t.Fatal(problems)
		}
		args, _ := json.Marshal(map[string]string{"a": `\' OR 1=1 -- `})
		if got, err := fill(t, set, `{{.a}}`, string(args)); got != want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", style, got, err, want)
		}
	}
}

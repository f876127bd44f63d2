package parameter_test

import (
	"encoding/json"
	"encoding/xml"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// fillAs fills a template of all parameters of set.
func fillAs(t testing.TB, set *parameter.Set, f parameter.Format, text, args string) (string, error) {
	t.Helper()
	template, err := set.ParseTemplate(f, text, append(set.OrdinaryNames(), set.TemplateNames()...)...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return template.RenderText(parseArgs(t, set, args))
}

// The same value in the same template, escaped for each format.
func TestFormat_Escapes(t *testing.T) {
	set := compile(t, `[]`, allTypes)
	const args = `{"s":"a&b <c>\"/","l":["x&","y"],"n":7,"f":1.5,"b":true,"m":{"k&":"v&","n":1.50}}`
	for _, c := range []struct {
		format     parameter.Format
		text, want string // "" is an error
	}{
		{parameter.FormatStatement, `{{.s}} {{.l}}`, `a&b <c>"/ [x& y]`},
		{parameter.FormatPlain, `{{.s}} {{.m}}`, `a&b <c>"/ {"k\u0026":"v\u0026","n":1.50}`},
		{parameter.FormatPath, `/a/{{.s}}/{{.n}}?q={{array .l}}`, `/a/a%26b%20%3Cc%3E%22%2F/7?q=x%26%2C%20y`},
		{parameter.FormatForm, `s={{.s}}&m={{.m.none}}`, ``},
		{parameter.FormatForm, `s={{.s}}&l={{.l}}`, `s=a%26b+%3Cc%3E%22%2F&l=[x%26 y]`},
		{parameter.FormatForm, `{{range $k, $v := .m}}{{$k}}={{$v}};{{end}}`, `k%26=v%26;n=1.5;`},
		{parameter.FormatXML, `<a>{{.s}}</a>{{print "<b/>" .s}}`, `<a>a&amp;b &lt;c&gt;&#34;/</a><b/>a&amp;b &lt;c&gt;&#34;/`},
		{parameter.FormatJSON, `{"a":"{{.s}}","b":{{json .s}},"c":{{.m}}}`, `{"a":"a\u0026b \u003cc\u003e\"/","b":"a\u0026b \u003cc\u003e\"/","c":{"k\u0026":"v\u0026","n":1.50}}`},
		{parameter.FormatJSON, `{"a":{{.n}},"b":{{.f}},"c":{{.b}},"d":{{json .w}}}`, `{"a":7,"b":1.5,"c":true,"d":null}`},
		{parameter.FormatJSON, `{{$c := ""}}[{{range .l}}{{$c}}"{{.}}"{{$c = ","}}{{end}}]`, `["x\u0026","y"]`},
		{parameter.FormatJSON, `{"a":{{printf "\"%s\"" .s}},"b":{{or .w "null"}}}`, `{"a":"a\u0026b \u003cc\u003e\"/","b":null}`},
		{parameter.FormatJSON, `{"a":"{{.m.k}}{{slice .s 0 1}}{{index . "s"}}"}`, ``},
		{parameter.FormatJSON, `{"a":{{.s}}}`, ``},
		{parameter.FormatJSON, `["{{json .s}}"]`, ``},
		{parameter.FormatJSON, `{{range $k, $v := .m}}{"a":{{$k}}}{{end}}`, ``},
		{parameter.FormatJSON, `{"a":"b"`, ``},
		{parameter.FormatOther, `n: {{.n}} m: {{json .m}}`, `n: 7 m: {"k\u0026":"v\u0026","n":1.50}`},
		{parameter.FormatOther, `{{.s}}`, ``},
		{parameter.FormatOther, `{{print .s}}`, ``},
		{parameter.FormatOther, `{{range $k, $v := .m}}{{$k}}{{end}}`, ``},
	} {
		got, err := fillAs(t, set, c.format, c.text, args)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%d: %s: got %s, %v; want %s", c.format, c.text, got, err, c.want)
		}
		if err != nil && errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%d: %s: %v", c.format, c.text, err)
		}
	}
}

// Text without parameters is not a template, but JSON is checked.
func TestFormat_WithoutParameters(t *testing.T) {
	set := compile(t, `[{"type":"string","required":false}]`, `[]`)
	for text, ok := range map[string]bool{`{"a":"{{.a}}"}`: true, `{"a"`: false} {
		template, err := set.ParseTemplate(parameter.FormatJSON, text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := template.RenderText(parseArgs(t, set, `{}`)); (err == nil) != ok || ok && got != text {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	if _, err := set.ParseTemplate(parameter.FormatJSON, "[\"\uE001\"]"); err == nil {
		t.Error("a mark in the template of JSON is accepted")
	}
}

// A path needs all its parts.
func TestFormat_PathRejectsEmptyValue(t *testing.T) {
	_, err := fillAs(t, compile(t, `[]`, allTypes), parameter.FormatPath, `/a/{{.s}}`, `{"s":""}`)
	wantError(t, err, errcode.InvalidArguments, "{{.s}} is empty")
}

// An integer prints in digits, whatever the verb: %c would make a quote of 39.
func TestTemplate_IntegerIsNoCharacter(t *testing.T) {
	set := compile(t, `[]`, allTypes)
	for _, verb := range []string{"%c", "%q", "%U", "%#U", "%5c"} {
		for _, arg := range []string{".n", "(len .l)", "(index .s 0)"} {
			got, err := fill(t, set, `{{printf "`+verb+`" `+arg+`}}`, `{"s":"'","n":39,"l":["a"]}`)
			if strings.ContainsAny(got, "'\x01") {
				t.Errorf("%s of %s: got %q, %v", verb, arg, got, err)
			}
		}
	}
	if got, err := fill(t, set, `{{printf "%03d %x %+d %v" .n .n .n .n}}`, `{"s":"","n":39}`); got != "039 27 +39 39" {
		t.Errorf("got %q, %v", got, err)
	}
}

// places are templates with a value in many ways, and how to find it again. Each
// reader returns all strings of the text, or false if the text has another structure.
var places = map[parameter.Format]struct {
	before, after string
	read          func(text string) (string, bool)
}{
	parameter.FormatPath: {"/a/", "/b", func(text string) (string, bool) {
		parts := strings.Split(text, "/")
		if len(parts) != 4 || strings.ContainsAny(text, "?#") {
			return "", false
		}
		value, err := url.PathUnescape(parts[2])
		return value, err == nil
	}},
	parameter.FormatForm: {"a=", "&b=1", func(text string) (string, bool) {
		form, err := url.ParseQuery(text)
		return form.Get("a"), err == nil && len(form) == 2 && len(form["a"]) == 1
	}},
	parameter.FormatXML: {`<a b="`, `"/>`, func(text string) (string, bool) {
		d := xml.NewDecoder(strings.NewReader(text))
		token, err := d.Token()
		start, ok := token.(xml.StartElement)
		if err != nil || !ok || len(start.Attr) != 1 {
			return "", false
		}
		_, _ = d.Token()
		_, err = d.Token()
		return start.Attr[0].Value, err != nil && err.Error() == "EOF"
	}},
	parameter.FormatJSON: {`{"a":"`, `","b":1}`, func(text string) (string, bool) {
		var doc map[string]any
		err := json.Unmarshal([]byte(text), &doc)
		value, ok := doc["a"].(string)
		return value, err == nil && ok && len(doc) == 2
	}},
}

// However a template prints a value, it stays in its place.
func TestFormat_ValuesStayInTheirPlace(t *testing.T) {
	set := compile(t, `[{"name":"w","type":"string"},{"name":"l","type":"array","items":{"type":"string"}},{"name":"m","type":"map"}]`, `[]`)
	values := append(corpus.NaughtyStrings(), `"`, `\`, `\"`, `'`, "&", "<", ">", "]]>", "-->", "/", "?", "#", "a=b&c=d", `","x":"`, "\uE000\uE001\uE002\uE003", "%2F", "+", "\x00", "\n")
	for f, place := range places {
		for _, action := range []string{
			`{{.w}}`, `{{print .w}}`, `{{printf "%s" .w}}`, `{{printf "%v" .w}}`, `{{.w | print | print}}`, `{{array .l}}`, `{{range .l}}{{.}}{{end}}`, `{{index .l 0}}`, `{{(index .m.l 0)}}`,
			`{{range $k, $v := .m.of}}{{$k}}{{end}}`, `{{$x := ""}}{{$y := ""}}{{range $x, $y = .m.of}}{{end}}{{$x}}`, `{{range $k, $v := .m.of}}{{$v}}{{end}}`, `{{with $x := .w}}{{$x}}{{end}}`, `{{or "" .w}}`,
		} {
			template, err := set.ParseTemplate(f, place.before+action+place.after, "w", "l", "m")
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range values {
				if !utf8.ValidString(value) || value == "" {
					continue
				}
				args, _ := json.Marshal(map[string]any{"w": value, "l": []string{value}, "m": map[string]any{"l": []string{value}, "of": map[string]string{value: value}}})
				text, err := template.RenderText(parseArgs(t, set, string(args)))
				if err != nil {
					t.Errorf("%s of %q: %v", action, value, err)
					continue
				}
				if got, ok := place.read(text); !ok || got != value && !(f == parameter.FormatXML && strings.Contains(got, "\uFFFD")) {
					t.Errorf("%s of %q: %q has %q, %v", action, value, text, got, ok)
				}
			}
		}
	}
}

// FuzzFormat prints any values into JSON in many ways. A result that is accepted has
// the members of the template, and no others.
func FuzzFormat(f *testing.F) {
	set := compile(f, `[{"name":"w","type":"string"},{"name":"n","type":"integer"},{"name":"m","type":"map"}]`, `[]`)
	var templates []*parameter.Template
	for _, action := range []string{
		`.w`, `.n`, `.m`, `.m.k`, `.`, `slice .w 1`, `index .w 0`, `html .w | js`, `urlquery .w .n`, `json .m`, `print (json .w)`, `print .w .n .m`,
		`printf "%q %#v %x" .w .w .w`, `printf "%.2s%c" .w .n`, `printf "%d %U %q" .w .n .n`, `slice (print .w) 0 4`,
	} {
		for _, text := range []string{`{"a":"{{` + action + `}}","b":1}`, `{"a":{{` + action + `}},"b":1}`, `{"a":"{{range $k, $v := .m}}{{$k}}{{$v}}{{end}}{{` + action + `}}","b":1}`} {
			template, err := set.ParseTemplate(parameter.FormatJSON, text, "w", "n", "m")
			if err != nil {
				f.Fatal(err)
			}
			templates = append(templates, template)
		}
	}
	f.Add(`"`, int64(34), `","x":"`)
	f.Add(`\"`, int64(92), `x\`)
	f.Add("\uE001\uE002", int64(-1), "")
	f.Fuzz(func(t *testing.T, w string, n int64, v string) {
		args, _ := json.Marshal(map[string]any{"w": w, "n": n, "m": map[string]string{"k": v, v: w}})
		values, err := set.ParseArguments(args, nil, nil)
		if err != nil {
			return
		}
		for i, template := range templates {
			text, err := template.RenderText(values)
			if err != nil {
				wantError(t, err, errcode.InvalidArguments)
				continue
			}
			var doc map[string]any
			if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc) != 2 || doc["b"] != 1.0 {
				t.Errorf("template %d with %q, %d, %q: got %s, %v", i, w, n, v, text, err)
			}
		}
	})
}

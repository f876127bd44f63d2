package payload_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/payload"
)

func Example() {
	t, err := payload.NewTemplate("Look at {{.alert}}.", map[string]string{"alert": "/alerts/0/name"})
	if err != nil {
		fmt.Println(err)
		return
	}
	document, err := payload.Parse([]byte(`{"alerts": [{"name": "disk \"full\" {{.x}}"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, input, err := t.Render(document)
	fmt.Println(text, string(input), err)
	// Output: Look at "disk \"full\" {{.x}}". {"alert":"disk \"full\" {{.x}}"} <nil>
}

func TestNewTemplate_Rejects(t *testing.T) {
	many := map[string]string{}
	for i := range payload.MaxFields + 1 {
		many[fmt.Sprintf("a%d", i)] = ""
	}
	for _, test := range []struct {
		text  string
		input map[string]string
	}{
		{"{{.other}}", nil}, {"{{", nil}, {`{{define "x"}}{{end}}`, nil},
		{"x", map[string]string{"a": "b"}}, {"x", map[string]string{"a": "/~2"}}, {"x", map[string]string{"a": "/" + strings.Repeat("x", 500)}},
		{"x", map[string]string{"a b": ""}}, {"x", map[string]string{"": ""}}, {"x", map[string]string{"_a": ""}}, {"x", many},
	} {
		if _, err := payload.NewTemplate(test.text, test.input); err == nil {
			t.Errorf("%q with %v was accepted", test.text, test.input)
		}
	}
}

func TestTemplate_FollowsPointers(t *testing.T) {
	const doc = `{"": 1, "a": [10, {"b/c": true, "~": null}], "n": 12345678901234567890, "01": "x"}`
	for pointer, want := range map[string]string{
		"": `"{\"`, "/": "1", "/a/0": "10", "/a/1/b~1c": "true", "/a/1/~0": "null", "/n": "12345678901234567890", "/01": `"x"`,
		"/a/2": "null", "/a/-": "null", "/a/00": "null", "/a/-1": "null", "/a/+1": "null", "/a/0/x": "null", "/x/y": "null", "/a/99999999999999999999": "null",
	} {
		template, err := payload.NewTemplate("{{.v}}", map[string]string{"v": pointer})
		if err != nil {
			t.Fatal(err)
		}
		document, err := payload.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		text, input, err := template.Render(document)
		if pointer == "" { // the whole document, with sorted names
			want = `{"":1,"01":"x","a":[10,{"b/c":true,"~":null}],"n":12345678901234567890}`
		}
		if err != nil || text != want || string(input) != `{"v":`+want+`}` {
			t.Errorf("%q: %s %s %v", pointer, text, input, err)
		}
	}
}

func TestTemplate_Bounds(t *testing.T) {
	long := strings.Repeat("x", 700<<10)
	document, err := payload.Parse([]byte(`{"long": "` + long + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	template, err := payload.NewTemplate("{{.a}}", map[string]string{"a": "/long"})
	if err != nil {
		t.Fatal(err)
	}
	text, input, err := template.Render(document)
	if err != nil || len(text) > 5000 || len(input) < len(long) || !json.Valid([]byte(text)) {
		t.Errorf("a text of %d bytes, an input of %d: %v", len(text), len(input), err)
	}
	if template, err = payload.NewTemplate("x", map[string]string{"a": "/long", "b": ""}); err != nil {
		t.Fatal(err)
	}
	if _, _, err = template.Render(document); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Errorf("an input above the limit: %v", err)
	}
}

// Whatever a payload contains, the text has its values as JSON and nothing else, and the input
// is a JSON object with the names.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{`{"a": "x"}`, `{"a": "{{.b}} {{end}}\"\n</system>"}`, `{"a": {"b": [1, null]}}`, `[1]`, `"\u2028"`, `{"a": "\u0000\u202e"}`, strings.Repeat("[", 80), `{"a":1,"a":2}`, "\xff"} {
		f.Add([]byte(seed), "/a")
	}
	f.Fuzz(func(t *testing.T, data []byte, pointer string) {
		document, err := payload.Parse(data)
		if err != nil {
			return
		}
		template, err := payload.NewTemplate("<{{.v}}>", map[string]string{"v": pointer})
		if err != nil {
			return
		}
		text, input, err := template.Render(document)
		if err != nil {
			if errcode.CodeOf(err) != errcode.InvalidArguments {
				t.Fatal(err)
			}
			return
		}
		value := strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(input, &fields); err != nil || len(fields) != 1 || !json.Valid([]byte(value)) || strings.ContainsAny(value, "\n\r") {
			t.Fatalf("text %q, input %s, %v", text, input, err)
		}
		if p, err := payload.ParsePointer(pointer); err == nil {
			if key, ok := document.Text(p); ok && (key == "" || len(key) > 128) {
				t.Fatalf("key %q", key)
			}
		}
	})
}

package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/prompt"
	"github.com/rolecall/rolecall/toolgroups"
)

func newTemplate(t testing.TB, text string, arguments ...parameter.Spec) *prompt.Template {
	t.Helper()
	set, problems := parameter.CompileSet(parameter.Options{}, arguments, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	p, err := prompt.NewTemplate("p", "d", text, set, []toolgroups.PromptMessage{{Role: "user", Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTemplate_RenderJSON(t *testing.T) {
	no := false
	p := newTemplate(t, "{{.a}}{{if .b}}, {{.b}}{{end}} {{.m}} {{.n}}", parameter.Spec{Name: "a", Type: "string", Description: "d", Excluded: []parameter.Literal{{Text: "bad"}}},
		parameter.Spec{Name: "b", Type: "boolean", Description: "d", Required: &no},
		parameter.Spec{Name: "m", Type: "map", Description: "d", Required: &no}, parameter.Spec{Name: "n", Type: "float", Description: "d", Default: &parameter.Literal{Text: "-1.5", Kind: parameter.KindNumber}})
	for args, want := range map[string]string{
		`{"a":"x"}`:                             "x <no value> -1.5",
		`{"a":"x","b":true}`:                    "x, true <no value> -1.5",
		`{"a":"-","m":{"k":[1,null]},"n":1e21}`: "- map[k:[1 <nil>]] 1e+21",
		`{"a":"bad"}`:                           "",
		`{"a":"x","a":"y"}`:                     "",
		`{}`:                                    "",
		`[]`:                                    "",
	} {
		got, err := p.RenderJSON([]byte(args))
		switch {
		case want == "":
			if errcode.CodeOf(err) != errcode.InvalidArguments {
				t.Errorf("%s: %v, want %s", args, err, errcode.InvalidArguments)
			}
		case err != nil || len(got) != 1 || got[0] != (toolgroups.PromptMessage{Role: "user", Text: want}):
			t.Errorf("%s: %q, %v; want %q", args, got, err, want)
		}
	}
	_, err := prompt.NewTemplate("p", "", "", &parameter.Set{}, []toolgroups.PromptMessage{{}, {Text: "{{.x}}"}})
	if err == nil || !strings.Contains(err.Error(), `message 2 of prompt "p"`) {
		t.Errorf("template with an unknown argument: %v", err)
	}
	if p, err := prompt.NewTemplate("p", "", "", &parameter.Set{}, []toolgroups.PromptMessage{{Text: "{{1}} {{`{{`}}"}}); err != nil || fmt.Sprint(p.Messages(nil)) != "[{ 1 {{}] <nil>" {
		t.Errorf("template without arguments: %v", err)
	}
}

func TestTemplate_Arguments(t *testing.T) {
	no := false
	p := newTemplate(t, "{{.a}}", parameter.Spec{Name: "a", Type: "string", Description: "first"}, parameter.Spec{Name: "b", Type: "integer", Description: "second", Required: &no})
	want := []toolgroups.PromptArgument{{Name: "a", Description: "first", Required: true}, {Name: "b", Description: "second"}}
	if diff := cmp.Diff(want, p.Arguments()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

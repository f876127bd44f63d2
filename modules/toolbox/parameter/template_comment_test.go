package parameter_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// Two minuses begin a comment, which would remove the rest of the statement.
func TestTemplate_NegativeNumberBeginsNoComment(t *testing.T) {
	set, problems := parameter.CompileSet(parameter.Options{}, nil, []parameter.Spec{
		{Name: "n", Type: parameter.TypeInteger, Description: "d"}, {Name: "f", Type: parameter.TypeFloat, Description: "d"},
		{Name: "s", Type: parameter.TypeString, Description: "d"},
	})
	if problems != nil {
		t.Fatal(problems)
	}
	for text, want := range map[string]string{
		"SELECT a-{{.n}} FROM t WHERE mine":                 "",
		"SELECT a-{{.f}} FROM t WHERE mine":                 "",
		"SELECT a-{{if .n}}{{.n}}{{end}} FROM t WHERE mine": "",
		"SELECT a-{{json .n}} FROM t WHERE mine":            "",
		"SELECT a-{{print .f}} FROM t WHERE mine":           "",
		"SELECT a-{{printf \"%d\" .n}} FROM t WHERE mine":   "",
		"SELECT a-{{.s}} FROM t WHERE mine":                 "",
		"SELECT a{{.n}}{{.n}} FROM t":                       "SELECT a-1-1 FROM t",
		"SELECT a - {{.n}} FROM t WHERE mine -- {{.f}}":     "SELECT a - -1 FROM t WHERE mine -- -0.5",
		"SELECT a FROM t --{{.n}}":                          "",
		"SELECT a-({{.n}}) FROM t":                          "SELECT a-(-1) FROM t",
	} {
		template, err := set.StatementTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		values, err := set.ParseArguments(json.RawMessage(`{"n": -1, "f": -0.5, "s": "-1"}`), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := template.RenderText(values)
		if got != want || (err != nil) != (want == "") || err != nil && errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%s: %q %v", text, got, err)
		}
	}
}

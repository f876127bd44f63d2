package toolbox_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
)

// A caller that chooses how often a template loops cannot make it run for long.
func TestRequest_TemplateStepsAreLimited(t *testing.T) {
	list := `[{name: l, type: array, description: d, items: {name: i, type: integer, description: d}}]`
	w := newHTTPFixture(t, serve(t, echoRequest),
		`name: number, method: POST, path: /, requestBody: '{"a": [{{range $i := .n}}{{if eq $i -1}}x{{end}}{{end}}]}', bodyParams: [{name: n, type: integer, description: d}]`,
		`name: inner, method: POST, path: /, requestBody: '[{{if .l}}{{range .l}}{{range $.l}}{{range $.l}}{{end}}{{end}}{{end}}{{end}}]', bodyParams: `+list,
		`name: list, method: POST, path: /, requestBody: '[0{{range .l}},{{.}}{{else}}{{end}}]', bodyParams: `+list,
		`name: whole, method: POST, path: /, requestBody: '{{json .}}', bodyParams: `+list)
	many := `[1` + strings.Repeat(",1", 999) + `]`
	wantCode(t, w.call(t.Context(), "number", `{"n": 9000000000000000000}`), errcode.InvalidArguments)
	wantCode(t, w.call(t.Context(), "inner", `{"l": `+many+`}`), errcode.InvalidArguments)
	for name, want := range map[string]string{"list": `[0,1,2]`, "whole": `{"l":[1,2]}`} {
		for range 2 {
			if got := gjson.Get(w.rows(name, `{"l": [1, 2]}`), "body").Str; got != want {
				t.Errorf("%s: got %s", name, got)
			}
		}
	}
	if got := gjson.Get(w.rows("number", `{"n": 1000}`), "body").Str; got != `{"a": []}` {
		t.Errorf("got %s", got)
	}
}

package toolbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
)

// Templates of Toolbox encode values themselves. They are encoded once, and a value keeps its
// place also where the function was made for another one.
func TestRequest_EscapeFunctions(t *testing.T) {
	params := `pathParams: [{name: w, type: string, description: d}, {name: n, type: integer, description: d, required: false}, {name: o, type: string, description: d, required: false}, {name: l, type: array, description: d, required: false, items: {name: i, type: string, description: d}}]`
	w := newHTTPFixture(t, serve(t, echoRequest)+"/v1",
		`name: segment, method: GET, path: "/a/{{pathEscape .w}}/b", `+params,
		`name: piped, method: GET, path: "/a/{{.w | pathEscape | printf \"%s\"}}/b", `+params,
		`name: search, method: GET, path: "/a?q={{queryEscape .w}}&two=2", `+params,
		`name: swapped, method: GET, path: "/a/{{queryEscape .w}}/b?q={{pathEscape .w}}&two=2", `+params,
		`name: number, method: GET, path: "/a/{{pathEscape .n}}", `+params,
		`name: missing, method: GET, path: "/a?o={{queryEscape .o}}&two=2", `+params,
		`name: early, method: GET, path: "/a/{{queryEscape .o}}/b?two=2", `+params,
		`name: list, method: GET, path: "/a/{{pathEscape .l}}", `+params)
	const value = "a/b c+d?e=f&g%2e#h;ü"
	for _, name := range []string{"segment", "piped", "search", "swapped"} {
		got := gjson.Parse(w.rows(name, fmt.Sprintf(`{"w": %q}`, value)))
		path, query := got.Get("path").Str, got.Get("query").Str
		if inPath := name != "search"; inPath && path != "/v1/a/a%2Fb%20c%2Bd%3Fe%3Df%26g%252e%23h%3B%C3%BC/b" {
			t.Errorf("%s: got the path %s", name, path)
		}
		if inQuery := strings.HasPrefix(name, "s") && name != "segment"; inQuery && query != "key=q&q=a%2Fb+c%2Bd%3Fe%3Df%26g%252e%23h%3B%C3%BC&two=2" {
			t.Errorf("%s: got the query %s", name, query)
		}
	}
	for name, want := range map[string]string{"number": "/v1/a/7", "missing": "/v1/a", "list": "/v1/a/%5B%22x%2Fy%22%5D"} {
		if got := gjson.Get(w.rows(name, `{"w": "x", "n": 7, "l": ["x/y"]}`), "path").Str; got != want {
			t.Errorf("%s: got the path %s", name, got)
		}
	}
	for name, args := range map[string]string{
		"segment": `{"w": ""}`, "piped": `{"w": ".."}`, "swapped": `{"w": "."}`, "number": `{"w": "x"}`, "early": `{"w": "x"}`,
	} {
		wantCode(t, w.call(t.Context(), name, args), errcode.InvalidArguments)
	}
	wantCode(t, w.call(t.Context(), "segment", `{"w": "%2e%2e"}`), errcode.InvalidArguments)
}

// The functions are for paths: in a statement or a body a value they return would be taken for
// text of the template.
func TestRequest_EscapeFunctionsOnlyInPaths(t *testing.T) {
	for _, fields := range []string{
		`type: sqlite-sql, source: db, statement: "SELECT {{pathEscape .w}}", templateParameters: [{name: w, type: string, description: d}]`,
		`type: http, source: api, method: POST, path: /, requestBody: '{"a": {{queryEscape .w}}}', bodyParams: [{name: w, type: string, description: d}]`,
	} {
		_, err := read("{kind: source, name: db, type: sqlite, database: ':memory:'}\n---\n{kind: source, name: api, type: http, baseUrl: 'http://h'}\n---\n{kind: tool, name: x, description: d, " + fields + "}")
		if err == nil || !strings.Contains(err.Error(), "is a function of paths") {
			t.Errorf("%s: %v", fields, err)
		}
	}
}

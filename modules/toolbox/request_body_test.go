package toolbox_test

import (
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
)

// In a body of unknown type a value with special characters is rejected.
func TestRequest_OtherBodyTypesRejectSpecialCharacters(t *testing.T) {
	w := newHTTPFixture(t, serve(t, echoRequest),
		`name: parts, method: POST, path: /a, headers: {Content-Type: "multipart/form-data; boundary=b"}, requestBody: "--b\r\nContent-Disposition: form-data; name=\"one\"\r\n\r\n{{.w}}\r\n--b--\r\n", bodyParams: [{name: w, type: string, description: d}]`,
		`name: yaml, method: POST, path: /a, headers: {Content-Type: application/yaml}, requestBody: "role: guest\nname: {{.w}}\n", bodyParams: [{name: w, type: string, description: d}]`,
		`name: said, method: POST, path: /a, headers: {Content-Type: application/yaml}, requestBody: "role: guest\nname: {{json .w}}\n", bodyParams: [{name: w, type: string, description: d}]`,
		`name: bare, method: POST, path: /a, requestBody: "role=guest&name={{.w}}", bodyParams: [{name: w, type: string, description: d}]`,
		`name: plain, method: POST, path: /a, headers: {Content-Type: text/plain}, requestBody: "{{.w}}", bodyParams: [{name: w, type: string, description: d}]`,
	)
	args := func(value string) string {
		doc, _ := json.Marshal(map[string]string{"w": value})
		return string(doc)
	}
	for _, evil := range []string{"x\r\n--b\r\nContent-Disposition: form-data; name=\"role\"\r\n\r\nadmin", "x\nrole: admin", "{role: admin}", "\ue002"} {
		for _, name := range []string{"parts", "yaml"} {
			wantCode(t, w.call(t.Context(), name, args(evil)), errcode.InvalidArguments)
		}
		if got := gjson.Get(w.rows("plain", args(evil)), "body").Str; got != evil {
			t.Errorf("text/plain: %q became %q", evil, got)
		}
	}
	for name, want := range map[string]string{"yaml": "role: guest\nname: Zoë @ a-b/c_1.0\n", "said": "role: guest\nname: \"Zoë @ a-b/c_1.0\"\n"} {
		if got := gjson.Get(w.rows(name, args("Zoë @ a-b/c_1.0")), "body").Str; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := gjson.Get(w.rows("said", args("x\nrole: admin")), "body").Str; got != "role: guest\nname: \"x\\nrole: admin\"\n" {
		t.Errorf("as JSON: %q", got)
	}
	got := gjson.Parse(w.rows("bare", args("x&role=admin")))
	if got.Get("body").Str != "role=guest&name=x%26role%3Dadmin" || got.Get("headers.Content-Type.0").Str != "application/x-www-form-urlencoded" {
		t.Errorf("a form: %s", got)
	}
}

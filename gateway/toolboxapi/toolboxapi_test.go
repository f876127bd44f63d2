package toolboxapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// newToolboxFixture returns a fixture with a role flights, which has declared
// tools in two groups, and a role secrets with a tool of its own. mine is the
// API for a caller in the role flights.
func newToolboxFixture(t *testing.T) (mine, operator *gatewaytest.Fixture) {
	t.Helper()
	store, groups := persisttest.Open(t), toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups, Authn: gatewaytest.FakeAuthn{},
		Model: func(string) (model.Model, error) { return nil, errors.New("no model in this test") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	f := &gatewaytest.Fixture{Runtime: rt, Store: store}
	if f.Handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: auth.AlwaysOperator, Version: "v0"}); err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	word := parameter.Spec{Name: "a", Type: "string", Description: "d"}
	claim := parameter.Spec{Name: "uid", Type: "string", Description: "d", Auth: []parameter.Claim{{Service: "my_auth", Field: "sub"}, {Service: "other-auth", Field: "sub"}}}
	ready := gatewaytest.NewDeclaredTool(t, "ready_only", `[{"one":1}]`, nil).WithStates("ready")
	plain, err := tool.New("plain", "no declared tool", func(_ context.Context, in struct {
		Words []string `json:"words" jsonschema:"the words"`
		Times int      `json:"times,omitempty"`
	}) (string, error) {
		return strings.Join(in.Words, " "), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "flights/find",
		gatewaytest.NewDeclaredTool(t, "s", "", nil, word),
		gatewaytest.NewDeclaredTool(t, "many", "", nil,
			parameter.Spec{Name: "n", Type: "integer", Description: "d", Required: &yes},
			parameter.Spec{Name: "f", Type: "float", Description: "d", Default: &parameter.Literal{Text: "1.5", Kind: parameter.KindNumber}},
			parameter.Spec{Name: "l", Type: "array", Description: "d", Required: &no, Items: &parameter.Spec{Name: "x", Type: "string", Description: "d"}},
			parameter.Spec{Name: "m", Type: "map", Description: "d", Required: &no, ValueType: "integer"}),
		gatewaytest.NewDeclaredTool(t, "two_rows", `[{"id":1,"id":2},{"id":9007199254740993}]`, nil),
		gatewaytest.NewDeclaredTool(t, "no_rows", `[]`, nil),
	)
	f.AddGroup(t, "flights/book",
		gatewaytest.NewDeclaredTool(t, "auth_param", "", nil, claim),
		gatewaytest.NewDeclaredTool(t, "auth_req", `[{"one":1}]`, []string{"my_auth", "other-auth"}),
		gatewaytest.NewDeclaredTool(t, "secure_p", "", nil, parameter.Spec{Name: "a", Type: "string", Description: "d", Secure: true}, parameter.Spec{Name: "b", Type: "string", Description: "d"}),
		ready, plain,
	)
	f.AddGroup(t, "secret/all", gatewaytest.NewDeclaredTool(t, "secret_tool", `[{"one":1}]`, nil))
	role := f.AddRole(t, "flights", "flights/find", "flights/book")
	f.AddRole(t, "secrets", "secret/all")
	return f.WithCaller(t, role.ID), f
}

func TestToolbox_DescribesToolsets(t *testing.T) {
	mine, operator := newToolboxFixture(t)
	const (
		find = "many no_rows s two_rows"
		book = "auth_param auth_req plain ready_only"
	)
	for _, test := range []struct {
		h          *gatewaytest.Fixture
		path, want string
	}{
		{mine, "/api/toolset", book + " " + find}, {mine, "/api/toolset/", book + " " + find},
		{mine, "/api/toolset/flights/find", find}, {mine, "/api/toolset/flights/find/", find}, {mine, "/api/toolset/flights%2Ffind", find}, {mine, "/roles/flights/api/toolset/flights/book", book},
		{mine, "/api/tool/s", "s"}, {mine, "/roles/flights/api/tool/s", "s"},
		{operator, "/roles/flights/api/toolset", book + " " + find}, {operator, "/roles/secrets/api/toolset/", "secret_tool"}, {operator, "/roles/secrets/api/tool/secret_tool", "secret_tool"},
	} {
		status, body := test.h.SendText(t, test.path, "")
		var names []string
		gjson.Get(body, "tools").ForEach(func(name, _ gjson.Result) bool { names = append(names, name.Str); return true })
		if got := strings.Join(names, " "); status != 200 || got != strings.Join(sortedFields(test.want), " ") || gjson.Get(body, "serverVersion").Str != "v0" {
			t.Errorf("%s: %d %s, want %s", test.path, status, body, test.want)
		}
	}
	_, body := mine.SendText(t, "/api/toolset", "")
	for name, want := range map[string]string{
		"s":          `{"description":"s of the tests","parameters":[{"name":"a","type":"string","required":true,"description":"d","authServices":[]}],"authRequired":[]}`,
		"many":       `{"description":"many of the tests","parameters":[{"name":"n","type":"integer","required":true,"description":"d","authServices":[]},{"name":"f","type":"float","required":false,"description":"d","authServices":[],"default":1.5},{"name":"l","type":"array","required":false,"description":"d","authServices":[],"items":{"name":"x","type":"string","required":true,"description":"d","authServices":[]}},{"name":"m","type":"object","required":false,"description":"d","authServices":[],"additionalProperties":{"type":"integer"}}],"authRequired":[]}`,
		"auth_param": `{"description":"auth_param of the tests","parameters":[{"name":"uid","type":"string","required":true,"description":"d","authServices":["my_auth","other-auth"]}],"authRequired":[]}`,
		"auth_req":   `{"description":"auth_req of the tests","parameters":[],"authRequired":["my_auth","other-auth"]}`,
		"plain":      `{"description":"no declared tool","parameters":[{"name":"times","type":"integer","required":false,"description":"","authServices":[]},{"name":"words","type":"array","required":true,"description":"the words","authServices":[],"items":{"name":"words","type":"string","required":true,"description":"","authServices":[]}}],"authRequired":[]}`,
	} {
		if got := gjson.Get(body, "tools."+name).Raw; got != want {
			t.Errorf("%s\ngot  %s\nwant %s", name, got, want)
		}
	}
}

func TestToolbox_AnswersCalls(t *testing.T) {
	mine, operator := newToolboxFixture(t)
	token := func(name, value string) http.Header {
		return http.Header{http.CanonicalHeaderKey(name): {value}}
	}
	const unauthorized = "tool invocation not authorized. Please make sure you specify correct auth headers"
	for name, test := range map[string]struct {
		h          *gatewaytest.Fixture
		tool, body string
		header     http.Header
		status     int
		want       string // part of the result, or of the error
	}{
		"rows":                                   {mine, "s", `{"a":"x"}`, nil, 200, `[{"row":["x"]}]`},
		"more arguments":                         {mine, "s", `{"a":"x","z":1}`, nil, 200, `[{"row":["x"]}]`},
		"rows as they are":                       {mine, "two_rows", `{}`, nil, 200, `[{"id":1,"id":2},{"id":9007199254740993}]`},
		"no rows":                                {mine, "no_rows", `{}`, nil, 200, `[]`},
		"null arguments":                         {mine, "no_rows", ` null `, nil, 200, `[]`},
		"a text":                                 {mine, "plain", `{"words":["a","b"]}`, nil, 200, `"a b"`},
		"an exact number":                        {mine, "many", `{"n":9223372036854775807}`, nil, 200, `9223372036854775807`},
		"a missing parameter":                    {mine, "s", `{}`, nil, 200, `{"error":`},
		"a wrong parameter":                      {mine, "s", `{"a":5}`, nil, 200, `"code":"invalid_arguments"}`},
		"another state":                          {mine, "ready_only", `{}`, nil, 200, `workflow state`},
		"an empty body":                          {mine, "s", ``, nil, 400, `request body was invalid JSON`},
		"a list":                                 {mine, "s", `[]`, nil, 400, `request body was invalid JSON`},
		"an incomplete body":                     {mine, "s", `{"a":`, nil, 400, `request body was invalid JSON`},
		"trailing data":                          {mine, "s", `{"a":"x"}{}`, nil, 400, `request body was invalid JSON`},
		"a duplicate name":                       {mine, "s", `{"a":"x","a":"y"}`, nil, 400, `request body was invalid JSON`},
		"another media type":                     {mine, "s", `{"a":"x"}`, http.Header{"Content-Type": {"text/plain"}}, 415, ``},
		"no media type":                          {mine, "s", `{"a":"x"}`, http.Header{"Content-Type": nil}, 415, ``},
		"a charset":                              {mine, "s", `{"a":"x"}`, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, 200, `"x"`},
		"too large":                              {mine, "s", `{"a":"` + strings.Repeat("x", 8<<20) + `"}`, nil, 413, `limit`},
		"an unknown tool":                        {mine, "nope", `{}`, nil, 404, `invalid tool name: tool with name "nope" does not exist`},
		"another role's tool":                    {mine, "secret_tool", `{}`, nil, 404, `invalid tool name: tool with name "secret_tool" does not exist`},
		"an incomplete body for an unknown tool": {mine, "nope", `{"a":`, nil, 404, `invalid tool name: tool with name "nope" does not exist`},
		"an incomplete body for another role's tool": {mine, "secret_tool", `{"a":`, nil, 404, `invalid tool name: tool with name "secret_tool" does not exist`},
		"text for another role's tool":               {mine, "secret_tool", `{}`, http.Header{"Content-Type": {"text/plain"}}, 415, ``},
		"a secure parameter":                         {mine, "secure_p", `{"a":"x","b":"y"}`, nil, 404, `does not exist`},
		"no token":                                   {mine, "auth_req", `{}`, nil, 401, unauthorized},
		"a bad token":                                {mine, "auth_req", `{}`, token("my_auth_token", "good"), 401, unauthorized},
		"a token with Bearer":                        {mine, "auth_req", `{}`, token("my_auth_token", "Bearer good my_auth"), 401, unauthorized},
		"a duplicate token":                          {mine, "auth_req", `{}`, http.Header{"My_auth_token": {"good my_auth", "x"}}, 401, unauthorized},
		"a token in Authorization":                   {mine, "auth_req", `{}`, token("Authorization", "Bearer good my_auth"), 401, unauthorized},
		"a token":                                    {mine, "auth_req", `{}`, token("my_auth_token", "good my_auth"), 200, `[{"one":1}]`},
		"one of two tokens":                          {mine, "auth_req", `{}`, token("OTHER-AUTH_TOKEN", "good other-auth"), 200, `[{"one":1}]`},
		"a claim":                                    {mine, "auth_param", `{}`, token("my_auth_token", "good my_auth"), 200, `ann of my_auth`},
		"a claim in the body":                        {mine, "auth_param", `{"uid":"eve"}`, token("my_auth_token", "good my_auth"), 200, `ann of my_auth`},
		"a claim without a token":                    {mine, "auth_param", `{"uid":"eve"}`, nil, 401, unauthorized},
		"the operator in a role":                     {operator, "/roles/flights/api/tool/s", `{"a":"x"}`, nil, 200, `"x"`},
		"the operator without a role":                {operator, "s", `{"a":"x"}`, nil, 400, `/roles/ROLE`},
		"an unknown role":                            {operator, "/roles/none/api/tool/s", `{"a":"x"}`, nil, 404, `there is no role`},
		"another role":                               {mine, "/roles/secrets/api/tool/secret_tool", `{}`, nil, 404, `there is no role \"secrets\"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := test.tool
			if !strings.HasPrefix(path, "/") {
				path = "/api/tool/" + path
			}
			w := test.h.SendRequest(t, "POST "+path+"/invoke", test.body, test.header)
			got := gjson.ParseBytes(w.Body.Bytes())
			text := got.Get("result").Str
			if w.Code != 200 {
				text = got.Get("error").Str
				if got.Get("status").Str != http.StatusText(test.status) {
					t.Errorf("status %q", got.Get("status").Raw)
				}
			}
			if w.Code != test.status || !strings.Contains(text, strings.ReplaceAll(test.want, `\"`, `"`)) || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %s, want %d with %s", w.Code, w.Body, test.status, test.want)
			}
		})
	}
}

// Tokens of a caller reach only the gate; no tool result or record contains them.
func TestToolbox_TokensReachOnlyGate(t *testing.T) {
	mine, _ := newToolboxFixture(t)
	header := http.Header{"My_auth_token": {"good my_auth"}, "Other-Auth_token": {"good other-auth"}}
	for _, name := range []string{"auth_req", "auth_param", "s", "plain"} {
		if w := mine.SendRequest(t, "POST /api/tool/"+name+"/invoke", `{"a":"x","words":[]}`, header); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if err := mine.Runtime.Flush(); err != nil {
		t.Fatal(err)
	}
	for e, err := range mine.Store.FollowEvents(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		if text := asJSON(t, e); strings.Contains(text, "good ") {
			t.Errorf("a token was recorded: %s", text)
		}
	}
}

// sortedFields returns the words of a text in order.
func sortedFields(words string) []string {
	list := strings.Fields(words)
	slices.Sort(list)
	return list
}

// A role that uses all groups but is restricted to a server cannot distinguish
// toolsets of other owners from those that do not exist.
func TestToolbox_HidesToolsetsWithoutTools(t *testing.T) {
	mine, f := newToolboxFixture(t)
	all, server := toolgroups.AllGroups(), "far"
	if _, err := grouptest.RegisterGroup(f.Runtime.GroupManager(), toolgroups.ServerOwner("far"), toolgroups.Group{ID: "far", Description: "d", Tools: []tool.Tool{gatewaytest.NewDeclaredTool(t, "only", `[]`, nil)}}); err != nil {
		t.Fatal(err)
	}
	role, err := f.Runtime.CreateRole(t.Context(), tool.Call{ID: identity.CallID(identity.NewID()), By: identity.ByOperator("test")}, org.RoleSpec{Name: "restricted", Prompt: "p", Use: &all, Server: &server})
	if err != nil {
		t.Fatal(err)
	}
	restricted := mine.WithCaller(t, role.ID)
	for _, form := range []string{"GET /api/toolset/%s", "GET /roles/restricted/api/toolset/%s"} {
		if status, body := restricted.SendText(t, strings.ReplaceAll(form, "%s", "far"), ""); status != 200 || !gjson.Get(body, "tools.only").Exists() {
			t.Errorf("its own toolset: %d %s", status, body)
		}
		for _, group := range []string{"flights/find", "secret/all"} {
			if got, want := gatewaytest.SendNamed(t, restricted, form, group), gatewaytest.SendNamed(t, restricted, form, "nowhere"); got != want {
				t.Errorf("%s: got %s, want %s", group, got, want)
			}
		}
	}
}

// Every string in a path, an argument or a token is answered with JSON, reveals
// no other role's tools, and is returned unchanged.
func TestToolbox_NaughtyStrings(t *testing.T) {
	mine, _ := newToolboxFixture(t)
	for i, s := range short.SampleList(t, 300, append(corpus.NaughtyStrings(), corpus.TraversalPaths()...)) {
		name := strings.ReplaceAll(url.PathEscape(s), ".", "%2E")
		for _, path := range []string{"GET /api/tool/" + name, "GET /api/toolset/" + name, "GET /roles/" + name + "/api/toolset", "POST /api/tool/" + name + "/invoke"} {
			w := mine.SendRequest(t, path, `{}`, nil)
			if w.Code < 300 && s != "" && !strings.Contains(" s many no_rows two_rows ", " "+s+" ") || w.Code >= 500 || w.Code >= 400 && !json.Valid(w.Body.Bytes()) || strings.Contains(w.Body.String(), "secret_tool") {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		if i%5 != 0 || !utf8.ValidString(s) { // only a fifth is used as argument and token
			continue
		}
		w := mine.SendRequest(t, "POST /api/tool/s/invoke", asJSON(t, map[string]string{"a": s}), nil)
		if got := gjson.Get(gjson.Get(w.Body.String(), "result").Str, "0.row.0").Str; w.Code != 200 || got != s {
			t.Errorf("%q came back as %q: %d %s", s, got, w.Code, w.Body)
		}
		if w := mine.SendRequest(t, "POST /api/tool/auth_req/invoke", `{}`, http.Header{"My_auth_token": {s}}); w.Code != 401 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("token %q: %d %s", s, w.Code, w.Body)
		}
	}
}

// asJSON encodes a value and fails the test for one that cannot be encoded.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package toolbox_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/tool"
)

// echoRequest responds with the request it received.
func echoRequest(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery, "headers": r.Header, "body": string(body)})
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// newHTTPFixture returns a fixture with a source of type http and tools, each given by
// the fields that differ.
func newHTTPFixture(t *testing.T, base string, tools ...string) *fixture {
	t.Helper()
	doc := fmt.Sprintf(`{"kind": "source", "name": "api", "type": "http", "baseUrl": %q, "headers": {"X-Key": "k"}, "queryParams": {"key": "q"}}`, base)
	for _, more := range tools {
		doc += "\n---\n{kind: tool, type: http, source: api, description: d, " + more + "}"
	}
	c := parse(t, doc)
	w := newFixture(t, c)
	w.change = func(c *toolbox.Config) {
		c.Network = func() toolbox.Network {
			return toolbox.Network{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		}
	}
	w.load(c)
	return w
}

func TestRequest_Content(t *testing.T) {
	w := newHTTPFixture(t, serve(t, echoRequest)+"/v1/?base=b",
		`name: get, method: GET, path: "/users/{{.id}}/x?fixed=1", pathParams: [{name: id, type: string, description: d}], queryParams: [{name: q, type: string, description: d, required: false}, {name: l, type: array, description: d, required: false, items: {name: i, type: integer, description: d}}], headerParams: [{name: X-Who, type: string, description: d, required: false}]`,
		`name: post, method: POST, path: /p, headers: {X-Key: own}, requestBody: '{"name": "{{.name}}", "whole": {{json .name}}, "n": {{.n}}{{if .more}}, "more": {{json .more}}{{end}}}', bodyParams: [{name: name, type: string, description: d}, {name: n, type: integer, description: d}, {name: more, type: map, description: d, required: false}]`,
	)
	got := gjson.Parse(w.rows("get", `{"id": "a/b?c=d&e f", "q": "x&y=z", "l": [1, 9007199254740993], "X-Who": "ann"}`))
	if got.Get("path").Str != "/v1/users/a%2Fb%3Fc%3Dd%26e%20f/x" || got.Get("query").Str != "base=b&fixed=1&key=q&l=1&l=9007199254740993&q=x%26y%3Dz" {
		t.Errorf("got %s", got)
	}
	if got.Get("headers.X-Key.0").Str != "k" || got.Get("headers.X-Who.0").Str != "ann" {
		t.Errorf("got %s", got)
	}
	got = gjson.Parse(w.rows("post", `{"name": "a\"b\u0000é<no value>\ue000", "n": 9007199254740993, "more": {"k": [1.50, 12345678901234567890]}}`))
	body := gjson.Parse(got.Get("body").Str)
	if name := "a\"b\x00é<no value>\ue000"; body.Get("name").Str != name || body.Get("whole").Str != name || body.Get("n").Raw != "9007199254740993" || body.Get("more").Raw != `{"k":[1.50,12345678901234567890]}` {
		t.Errorf("got %s", body)
	}
	if got.Get("headers.Content-Type.0").Str != "application/json" || got.Get("headers.X-Key.0").Str != "own" {
		t.Errorf("got %s", got)
	}
	wantCode(t, w.call(t.Context(), "get", `{"id": "a", "X-Who": "a\r\nX-Evil: 1"}`), errcode.InvalidArguments)
}

// A value stays in its place: the path keeps its segments, the body its members.
func TestRequest_ValuesNeverChangeStructure(t *testing.T) {
	parameter := `[{name: w, type: string, description: d}]`
	w := newHTTPFixture(t, serve(t, echoRequest)+"/v1",
		`name: path, method: GET, path: "/a/{{.w}}/b", pathParams: `+parameter,
		`name: search, method: GET, path: "/a?one={{.w}}&two=2", pathParams: `+parameter,
		`name: query, method: GET, path: /a, queryParams: `+parameter,
		`name: quoted, method: POST, path: /a, requestBody: '{"one": "{{.w}}", "two": 2}', bodyParams: `+parameter,
		`name: whole, method: POST, path: /a, requestBody: '{"one": {{json .w}}, "two": 2}', bodyParams: `+parameter,
		`name: form, method: POST, path: /a, headers: {Content-Type: application/x-www-form-urlencoded}, requestBody: 'one={{.w}}&two=2', bodyParams: `+parameter,
		`name: unquoted, method: POST, path: /a, requestBody: '{"one": {{.w}}, "two": [2]}', bodyParams: `+parameter,
		`name: twice, method: POST, path: /a, requestBody: '["{{json .w}}"]', bodyParams: `+parameter,
		`name: listed, method: POST, path: /a, requestBody: '{"one": "{{array .w}}"}', bodyParams: [{name: w, type: array, description: d, items: {name: i, type: string, description: d}}]`,
	)
	values := append(short.SampleList(t, 150, attacks(t)), "..", ".", "", "../..", "%2e%2e", "%252e%252e", "//evil", "https://evil", "a\\..\\b", "1", "[1]", "[]", "{}", "null", "true", `","`, ",", `", "x": "`, "\u2028", "\ue000\ue001\ue002\ue003", "a#b", "a;b", "a\r\nb")
	for _, value := range values {
		args, _ := json.Marshal(map[string]string{"w": value})
		for _, name := range []string{"path", "search", "query", "quoted", "whole", "form"} {
			wantInPlace(t, name, value, w.call(t.Context(), name, string(args)))
		}
		for _, name := range []string{"unquoted", "twice"} {
			wantCode(t, w.call(t.Context(), name, string(args)), errcode.InvalidArguments)
		}
		list, _ := json.Marshal(map[string][]string{"w": {value, value}})
		if got := gjson.Get(gjson.Get(w.rows("listed", string(list)), "body").Str, "one").Str; got != value+", "+value {
			t.Errorf("%q: got %q", value, got)
		}
		if t.Failed() {
			break
		}
	}
}

func wantInPlace(t *testing.T, name, value string, a *gate.Admission) {
	t.Helper()
	got := gjson.Parse(resultText(a.Result))
	if a.Result.IsError {
		escapes := strings.Trim(value, "./\\") == "" || strings.Contains(value, "..") || strings.Contains(value, "%2") || strings.Contains(value, "%5")
		if a.Code() != errcode.InvalidArguments || name != "path" && name != "search" || !escapes {
			t.Errorf("%s %q: %s", name, value, got)
		}
		return
	}
	var back string
	switch name {
	case "path":
		if parts := strings.Split(got.Get("path").Str, "/"); len(parts) == 5 && parts[1] == "v1" && parts[2] == "a" && parts[4] == "b" {
			back = unescape(t, parts[3])
		}
	case "quoted", "whole":
		if body := gjson.Parse(got.Get("body").Str); gjson.Valid(body.Raw) && len(body.Map()) == 2 && body.Get("two").Raw == "2" {
			back = body.Get("one").Str
		}
	case "query":
		back = formField(t, got.Get("query").Str, "w", "key")
	case "search":
		back = formField(t, got.Get("query").Str, "one", "two", "key")
	case "form":
		back = formField(t, got.Get("body").Str, "one", "two")
	}
	if back != value {
		t.Errorf("%s %q: got %s", name, value, got)
	}
}

func unescape(t *testing.T, text string) string {
	t.Helper()
	plain, err := url.PathUnescape(text)
	if err != nil {
		t.Error(err)
	}
	return plain
}

// formField returns the first named field of a form that has exactly the named fields,
// once each.
func formField(t *testing.T, text string, names ...string) string {
	t.Helper()
	form, err := url.ParseQuery(text)
	if err != nil || len(form) != len(names) {
		t.Errorf("got the form %q, %v", text, err)
		return ""
	}
	for _, name := range names {
		if len(form[name]) != 1 {
			t.Errorf("got the form %q", text)
			return ""
		}
	}
	return form.Get(names[0])
}

func TestRequest_StaysWithItsSource(t *testing.T) {
	var elsewhere atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other, http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/fails":
			http.Error(w, "no such thing", http.StatusNotFound)
		case "/text":
			_, _ = io.WriteString(w, "plain")
		case "/bytes":
			_, _ = w.Write([]byte{0xff, 0})
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 200))
		case "/slow":
			<-r.Context().Done()
		case "/breaks":
			c, _, _ := http.NewResponseController(w).Hijack()
			c.Close()
		default:
			echoRequest(w, r)
		}
	})
	var tools []string
	for _, name := range []string{"away", "here", "loop", "fails", "text", "bytes", "long", "slow", "breaks"} {
		tools = append(tools, fmt.Sprintf(`name: %[1]s, method: POST, path: /%[1]s, maxResponseBytes: 1000, timeout: 2s`, name))
	}
	tools[6] = strings.Replace(tools[6], "1000", "100", 1)
	tools[7] = strings.Replace(tools[7], "2s", "50ms, annotations: {idempotentHint: true}", 1)
	w := newHTTPFixture(t, base, tools...)
	for name, code := range map[string]errcode.Code{
		"away": errcode.ToolExecutionFailed, "loop": errcode.ToolExecutionFailed, "fails": errcode.ToolExecutionFailed,
		"long": errcode.ResultTooLarge, "slow": errcode.ToolTimeout, "breaks": errcode.ToolInterrupted,
	} {
		if message := wantCode(t, w.call(t.Context(), name, `{}`), code); strings.Contains(message, "127.0.0.1") {
			t.Errorf("%s: %q reveals the address", name, message)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("the redirect to another host was followed")
	}
	if got := gjson.Get(w.rows("here", `{}`), "path").Str; got != "/there" {
		t.Errorf("got %q", got)
	}
	if got := w.rows("text", `{}`); got != "plain" {
		t.Errorf("got %q", got)
	}
	if got := gjson.Get(w.rows("bytes", `{}`), "base64").Str; got != "/wA=" {
		t.Errorf("got %q", got)
	}
}

func TestRequest_ErrorBodyHidesSecrets(t *testing.T) {
	base := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.URL.RawQuery, http.StatusTeapot) })
	w := newHTTPFixture(t, base,
		`name: open, method: GET, path: /, queryParams: [{name: w, type: string, description: d}]`,
		`name: secret, method: GET, path: /, queryParams: [{name: w, type: string, description: d, secure: true}]`)
	if message := wantCode(t, w.call(t.Context(), "open", `{"w": "plain"}`), errcode.ToolExecutionFailed); !strings.Contains(message, "418") || !strings.Contains(message, "w=plain") {
		t.Errorf("got %q", message)
	}
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Secure: json.RawMessage(`{"w": "s3cret"}`)})
	if message := wantCode(t, w.call(ctx, "secret", `{}`), errcode.ToolExecutionFailed); !strings.Contains(message, "418") || strings.Contains(message, "s3cret") {
		t.Errorf("got %q", message)
	}
}

func TestRequest_OnlyPublicOrListedAddresses(t *testing.T) {
	c := parse(t, fmt.Sprintf(`{"kind": "source", "name": "api", "type": "http", "baseUrl": %q}
---
{kind: tool, name: get, type: http, source: api, description: d, method: GET, path: /}`, serve(t, echoRequest)))
	w := newFixture(t, c)
	var private []netip.Prefix
	w.change = func(c *toolbox.Config) {
		c.Network = func() toolbox.Network { return toolbox.Network{Private: private} }
	}
	w.load(c)
	if message := wantCode(t, w.call(t.Context(), "get", `{}`), errcode.AddressBlocked); strings.Contains(message, "127.0.0.1") {
		t.Errorf("%q reveals the address", message)
	}
	private = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w.rows("get", `{}`)
}

func TestRequest_UnreachableServiceIsUnavailable(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(echoRequest))
	s.Close()
	w := newHTTPFixture(t, s.URL, `name: get, method: GET, path: /`)
	for range 3 {
		if message := wantCode(t, w.call(t.Context(), "get", `{}`), errcode.ToolUnavailable); strings.Contains(message, "127.0.0.1") {
			t.Errorf("%q reveals the address", message)
		}
	}
	wantLogged(t, w, 1, 0)
	if log := w.log.String(); !strings.Contains(log, s.Listener.Addr().String()) || strings.Contains(log, "key=q") {
		t.Errorf("the log lacks the address or reveals the query: %s", log)
	}
}

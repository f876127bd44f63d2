package app

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/journal"
)

// resourceGateway has the tokens reader and other, of the roles of these names.
var resourceGateway = fmt.Sprintf("{kind: gateway, name: http, tokens: [{name: reader, role: reader, sha256: %x}, {name: other, role: other, sha256: %x}]}",
	sha256.Sum256([]byte("token-of-reader")), sha256.Sum256([]byte("token-of-other")))

const (
	resourceReader   = "{kind: role, name: reader, toolGroups: [docs]}"
	resourceOther    = "{kind: role, name: other, toolGroups: [elsewhere]}"
	resourceHours    = "{kind: resource, name: hours, type: text, text: 9 to 5, title: Hours}"
	resourceSecret   = "{kind: resource, name: secret, type: text, text: canary}"
	resourceTemplate = "{kind: resourceTemplate, name: guides, type: file, uriTemplate: 'file://DIR/guides/{path}', allowedPaths: [DIR/guides]}"
	resourceGroup    = "{kind: group, name: docs, resources: [hours], resourceTemplates: [guides]}"
	resourceElse     = "{kind: group, name: elsewhere, resources: [secret]}"
)

// mcp sends a request of MCP about a resource as a role and returns the result, or the code and
// message of the error.
func (f *fixture) mcp(url, role, method, uri string) string {
	f.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":%q,"params":{"uri":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, uri)
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer token-of-" + role, "Content-Type": "application/json", "Accept": "application/json, text/plain, */*",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": uri,
	} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	doc := gjson.ParseBytes(data)
	if failure := doc.Get("error"); failure.Exists() {
		return failure.Get("code").Raw + " " + failure.Get("message").Str
	}
	return doc.Get("result").Raw
}

// resourcesOf lists what a role is offered over MCP: URIs and templates.
func (f *fixture) resourcesOf(url, role string) string {
	f.t.Helper()
	uris := gjson.Get(f.mcp(url, role, "resources/list", ""), "resources.#.uri").Array()
	templates := gjson.Get(f.mcp(url, role, "resources/templates/list", ""), "resourceTemplates.#.uriTemplate").Array()
	return fmt.Sprint(uris, templates)
}

// Roles read the resources of their groups, and others do not exist for them. Each read is on
// record.
func TestResources_AreReadByRolesWithTheirGroup(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"guides/a.md": "A", "guides/large.md": strings.Repeat("é", 1<<21), "outside.md": "canary"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, template := newFixture(t), strings.ReplaceAll(resourceTemplate, "DIR", dir)
	if err := f.ApplyConfig(t.Context(), f.read(resourceGateway, resourceReader, resourceOther, resourceHours, resourceSecret, template, resourceGroup, resourceElse), nil); err != nil {
		t.Fatal(err)
	}
	handler, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	uri := "file://" + dir + "/guides/"
	if got, want := f.resourcesOf(server.URL, "reader"), "[text://hours] ["+uri+"{path}]"; got != want {
		t.Errorf("reader is offered %s, want %s", got, want)
	}
	if got, want := f.resourcesOf(server.URL, "other"), "[text://secret] []"; got != want {
		t.Errorf("other is offered %s, want %s", got, want)
	}
	after := f.LastSeq()
	for _, step := range []struct{ role, uri, want string }{
		{"reader", "text://hours", "9 to 5"}, {"reader", uri + "a.md", "A"}, {"other", "text://secret", "canary"},
		{"reader", "text://secret", "-32602 Resource not found"}, {"other", "text://hours", "-32602 Resource not found"}, {"other", uri + "a.md", "-32602 Resource not found"},
		{"reader", uri + "none.md", "-32602 Resource not found"}, {"reader", uri + "../outside.md", "-32602 Resource not found"}, {"reader", uri + "%2e%2e%2foutside.md", "-32602 Resource not found"},
	} {
		got := f.mcp(server.URL, step.role, "resources/read", step.uri)
		if text := gjson.Get(got, "contents.0.text"); text.Exists() {
			got = text.Str
		}
		if got != step.want {
			t.Errorf("%s reads %s: got %s, want %s", step.role, step.uri, got, step.want)
		}
	}
	if err := f.Runtime.Flush(); err != nil { // reads share a commit
		t.Fatal(err)
	}
	called := map[string]int{}
	for e, err := range f.store.FollowEvents(t.Context(), after, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.Body.(journal.ToolCall); ok {
			called[c.Tool]++
		}
	}
	if called["resource_hours"] != 1 || called["template_guides"] != 2 || called["resource_secret"] != 1 || called["resources/read"] != 5 {
		t.Errorf("on record are %v", called)
	}
	// A model of the role reads them as tools.
	if code, text := f.invoke(t.Context(), "resource_hours", `{}`); code != "" || text != `"9 to 5"` {
		t.Errorf("got %s %s", code, text)
	}

	// The largest file that is read fits into an answer.
	large := f.mcp(server.URL, "reader", "resources/read", uri+"large.md")
	if text := gjson.Get(large, "contents.0.text").Str; len(text) != 4<<20 {
		t.Errorf("got %d bytes of %.200s", len(text), large)
	}

	// A reload changes what is read, and takes away what the group has lost.
	changed := strings.Replace(resourceHours, "9 to 5", "10 to 4", 1)
	if _, err := f.reconfigure(t.Context(), f.read(resourceGateway, resourceReader, resourceOther, changed, resourceSecret, template, "{kind: group, name: docs, resources: [hours]}", resourceElse)); err != nil {
		t.Fatal(err)
	}
	if got := f.resourcesOf(server.URL, "reader"); got != "[text://hours] []" {
		t.Errorf("reader is offered %s", got)
	}
	if got := gjson.Get(f.mcp(server.URL, "reader", "resources/read", "text://hours"), "contents.0.text").Str; got != "10 to 4" {
		t.Errorf("got %q", got)
	}
	if _, err := f.reconfigure(t.Context(), f.read(resourceGateway, resourceReader, resourceOther, "{kind: group, name: docs}", "{kind: group, name: elsewhere}")); err != nil {
		t.Fatal(err)
	}
	if got := f.mcp(server.URL, "reader", "resources/read", "text://hours"); got != "-32602 Resource not found" {
		t.Errorf("got %q", got)
	}
}

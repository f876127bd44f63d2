package cmd

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/buffer"
)

// echoMode is the variable that makes this binary an MCP server on stdio, which sends back
// the canary of its environment in the way that the value names.
const echoMode = "TEST_ECHO_SERVER"

// echoed returns a text with the key in every form that is redacted.
func echoed(key string) string { return strings.Join(echoForms(key), " and ") }

func echoForms(key string) []string {
	percent := url.QueryEscape(key)
	return []string{
		key, percent, strings.ToLower(percent), base64.StdEncoding.EncodeToString([]byte(key)),
		base64.RawURLEncoding.EncodeToString([]byte("u:" + key)), base64.URLEncoding.EncodeToString([]byte("u" + key)),
	}
}

// runEchoServer serves the protocol with one tool until stdin ends.
func runEchoServer(mode string) {
	key := echoed(os.Getenv("CANARY"))
	fmt.Fprintln(os.Stderr, "started with", key)
	if mode == "start" {
		os.Exit(3)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &q) // without an id it is a notification
		if q.Method == "tools/call" && mode == "garbage" {
			fmt.Println("environment:", key)
		}
		if len(q.ID) > 0 {
			fmt.Println(echoAnswer(q.Method, string(q.ID), key))
		}
	}
}

// echoAnswer returns the answer to a request.
func echoAnswer(method, id, key string) string {
	text, _ := json.Marshal(key) // a string always marshals
	switch method {
	case "initialize":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":%s},"instructions":%s}}`, id, text, text)
	case "tools/list":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"act","description":%s,"inputSchema":{"type":"object","title":%s}}]}}`, id, text, text)
	case "tools/call":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}],"structuredContent":{"key":%s}}}`, id, text, text)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":%s}}`, id, text)
}

// echoHTTP answers requests of the MCP client, below /mcp, and of declared tools with the
// secrets that they carry.
func echoHTTP(w http.ResponseWriter, r *http.Request) {
	key := echoed(r.Header.Get("X-Key") + r.URL.Query().Get("key"))
	var q struct {
		ID     json.RawMessage
		Method string
	}
	switch _ = json.NewDecoder(r.Body).Decode(&q); { // the requests of declared tools have no body
	case r.URL.Path == "/moved" || q.Method == "tools/call" && r.URL.Path == "/mcp/moved":
		http.Redirect(w, r, "http://127.0.0.1:1/?"+key, http.StatusTemporaryRedirect)
	case r.URL.Path == "/fails":
		http.Error(w, key, http.StatusTeapot)
	case !strings.HasPrefix(r.URL.Path, "/mcp"):
		fmt.Fprint(w, key)
	case len(q.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, echoAnswer(q.Method, string(q.ID), key))
	}
}

// writeEchoConfig writes a configuration with sources and servers that echo what CANARY is.
// The programs echo it in the ways that modes name.
func writeEchoConfig(t *testing.T, file, address string, modes ...string) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := "{kind: role, name: worker, prompt: p, toolGroups: all}\n---\n{kind: network, name: n, privateAddresses: [127.0.0.0/8]}\n---\n" +
		"{kind: source, name: api, type: http, baseUrl: " + address + ", headers: {X-Key: \"${CANARY}\"}}\n---\n" +
		"{kind: source, name: query, type: http, baseUrl: " + address + ", queryParams: {key: \"${CANARY}\"}}\n"
	for _, source := range []string{"api", "query"} {
		for _, name := range []string{"works", "fails", "moved"} {
			text += fmt.Sprintf("---\n{kind: tool, type: http, source: %[1]s, name: %[1]s_%[2]s, description: d, method: GET, path: /%[2]s}\n", source, name)
		}
	}
	for _, mode := range modes {
		text += fmt.Sprintf("---\n{kind: mcpServer, name: %[1]s, command: %[2]q, env: {%[3]s: %[1]s, CANARY: \"${CANARY}\"}}\n", mode, program, echoMode)
	}
	for _, name := range []string{"web", "moved"} {
		text += fmt.Sprintf("---\n{kind: mcpServer, name: %[1]s, url: %[2]s/mcp/%[1]s, headers: {X-Key: \"${CANARY}\"}}\n", name, address)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Secrets of servers and sources appear in no log, error, event or record, even if a
// server sends them back, in whatever form.
func TestMCP_WritesNoSecretsOfServers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echoHTTP))
	defer server.Close()
	dir := t.TempDir()
	file, broken := filepath.Join(dir, "org.yaml"), filepath.Join(dir, "broken.yaml")
	writeEchoConfig(t, file, server.URL, "garbage", "result")
	writeEchoConfig(t, broken, server.URL, "start")
	calls := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
`
	names := []string{"api_works", "api_fails", "api_moved", "query_works", "query_fails", "query_moved", "garbage__act", "result__act", "web__act", "moved__act"}
	for i, name := range names {
		calls += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`+"\n", i+2, name)
	}
	calls += fmt.Sprintf(`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"read_file","arguments":{"path":1,"x":%q}}}`+"\n", echoed(formsCanary)) // denied
	var output buffer.SyncBuffer
	for _, args := range [][]string{
		{"mcp", "-v", "--role", "worker", "-f", broken}, {"mcp", "-v", "--role", "worker", "-f", file}, {"mcp", "--role", "worker", "-f", file},
		{"check", "-f", file, "--json"}, {"tool", "list", "--json"}, {"tool", "list", "--quarantined"}, {"group", "list", "--json"}, {"tool", "show", "result__act"},
	} {
		c := &common{launcher: launcher, in: strings.NewReader(calls), out: &output, err: &output, env: func(name string) (string, bool) {
			return map[string]string{"CANARY": formsCanary}[name], name == "CANARY"
		}}
		run(t.Context(), c, append(args, "--data", filepath.Join(dir, "data")))
	}
	text := output.String()
	for i, name := range names {
		if !strings.Contains(text, fmt.Sprintf(`"id":%d,`, i+2)) {
			t.Errorf("the call of %s got no answer", name)
		}
	}
	if strings.Count(text, "***") < len(names) {
		t.Errorf("only %d secrets were redacted:\n%s", strings.Count(text, "***"), text)
	}
	for _, form := range echoForms(formsCanary) {
		core := strings.TrimRight(form, "=")
		forbidden(t, "the output", []byte(text), core[4:len(core)-2])
		noneUnder(t, dir, core[4:len(core)-2])
	}
}

// formsCanary is a secret of which every encoding differs.
const formsCanary = "sk/canary+77aa?b8c1"

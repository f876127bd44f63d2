package app

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// The cases of modules/toolbox/testdata run against a complete App: its configuration,
// its authentication, and both protocols, the HTTP API of Toolbox and MCP.
func TestInvokeCases(t *testing.T) {
	all, idp := gjson.Parse(toolboxFile(t, "invoke.json")), oidctest.NewIssuer(t)
	tools := strings.Split(toolboxFile(t, "tools.yaml"), "\n---\n")
	cases := all.Get("cases").Array()
	if len(cases) < 90 {
		t.Fatalf("only %d cases were found", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Get("id").Raw+" "+c.Get("tool").Str, func(t *testing.T) {
			t.Parallel()
			run := &invokeCase{t: t, data: c, idp: idp, tokens: all.Get("tokens")}
			if run.open(tools) {
				run.compare("http", run.overHTTP())
				run.compare("mcp", run.overMCP())
			}
		})
	}
}

func toolboxFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "modules", "toolbox", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// invokeCase runs one case over HTTP and MCP.
type invokeCase struct {
	t      *testing.T
	data   gjson.Result
	idp    *oidctest.Issuer
	tokens gjson.Result
	url    string
}

// open serves the tool of the case on a new database. It returns false if the
// configuration is rejected and the case expects that.
func (c *invokeCase) open(tools []string) bool {
	c.t.Helper()
	cfg, err := c.configuration(tools)
	switch rejected := c.data.Get("ours.load").Str == "refused"; {
	case err != nil && (rejected || c.want("http").Get("outcome").Str == "refused"):
		return false
	case err != nil || rejected:
		c.t.Fatalf("rejected at load: %v; want rejected: %v", err, rejected)
	}
	a, err := Open(Options{Data: c.t.TempDir(), Launcher: launcher})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			c.t.Error(err)
		}
	})
	if err := a.ApplyConfig(c.t.Context(), cfg, nil); err != nil {
		c.t.Fatal(err)
	}
	handler, err := a.Handler()
	if err != nil {
		c.t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	c.t.Cleanup(server.Close)
	c.url = server.URL
	return true
}

const casesToken = "token-of-the-cases"

// configuration returns the sources, the auth services, the tool one and the tool of the
// case, with a role that has both tools.
func (c *invokeCase) configuration(tools []string) (*config.Config, error) {
	docs := []string{
		"kind: role\nname: caller\nprompt: call\ntoolGroups: [default]",
		fmt.Sprintf("kind: gateway\nname: http\ntokens: [{name: cases, role: caller, sha256: %x}]", sha256.Sum256([]byte(casesToken))),
	}
	for _, doc := range tools {
		about := gjson.Parse(doc[strings.Index(doc, "{"):])
		name := about.Get("name").Str
		switch about.Get("kind").Str {
		case "source", "authService":
			docs = append(docs, doc)
		case "tool":
			if name == "one" || name == c.data.Get("tool").Str {
				docs = append(docs, doc)
			}
		}
	}
	text := strings.NewReplacer("__DB__", c.database(), "__IDP__", c.idp.URL).Replace(strings.Join(docs, "\n---\n"))
	return config.ReadFiles([]yamldoc.File{{Path: "tools.yaml", Data: []byte(text)}}, nil)
}

// database creates a database and returns its file.
func (c *invokeCase) database() string {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "fixture.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		c.t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE flights(id integer primary key, airline text, num text, user_id text, price real);
		INSERT INTO flights VALUES (1,'CY','888','u1',10.5), (2,'DL','1234','u2',20), (3,'AA','1','u1',NULL)`)
	if err != nil {
		c.t.Fatal(err)
	}
	return file
}

// want returns the expected outcome for a protocol.
func (c *invokeCase) want(protocol string) gjson.Result {
	ours := c.data.Get("ours." + protocol)
	if ours.Str == "same" || c.data.Get("ours").Str == "same" {
		return c.data.Get("observed." + protocol)
	}
	return ours
}

// outcome is the result of a call over one protocol.
type outcome struct {
	outcome string
	text    string // of the error, or JSON rows
}

// overHTTP calls the tool through the HTTP API of Toolbox.
func (c *invokeCase) overHTTP() outcome {
	c.t.Helper()
	status, body := c.post("/api/tool/"+c.data.Get("tool").Str+"/invoke", c.data.Get("body").Str, nil)
	switch status {
	case http.StatusUnauthorized:
		return outcome{"unauthenticated", body}
	case http.StatusNotFound:
		return outcome{"not_found", body}
	case http.StatusBadRequest:
		return outcome{"bad_request", body}
	case http.StatusOK:
		result := gjson.Get(body, "result").Str
		if fault := gjson.Get(result, "error"); fault.Exists() {
			return outcome{"tool_error", fault.Str}
		}
		return outcome{"rows", result}
	}
	return outcome{fmt.Sprint(status), body}
}

// overMCP calls the tool over MCP, in a protocol version with sessions but without one,
// as the expected outcomes were recorded.
func (c *invokeCase) overMCP() outcome {
	c.t.Helper()
	if !json.Valid([]byte(c.data.Get("body").Str)) {
		return outcome{"not_run", ""}
	}
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.data.Get("tool").Str, c.data.Get("body").Str)
	status, body := c.post("/mcp", call, map[string]string{"Mcp-Protocol-Version": "2025-06-18", "Accept": "application/json, text/plain, */*"})
	result := gjson.Get(body, "result")
	texts := result.Get("content.#.text").Array()
	switch {
	case status == http.StatusUnauthorized, result.Get("structuredContent.error").Str == "unauthenticated":
		return outcome{"unauthenticated", body}
	case gjson.Get(body, "error.code").Int() == -32602:
		return outcome{"not_found", body}
	case gjson.Get(body, "error").Exists():
		return outcome{"bad_request", body}
	case result.Get("isError").Bool():
		return outcome{"tool_error", texts[0].Str}
	}
	rows := make([]string, len(texts))
	for i, text := range texts {
		rows[i] = text.Str
	}
	return outcome{"rows", "[" + strings.Join(rows, ",") + "]"}
}

// post sends a body with the role's token and the headers of the case.
func (c *invokeCase) post(path, body string, header map[string]string) (status int, text string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+casesToken)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	c.data.Get("headers").ForEach(func(name, value gjson.Result) bool {
		r.Header.Set(name.Str, c.expandToken(value.Str))
		return true
	})
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(answer.Body); err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, b.String()
}

// expandToken replaces a reference to a token in a header by the token.
func (c *invokeCase) expandToken(text string) string {
	before, name, ok := strings.Cut(text, "{token:")
	if !ok {
		return text
	}
	about := c.tokens.Get(strings.TrimSuffix(name, "}"))
	claims := c.claims(about.Get("claims"))
	switch {
	case about.Get("raw").Exists():
		return before + about.Get("raw").Str
	case about.Get("alg").Str == "none":
		return before + c.idp.UnsignedToken(claims)
	case about.Get("alg").Str == "HS256":
		return before + c.idp.SignWithPublicKey(claims)
	case about.Get("key").Exists():
		return before + c.idp.SignWithWrongKey(claims)
	}
	return before + c.idp.SignToken(claims)
}

// claims fills in the issuer and the current time.
func (c *invokeCase) claims(about gjson.Result) string {
	all := map[string]any{}
	about.ForEach(func(name, value gjson.Result) bool {
		all[name.Str] = value.Value()
		if n, err := strconv.Atoi(value.Str); err == nil && (name.Str == "exp" || name.Str == "nbf") {
			all[name.Str] = time.Now().Unix() + int64(n)
		}
		return true
	})
	text, err := json.Marshal(all)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "__IDP__", c.idp.URL)
}

// compare checks an outcome against the expected one.
func (c *invokeCase) compare(protocol string, got outcome) {
	c.t.Helper()
	want := c.want(protocol)
	outcome := want.Get("outcome").Str
	faults := []string{"tool_error", "unauthenticated", "not_found", "bad_request"}
	switch {
	case outcome == "refused" && slices.Contains(faults, got.outcome):
	case protocol == "mcp" && outcome == "bad_request" && got.outcome == "tool_error":
	case outcome != got.outcome:
		c.t.Errorf("%s: %s %s, want %s", protocol, got.outcome, got.text, want.Raw)
	case outcome == "rows" && !rowsFit(got.text, want):
		c.t.Errorf("%s: rows %s, want %s", protocol, got.text, want.Raw)
	}
	if not := c.data.Get("ours.text_not").Str; not != "" && strings.Contains(got.text, not) {
		c.t.Errorf("%s: %s contains %q", protocol, got.text, not)
	}
}

// rowsFit reports whether rows equal the expected ones. It compares members in order,
// allows repeated names, and compares numbers by value.
func rowsFit(got string, want gjson.Result) bool {
	either := want.Get("rows_any").Array()
	if len(either) == 0 {
		either = []gjson.Result{want.Get("rows")}
	}
	return slices.ContainsFunc(either, func(rows gjson.Result) bool {
		return canonical(gjson.Parse(got)) == canonical(gjson.Parse(rows.Str))
	})
}

// canonical returns a form of a JSON value that is equal for equal values.
func canonical(v gjson.Result) string {
	switch {
	case v.IsArray() || v.IsObject():
		parts := []string{}
		v.ForEach(func(key, value gjson.Result) bool {
			parts = append(parts, key.String()+":"+canonical(value))
			return true
		})
		return fmt.Sprintf("%t%q", v.IsArray(), parts)
	case v.Type == gjson.Number && strings.ContainsAny(v.Raw, ".eE"):
		return fmt.Sprint(v.Num)
	case v.Type == gjson.String:
		return strconv.Quote(v.Str)
	}
	return v.Raw
}

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

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/internal/test/oidctest"
)

// The calls of modules/toolbox/testdata, taken through the whole house: its
// configuration, its door with a token of the role, and both wires, the HTTP API
// of Toolbox and MCP.
func TestInvokeCases(t *testing.T) {
	all, idp := gjson.Parse(toolboxFile(t, "invoke.json")), oidctest.New(t)
	tools := strings.Split(toolboxFile(t, "tools.yaml"), "\n---\n")
	cases := all.Get("cases").Array()
	if len(cases) < 90 {
		t.Fatalf("only %d cases were found", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Get("id").Raw+" "+c.Get("tool").Str, func(t *testing.T) {
			t.Parallel()
			w := &wires{t: t, c: c, idp: idp, tokens: all.Get("tokens")}
			if w.open(tools) {
				w.compare("http", w.overHTTP())
				w.compare("mcp", w.overMCP())
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

// wires are the ways to one case's tool.
type wires struct {
	t      *testing.T
	c      gjson.Result
	idp    *oidctest.Issuer
	tokens gjson.Result
	url    string
}

// open puts the tool of the case before a fresh database; false when it is
// refused at load and that is right.
func (w *wires) open(tools []string) bool {
	w.t.Helper()
	cfg, err := w.configuration(tools)
	switch refused := w.c.Get("ours.load").Str == "refused"; {
	case err != nil && (refused || w.want("http").Get("outcome").Str == "refused"):
		return false
	case err != nil || refused:
		w.t.Fatalf("refused at load, which is to be %v: %v", refused, err)
	}
	h, err := Open(Options{Data: w.t.TempDir(), Launcher: launcher})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := h.Close(); err != nil {
			w.t.Error(err)
		}
	})
	if err := h.Configure(w.t.Context(), cfg, nil); err != nil {
		w.t.Fatal(err)
	}
	handler, err := h.Handler()
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	w.url = server.URL
	return true
}

const casesToken = "token-of-the-cases"

// configuration gives the source, the auth services, the tool one and the
// case's tool, for a role that has both.
func (w *wires) configuration(tools []string) (*config.Config, error) {
	docs := []string{
		"kind: role\nname: caller\nprompt: call\ntoolGroups: [default]",
		fmt.Sprintf("kind: gateway\nname: door\ntokens: [{name: cases, role: caller, sha256: %x}]", sha256.Sum256([]byte(casesToken))),
	}
	for _, doc := range tools {
		about := gjson.Parse(doc[strings.Index(doc, "{"):])
		name := about.Get("name").Str
		switch about.Get("kind").Str {
		case "source", "authService":
			docs = append(docs, doc)
		case "tool":
			if name == "one" || name == w.c.Get("tool").Str {
				docs = append(docs, doc)
			}
		}
	}
	text := strings.NewReplacer("__DB__", w.database(), "__IDP__", w.idp.URL).Replace(strings.Join(docs, "\n---\n"))
	return config.Read([]config.File{{Path: "tools.yaml", Data: []byte(text)}}, nil)
}

// database makes a fresh one.
func (w *wires) database() string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "fixture.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE flights(id integer primary key, airline text, num text, user_id text, price real);
		INSERT INTO flights VALUES (1,'CY','888','u1',10.5), (2,'DL','1234','u2',20), (3,'AA','1','u1',NULL)`)
	if err != nil {
		w.t.Fatal(err)
	}
	return file
}

// want gives the outcome that a wire is to have.
func (w *wires) want(wire string) gjson.Result {
	ours := w.c.Get("ours." + wire)
	if ours.Str == "same" || w.c.Get("ours").Str == "same" {
		return w.c.Get("observed." + wire)
	}
	return ours
}

// came is what came back over a wire.
type came struct {
	outcome string
	text    string // of the error, or JSON rows
}

// overHTTP calls the tool through the HTTP API of Toolbox.
func (w *wires) overHTTP() came {
	w.t.Helper()
	status, body := w.post("/api/tool/"+w.c.Get("tool").Str+"/invoke", w.c.Get("body").Str, nil)
	switch status {
	case http.StatusUnauthorized:
		return came{"unauthenticated", body}
	case http.StatusNotFound:
		return came{"not_found", body}
	case http.StatusBadRequest:
		return came{"bad_request", body}
	case http.StatusOK:
		result := gjson.Get(body, "result").Str
		if fault := gjson.Get(result, "error"); fault.Exists() {
			return came{"tool_error", fault.Str}
		}
		return came{"rows", result}
	}
	return came{fmt.Sprint(status), body}
}

// overMCP calls it as the cases were observed: in a version that has sessions,
// without one.
func (w *wires) overMCP() came {
	w.t.Helper()
	if !json.Valid([]byte(w.c.Get("body").Str)) {
		return came{"not_run", ""}
	}
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":%q,"arguments":%s}}`, w.c.Get("tool").Str, w.c.Get("body").Str)
	status, body := w.post("/mcp", call, map[string]string{"Mcp-Protocol-Version": "2025-06-18", "Accept": "application/json, text/plain, */*"})
	result := gjson.Get(body, "result")
	texts := result.Get("content.#.text").Array()
	switch {
	case status == http.StatusUnauthorized, result.Get("structuredContent.error").Str == "unauthenticated":
		return came{"unauthenticated", body}
	case gjson.Get(body, "error.code").Int() == -32602:
		return came{"not_found", body}
	case gjson.Get(body, "error").Exists():
		return came{"bad_request", body}
	case result.Get("isError").Bool():
		return came{"tool_error", texts[0].Str}
	}
	rows := make([]string, len(texts))
	for i, text := range texts {
		rows[i] = text.Str
	}
	return came{"rows", "[" + strings.Join(rows, ",") + "]"}
}

// post sends a body with the role's token and the headers of the case.
func (w *wires) post(path, body string, header map[string]string) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+casesToken)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w.c.Get("headers").ForEach(func(name, value gjson.Result) bool {
		r.Header.Set(name.Str, w.filled(value.Str))
		return true
	})
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(answer.Body); err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, b.String()
}

// filled puts the token that a text names in its place.
func (w *wires) filled(text string) string {
	before, name, ok := strings.Cut(text, "{token:")
	if !ok {
		return text
	}
	about := w.tokens.Get(strings.TrimSuffix(name, "}"))
	claims := w.claims(about.Get("claims"))
	switch {
	case about.Get("raw").Exists():
		return before + about.Get("raw").Str
	case about.Get("alg").Str == "none":
		return before + w.idp.Unsigned(claims)
	case about.Get("alg").Str == "HS256":
		return before + w.idp.Symmetric(claims)
	case about.Get("key").Exists():
		return before + w.idp.WronglySigned(claims)
	}
	return before + w.idp.Token(claims)
}

// claims puts the issuer and the times of now into claims.
func (w *wires) claims(about gjson.Result) string {
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
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "__IDP__", w.idp.URL)
}

// compare holds what came against what the case wants.
func (w *wires) compare(wire string, got came) {
	w.t.Helper()
	want := w.want(wire)
	outcome := want.Get("outcome").Str
	faults := []string{"tool_error", "unauthenticated", "not_found", "bad_request"}
	switch {
	case outcome == "refused" && slices.Contains(faults, got.outcome):
	case wire == "mcp" && outcome == "bad_request" && got.outcome == "tool_error":
	case outcome != got.outcome:
		w.t.Errorf("%s: %s %s, want %s", wire, got.outcome, got.text, want.Raw)
	case outcome == "rows" && !rowsFit(got.text, want):
		w.t.Errorf("%s: rows %s, want %s", wire, got.text, want.Raw)
	}
	if not := w.c.Get("ours.text_not").Str; not != "" && strings.Contains(got.text, not) {
		w.t.Errorf("%s: %s holds %q", wire, got.text, not)
	}
}

// rowsFit compares rows as JSON text, in one spelling: members in order, names
// that repeat, numbers by value.
func rowsFit(got string, want gjson.Result) bool {
	either := want.Get("rows_any").Array()
	if len(either) == 0 {
		either = []gjson.Result{want.Get("rows")}
	}
	return slices.ContainsFunc(either, func(rows gjson.Result) bool {
		return spelled(gjson.Parse(got)) == spelled(gjson.Parse(rows.Str))
	})
}

func spelled(v gjson.Result) string {
	switch {
	case v.IsArray() || v.IsObject():
		parts := []string{}
		v.ForEach(func(key, value gjson.Result) bool {
			parts = append(parts, key.String()+":"+spelled(value))
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

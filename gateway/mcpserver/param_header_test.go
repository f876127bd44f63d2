package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// schemaTool is a tool with a schema that returns its arguments.
type schemaTool struct{ name, input string }

func (s schemaTool) Definition() tool.Definition {
	return tool.Definition{Name: s.name, Description: "d", Input: raw(s.input)}
}

func (s schemaTool) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.Result{Text: string(c.Args)}, nil
}

// declaredTool is a declared tool whose schema for clients has marks.
type declaredTool struct {
	schemaTool
	tool.Declared
}

func (d declaredTool) Definition() tool.Definition {
	def := d.schemaTool.Definition()
	def.Declared = d
	return def
}

func (d declaredTool) ClientSchema() json.RawMessage { return raw(d.input) }

// markedInput is a schema with marks at two depths.
const markedInput = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},` +
	`"deep":{"type":"object","properties":{"on":{"type":"boolean","\u0078-mcp-header":"On"}}},"x-mcp-header":{"type":"string"}}}`

// openMarked returns a fixture with the role reader and tools whose arguments are marked.
func openMarked(t *testing.T) *fixture {
	t.Helper()
	f := openFixture(t)
	list := []tool.Tool{schemaTool{"marked", markedInput}, declaredTool{schemaTool: schemaTool{"declared", markedInput}}}
	for name, property := range map[string]string{
		"empty": `{"type":"string","x-mcp-header":""}`, "spaced": `{"type":"string","x-mcp-header":"a b"}`, "number": `{"type":"number","x-mcp-header":"A"}`,
		"broken": `{"type":"string","x-mcp-header":"A\r\nB"}`, "object": `{"type":"object","x-mcp-header":"A"}`, "list": `{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`,
		"twice": `{"type":"string","x-mcp-header":"Q"},"b":{"type":"string","x-mcp-header":"q"}`, "typed": `{"type":"string","x-mcp-header":7}`,
	} {
		list = append(list, schemaTool{name, `{"type":"object","properties":{"a":` + property + `}}`})
	}
	f.register(t, toolgroups.Group{ID: "marks", Tools: list})
	f.role(t, "reader", "marks")
	f.role(t, "other", "probe")
	return f
}

// Clients of 2026-07-28 see the marks that are as the protocol requires. The others, and all clients
// of earlier versions, see schemas without marks.
func TestParamHeaders_Listed(t *testing.T) {
	f := openMarked(t)
	for _, version := range versions {
		list, err := f.connect(t, "ann@reader", "/mcp", version, nil).ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 10 {
			t.Fatalf("%s: %v %+v", version, err, list)
		}
		for _, tool := range list.Tools {
			schema, _ := json.Marshal(tool.InputSchema)
			got := gjson.GetBytes(schema, `[properties.region.x-mcp-header,properties.n.x-mcp-header,properties.deep.properties.on.x-mcp-header]`).Raw
			want := `[]`
			if tool.Name == "marked" && version >= "2026-07-28" {
				want = `["Region","N","On"]`
			}
			if got != want || tool.Name == "marked" && !gjson.GetBytes(schema, "properties.x-mcp-header").Exists() {
				t.Errorf("%s %s: marks %s, want %s", version, tool.Name, got, want)
			}
			if tool.Name != "marked" && hasMark(string(schema)) {
				t.Errorf("%s: %s has a mark: %s", version, tool.Name, schema)
			}
		}
	}
}

// hasMark reports whether a schema has a mark. A property may have the name of the keyword.
func hasMark(schema string) bool {
	return strings.Contains(strings.ReplaceAll(schema, `"x-mcp-header":{`, ""), "x-mcp-header")
}

// Headers are not compared with the arguments of a declared tool.
func TestParamHeaders_DeclaredToolHasNone(t *testing.T) {
	f := openMarked(t)
	for _, headers := range []string{"", "Mcp-Param-Region: us"} {
		if got := f.postMarked(t, "ann@reader", "declared", `{"region":"eu"}`, headers, statelessMeta); got.status != 200 || strings.Contains(got.body, "isError") {
			t.Errorf("with the headers %q: %d %s", headers, got.status, got.body)
		}
	}
}

// The official client sends the headers, and the tool gets the arguments.
func TestParamHeaders_OfficialClient(t *testing.T) {
	f := openMarked(t)
	for _, version := range versions {
		session := f.connect(t, "ann@reader", "/mcp", version, nil)
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		args := obj{"region": " ü=?base64?x?=", "n": 7, "deep": obj{"on": true}}
		if got := callTool(t, session, "marked", args); gjson.Get(got, "region").Str != args["region"] || gjson.Get(got, "n").Int() != 7 {
			t.Errorf("%s: %s", version, got)
		}
	}
}

// postMarked calls a tool with headers, "NAME: VALUE" in lines.
func (f *fixture) postMarked(t *testing.T, sender, name, args, headers, meta string) answer {
	t.Helper()
	header := statelessHeader("tools/call", name)
	for line := range strings.Lines(headers) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		header[key] = value
	}
	return f.post(t, sender, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+`,`+meta+`}}`, header)
}

// A header that differs from its argument is rejected before the call; the cases are those of the
// official suite and more.
func TestParamHeaders_Compared(t *testing.T) {
	f := openMarked(t)
	for _, c := range []struct {
		args, headers string
		ok            bool
	}{
		{`{}`, "", true},
		{`{"region":"Hello"}`, "Mcp-Param-Region: Hello", true},
		{`{"region":"Hello"}`, "mcp-param-REGION: =?base64?SGVsbG8=?=", true},
		{`{"region":"Hello"}`, "Mcp-Param-Region: =?base64?SGVsbG8?=", false},
		{`{"region":"Hello"}`, "Mcp-Param-Region: =?base64?SGVs!!!bG8=?=", false},
		{`{"region":"SGVsbG8="}`, "Mcp-Param-Region: SGVsbG8=", true},
		{`{"region":"=?base64?SGVsbG8="}`, "Mcp-Param-Region: =?base64?SGVsbG8=", true},
		{`{"region":"test"}`, "", false},
		{`{"region":"eu"}`, "Mcp-Param-Region: us", false},
		{`{}`, "Mcp-Param-Region: us", false},
		{`{"region":null}`, "Mcp-Param-Region: us", false},
		{`{"n":7}`, "Mcp-Param-N: 7", true},
		{`{"n":7}`, "Mcp-Param-N: 7.0", true},
		{`{"n":7}`, "Mcp-Param-N: 8", false},
		{`{"n":7}`, "Mcp-Param-N: NaN", false},
		{`{"n":7}`, "Mcp-Param-N: ", false},
		{`{"n":-7}`, "Mcp-Param-N: -7", true},
		{`{"n":0}`, "Mcp-Param-N: 0", true},
		{`{"n":100}`, "Mcp-Param-N: 1e2", false},
		{`{"n":16}`, "Mcp-Param-N: 0x1p4", false},
		{`{"n":7}`, "Mcp-Param-N: 007", false},
		{`{"n":7}`, "Mcp-Param-N: +7", false},
		{`{"n":7}`, "Mcp-Param-N: 7.00000000000000000001", false},
		{`{"deep":{"on":true}}`, "Mcp-Param-On: true", true},
		{`{"deep":{"on":true}}`, "Mcp-Param-On: True", false},
		{`{"deep":{"on":true}}`, "", false},
		{`{"deep":"x"}`, "Mcp-Param-On: true", false},
		{`{"region":"eu"}`, "Mcp-Param-Region: eu\nMcp-Param-Other: x", true},
	} {
		for _, meta := range []string{statelessMeta, strings.Replace(statelessMeta, `{`, `{"io.modelcontextprotocol/logLevel":"debug",`, 1)} {
			got := f.postMarked(t, "ann@reader", "marked", c.args, c.headers, meta)
			if rejected := got.status == http.StatusBadRequest && answerJSON(got).Get("error.code").Int() == -32020; rejected == c.ok || c.ok && !strings.Contains(got.body, `"resultType":"complete"`) {
				t.Errorf("%s %s with %q: %d %s, want accepted=%v", meta, c.args, c.headers, got.status, got.body, c.ok)
			}
		}
	}
}

// What has no form in a header is left to the check of the arguments. A client that does not see the marks may
// leave a header out, but not send another one.
func TestParamHeaders_Omitted(t *testing.T) {
	f := openMarked(t)
	if got := f.postMarked(t, "ann@reader", "marked", `{"region":["eu"]}`, "", statelessMeta); got.status != 200 || !strings.Contains(got.body, `"isError":true`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	toolbox := strings.Replace(statelessMeta, `/clientCapabilities":{}`, `/clientCapabilities":{"extensions":{"com.google.cloud/toolbox.v1":{}}}`, 1)
	if got := f.postMarked(t, "ann@reader", "marked", `{"region":"eu"}`, "", toolbox); got.status != 200 || strings.Contains(got.body, "isError") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := f.postMarked(t, "ann@reader", "marked", `{"region":"eu"}`, "Mcp-Param-Region: us", toolbox); got.status != http.StatusBadRequest {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// To a caller without the tool, a call with headers looks like one of a tool that does not exist.
func TestParamHeaders_ForeignToolStaysUnknown(t *testing.T) {
	f := openMarked(t)
	for _, headers := range []string{"", "Mcp-Param-Region: us"} {
		foreign := f.postMarked(t, "ann@other", "marked", `{"region":"eu"}`, headers, statelessMeta)
		none := f.postMarked(t, "ann@other", "absent", `{"region":"eu"}`, headers, statelessMeta)
		if foreign.status != none.status || strings.ReplaceAll(foreign.body, "marked", "absent") != none.body {
			t.Errorf("got %d %s, want %d %s", foreign.status, foreign.body, none.status, none.body)
		}
	}
}

// The arguments of a call are compared with its headers before their values are counted. So the comparison
// makes no copy of them.
func TestParamHeaders_ManyArguments(t *testing.T) {
	var many strings.Builder
	for i := range 1 << 17 {
		fmt.Fprintf(&many, `,"%d":1`, i)
	}
	args := `{"region":"eu"` + many.String() + `,"deep":{"on":true}}`
	for _, path := range [][]string{{"region"}, {"deep", "on"}, {"absent"}, {"7", "b"}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		mcpserver.ArgumentAt(args, path)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%q: %d bytes were allocated", path, n)
		}
	}
	if got := mcpserver.ArgumentAt(args, []string{"deep", "on"}); got.Raw != "true" {
		t.Errorf("got %s", got.Raw)
	}
}

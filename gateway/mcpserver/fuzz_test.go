package mcpserver

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"encoding/json"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// Simple requests are parsed as the SDK would parse them: same method, id, name
// and arguments.
func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},"_meta":{"progressToken":"p"}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}`, `{"jsonrpc":"2.0","id":"\u0061","method":"tools/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":-7,"reason":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s","arguments":null,"secureArguments":{"a":1},"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.google.cloud/toolbox.v1":{}}}}}}`,
		`{"jsonrpc":"2.0","id":1e2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"Method":"tools/list"}`, `[{}]`, `7`, `{"params":[]}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if strictjson.CheckKeys(body, nil) != nil {
			return
		}
		q := readRequest(body)
		if !q.simple {
			return
		}
		m, err := jsonrpc.DecodeMessage(body)
		r, ok := m.(*jsonrpc.Request)
		if err != nil || !ok || r.Method != q.method || r.IsCall() != (q.id != "") {
			t.Fatalf("%s: parsed as %+v, by the SDK as %+v, %v", body, q, m, err)
		}
		if id, _ := json.Marshal(r.ID.Raw()); q.id != "" && string(id) != q.id && json.Valid([]byte(q.id)) && !equalJSON(id, []byte(q.id)) {
			t.Fatalf("%s: id %s, by the SDK %s", body, q.id, id)
		}
		if q.method == methodCallTool {
			checkCall(t, q, r)
		}
	})
}

// equalJSON reports whether two JSON values are equal.
func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}

// checkCall checks that a tools/call was parsed as the SDK parses it.
func checkCall(t *testing.T, q *request, r *jsonrpc.Request) {
	var p sdk.CallToolParamsRaw
	if err := json.Unmarshal(r.Params, &p); err != nil {
		t.Fatalf("%s: %v", q.body, err)
	}
	if p.Name != q.name || string(p.Arguments) != q.args || p.RequestState != "" || len(p.InputResponses) > 0 {
		t.Fatalf("%s: parsed as %+v, by the SDK as %+v", q.body, q, p)
	}
	if version, _ := p.Meta[sdk.MetaKeyProtocolVersion].(string); version != q.version {
		t.Fatalf("%s: version %q, by the SDK %q", q.body, q.version, version)
	}
}

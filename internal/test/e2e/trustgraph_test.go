package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/external"
)

// trustgraphConfig is an organization whose callers in the role clerk may ask its agents.
const trustgraphConfig = `{kind: organization, name: mine, model: main}
---
{kind: model, name: main, type: script, file: agents.js}
---
{kind: role, name: clerk, toolGroups: [workspace, artifact], agent: {defaultGroups: [workspace]}, states: [analysis]}
---
{kind: role, name: boss, toolGroups: [workspace]}
---
kind: gateway
name: api
tokens:
  - {name: ann, role: clerk, sha256: %s}
`

const trustgraphScript = `role("clerk", function* (task) {
  switch (task.payload.text) {
  case "typed": return { n: 1 }
  case "fail": throw new Error("out of paper")
  case "tools": return tools.length > 0 ? "some" : "none"
  }
  return "answer to " + task.payload.text
})`

// TrustGraph's own client asks an agent over HTTP, blocking and with asyncio: with groups, a
// state, a history and a typed answer. It reads what is denied. Its WebSocket client and the
// requests of its platform, such as the list of flows, are answered as unknown paths.
func TestTrustGraph_Client(t *testing.T) {
	external.Skip(t, "TrustGraph's client")
	fx := newServeFixture(t, fmt.Sprintf(trustgraphConfig, digest("ann")))
	writeFile(t, fx.path("agents.js"), trustgraphScript)
	gateway, _ := fx.serve(t)
	o := runPython(t, "trustgraph", gateway, "token-of-ann")
	var got map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSpace(o.stdout)), &got); err != nil {
		t.Fatalf("status %d\n%s%s", o.status, o.stdout, o.stderr)
	}
	if failed, ok := got["failed"].(string); !ok || !strings.Contains(failed, "out of paper") {
		t.Errorf("a failed task: %v", got["failed"])
	}
	delete(got, "failed")
	want := map[string]any{
		"answer": "answer to one", "named": "answer to one", "async": "answer to one", "typed": map[string]any{"n": 1.0},
		"groups": "some", "state": "some", "none": "none",
		"role": "ProtocolException Status code 404", "group": "ProtocolException Status code 403",
		"token": "ProtocolException Status code 401", "workspace": "ProtocolException Status code 400",
		"flows":  "ProtocolException Status code 404",
		"socket": "InvalidStatus server rejected WebSocket connection: HTTP 401", // it sends its token in the first message
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

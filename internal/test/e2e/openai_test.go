package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/external"
)

// openaiConfig is an organization whose callers in the role clerk may ask its agents.
const openaiConfig = `{kind: organization, name: mine, model: main}
---
{kind: model, name: main, type: script, file: agents.js}
---
{kind: role, name: clerk, toolGroups: [workspace], agent: {}}
---
{kind: role, name: boss, toolGroups: [workspace]}
---
kind: gateway
name: api
tokens:
  - {name: ann, role: clerk, sha256: %s}
`

const openaiScript = `role("clerk", function* (task) {
  if (task.payload.text === "typed") return { n: tools.length > 0 ? 1 : 0 }
  yield say("I read.")
  return "answer to " + task.payload.text
})`

// The official client of the OpenAI API for Node lists roles as models, asks an agent, streams
// its answer, gets a typed one, and reads errors.
func TestOpenAI_NodeClient(t *testing.T) {
	nodeModule(t, "openai", "package.json")
	checkOpenAI(t, func(url string) outcome { return runScript(t, nil, "openai/client.mjs", url, "token-of-ann") })
}

// The Python client gets the same.
func TestOpenAI_PythonClient(t *testing.T) {
	external.Skip(t, "the Python client of the OpenAI API")
	checkOpenAI(t, func(url string) outcome { return runPython(t, "openai", url, "token-of-ann") })
}

// runPython runs client.py of a folder with the Python packages that are pinned there.
func runPython(t *testing.T, folder string, args ...string) outcome {
	t.Helper()
	return runCommand(t, pythonCommand(t, folder, args...), nil)
}

// pythonCommand returns client.py of a folder with the Python packages that are pinned there.
func pythonCommand(t *testing.T, folder string, args ...string) *exec.Cmd {
	t.Helper()
	python := absPath(t, folder, ".venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("the Python packages are not installed (%v): run make deps", err)
	}
	return exec.CommandContext(t.Context(), python, append([]string{absPath(t, folder, "client.py")}, args...)...)
}

// checkOpenAI compares what a client got.
func checkOpenAI(t *testing.T, run func(url string) outcome) {
	t.Helper()
	fx := newServeFixture(t, fmt.Sprintf(openaiConfig, digest("ann")))
	writeFile(t, fx.path("agents.js"), openaiScript)
	gateway, _ := fx.serve(t)
	o := run(gateway + "/v1")
	var got map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSpace(o.stdout)), &got); err != nil {
		t.Fatalf("status %d\n%s%s", o.status, o.stdout, o.stderr)
	}
	if usage, ok := got["usage"].(map[string]any); !ok || usage["total_tokens"] == nil {
		t.Errorf("usage %v", got["usage"])
	}
	delete(got, "usage")
	want := map[string]any{
		"models": []any{"clerk"}, "model": "clerk", "answer": "answer to one", "finish": "stop", "streamed": "I read.\n\nanswer to one", "typed": `{"n":1}`,
		"unknown": `404 role_not_found 404 there is no role "boss"`,
		"tools":   `400 invalid_arguments 400 field "tools" is not empty: the agent has the tools of its role, and calls them itself`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// requestScript lets root spawn an agent of each role, one after the other. Each agent sends
// a request, and root returns the results.
const requestScript = `
const brief = {objective: "o", constraints: [], inputs: "i", outputs: "o", completion_criteria: "c"};
role("root", function* (task) {
	const out = {};
	for (const name of %s) {
		const found = yield call("find_role_by_name", {name});
		yield call("spawn_agent_with_task", {roleId: found.id, taskBrief: brief, initialMessage: {task: name}});
		out[name] = (yield receive()).payload;
	}
	return out;
});
role("*", function* (task) {
	const got = yield call("http_request", {url: %q + "/" + task.payload.task});
	return got.error || got.body.artifactRef && (yield call("get_artifact", {ref: got.body.artifactRef})).content || got.body;
});
`

// The network policy of the configuration applies to the requests of agents.
func TestRun_AppliesNetworkPolicy(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/free" {
			_, _ = w.Write([]byte{0xff, 0xfe})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"path":"`+r.URL.Path+`"}`)
	}))
	defer s.Close()
	const roles = `kind: organization
name: o
model: m
---
{kind: model, name: m, type: script, file: m.js}
---
{kind: role, name: free, toolGroups: [network, artifact]}
---
{kind: role, name: bound, toolGroups: [network], hosts: {allow: ["127.0.0.1"]}}
---
{kind: role, name: elsewhere, toolGroups: [network], hosts: {allow: ["*.example.com"]}}
---
{kind: role, name: nowhere, toolGroups: [network], hosts: {allow: []}}
---
{kind: role, name: barred, toolGroups: [network], hosts: {deny: ["127.0.0.1"]}}
`
	for _, c := range []struct{ name, network, want string }{
		{"default policy", "", `{"barred":"only_https_allowed","bound":"only_https_allowed","elsewhere":"only_https_allowed","free":"only_https_allowed","nowhere":"only_https_allowed"}`},
		{"HTTP allowed", "allowHTTP: true", `{"barred":"host_blocked","bound":"address_blocked","elsewhere":"host_blocked","free":"address_blocked","nowhere":"host_blocked"}`},
		{"loopback allowed", "allowHTTP: true\nprivateAddresses: [127.0.0.0/8]", `{"barred":"host_blocked","bound":{"path":"/bound"},"elsewhere":"host_blocked","free":"//4=","nowhere":"host_blocked"}`},
		{"host denied to all roles", "allowHTTP: true\nprivateAddresses: [127.0.0.0/8]\nhosts: {deny: [\"127.0.0.1\"]}", `{"barred":"host_blocked","bound":"host_blocked","elsewhere":"host_blocked","free":"host_blocked","nowhere":"host_blocked"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			text := roles
			if c.network != "" {
				text += "---\nkind: network\nname: n\n" + c.network + "\n"
			}
			script := fmt.Sprintf(requestScript, `["free","bound","elsewhere","nowhere","barred"]`, s.URL)
			for name, content := range map[string]string{"org.yaml": text, "m.js": script} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]json.RawMessage{}
			if err := json.Unmarshal([]byte(mustRun(t, filepath.Join(dir, "data"), "run", "-f", filepath.Join(dir, "org.yaml"), "go")), &got); err != nil {
				t.Fatal(err)
			}
			sorted, err := json.Marshal(got)
			if err != nil || string(sorted) != c.want {
				t.Errorf("got %s, %v, want %s", sorted, err, c.want)
			}
			shown := mustRun(t, filepath.Join(dir, "data"), "role", "show", "elsewhere", "--json")
			if !strings.Contains(strings.Join(strings.Fields(shown), ""), `"hosts":{"allow":["*.example.com"]}`) {
				t.Errorf("role show --json without hosts: %s", shown)
			}
		})
	}
}

package mcpserver_test

import (
	"testing"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// versions are the protocol versions that the tests run with the SDK's client.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const testerTools = "advance count echo fail late say wait"

func TestToolsList_ReturnsToolsOfRole(t *testing.T) {
	f := openFixture(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			for path, want := range map[string]string{"/mcp": testerTools, "/roles/tester/mcp": testerTools, "/mcp/probe": testerTools} {
				if got := toolNames(t, f.connect(t, "ann@tester", path, version, nil)); got != want {
					t.Errorf("at %s: %s, want %s", path, got, want)
				}
			}
			if got, want := toolNames(t, f.connect(t, "operator", "/roles/clerk/mcp", version, nil)), f.groupTools("console", "workspace"); got != want {
				t.Errorf("the operator at clerk: %s, want %s", got, want)
			}
			if got, want := toolNames(t, f.connect(t, "ann@clerk", "/mcp/console", version, nil)), f.groupTools("console"); got != want {
				t.Errorf("clerk at console: %s, want %s", got, want)
			}
		})
	}
}

func TestToolsList_SetsAnnotations(t *testing.T) {
	f := openFixture(t)
	list, err := f.connect(t, "ann@tester", "/mcp", "", nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][3]bool{"echo": {true, true, false}, "say": {false, true, false}, "fail": {false, false, true}} // read only, idempotent, destructive
	for _, tool := range list.Tools {
		a := tool.Annotations
		if w, ok := want[tool.Name]; ok && w != [3]bool{a.ReadOnlyHint, a.IdempotentHint, *a.DestructiveHint} {
			t.Errorf("%s: %+v, want %v", tool.Name, a, w)
		}
	}
	if list.CacheScope != "private" {
		t.Errorf("cache scope %q, want private", list.CacheScope)
	}
}

func TestNew_RejectsInvalidConfig(t *testing.T) {
	f := openFixture(t)
	for _, config := range []mcpserver.Config{{}, {Runtime: f.rt, Sessions: -1}, {Runtime: f.rt, MaxCalls: -1}, {Runtime: f.rt, SessionTimeout: -1}} {
		if _, err := mcpserver.New(config); err == nil {
			t.Errorf("%+v is accepted", config)
		}
	}
}

package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// blockingModule is a module whose tool blocks until release is closed.
type blockingModule struct {
	name    string
	Size    int `json:"size"`
	release chan struct{}
	started chan struct{}
}

// Name implements modules.Module.
func (m *blockingModule) Name() string { return m.name }

// ToolGroups implements modules.Module.
func (m *blockingModule) ToolGroups() []toolgroups.Group {
	t, err := tool.New(m.name, "", func(context.Context, struct{}) (string, error) {
		m.started <- struct{}{}
		<-m.release
		return "done", nil
	}, nil)
	if err != nil {
		panic(err)
	}
	return []toolgroups.Group{{ID: toolgroups.GroupID(m.name), Tools: []tool.Tool{t}}}
}

// A call that does not return delays neither the revocation of roles nor of tokens,
// whether its module is replaced or unloaded.
func TestReconfigure_RevokesDuringCalls(t *testing.T) {
	const token = "rc_0123456789012345678901234567890123456789012"
	sum := sha256.Sum256([]byte(token))
	gatewayDoc := "{kind: gateway, name: http, tokens: [{name: ci, sha256: " + hex.EncodeToString(sum[:]) + ", role: reader}]}"
	for name, next := range map[string][]string{
		"module replaced": {"{kind: role, name: reader, toolGroups: [v]}", "{kind: module, name: v, type: blocking, settings: {size: 2}}"},
		"module unloaded": {"{kind: role, name: reader, toolGroups: []}"},
	} {
		t.Run(name, func(t *testing.T) {
			release, started := make(chan struct{}), make(chan struct{}, 1)
			f := newFixture(t, modules.ModuleKind{Name: "blocking", New: func(c modules.Config) (modules.Module, error) {
				m := &blockingModule{name: c.Name, release: release, started: started}
				return m, c.DecodeSettings(m)
			}})
			if err := f.ApplyConfig(t.Context(), f.read("{kind: role, name: reader, toolGroups: [v, console]}", "{kind: module, name: v, type: blocking}", gatewayDoc), nil); err != nil {
				t.Fatal(err)
			}
			role, _ := f.Runtime.Org().RoleByName("reader")
			ended := make(chan error, 1)
			go func() {
				_, err := f.Runtime.InvokeTool(context.Background(), identity.ByCaller("ann", role.ID), "v", nil)
				ended <- err
			}()
			<-started
			changed := make(chan error, 1)
			go func() {
				_, err := f.reconfigure(t.Context(), f.read(next...))
				changed <- err
			}()
			select {
			case err := <-changed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the change waits for a call")
			}
			if got := f.allowedTools("console_print"); got != "" {
				t.Errorf("the reader may still call %q", got)
			}
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			if p, err := f.Tokens.Authenticate(r); err == nil {
				t.Errorf("the removed token authenticates %v", p)
			}
			close(release)
			if err := <-ended; err != nil {
				t.Error("the call in progress:", err)
			}
		})
	}
}

// If a replacement fails to start, a role that gains the module's groups with the change
// does not get the old module's tools.
func TestReconfigure_FailedModuleGrantsNoOldTools(t *testing.T) {
	broken := "{kind: module, name: a, type: fake, settings: {fail: true, tool: a2}}"
	for name, c := range map[string]struct{ role, allowed string }{
		"role gains the group":     {"{kind: role, name: reader, toolGroups: [a, b]}", "console_print"},
		"role gains all groups":    {"{kind: role, name: reader, toolGroups: ['*']}", "console_print"},
		"role may grant the group": {"{kind: role, name: reader, toolGroups: [console], grant: [a]}", "console_print"},
		"new role":                 {"{kind: role, name: reader, toolGroups: [b]}\n---\n{kind: role, name: second, toolGroups: [a]}", "console_print"},
		"no role gains it":         {"{kind: role, name: reader, toolGroups: [b]}", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if err := f.ApplyConfig(t.Context(), f.read("{kind: role, name: reader, toolGroups: [console]}", moduleA, moduleB), nil); err != nil {
				t.Fatal(err)
			}
			summary, err := f.reconfigure(t.Context(), f.read(c.role, broken, moduleB))
			if got := f.allowedTools("a", "a2", "b", "console_print", "list_roles"); got != c.allowed {
				t.Errorf("the reader may call %q, want %q; summary %q, %v", got, c.allowed, summary, err)
			}
		})
	}
}

// If a replacement starts and its tool name is taken, the change is rejected as a whole.
func TestReconfigure_RejectsModuleWithTakenTool(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read("{kind: role, name: reader, toolGroups: [console]}", moduleA, moduleB), nil); err != nil {
		t.Fatal(err)
	}
	taken := "{kind: module, name: b, type: fake, settings: {tool: a}}"
	summary, err := f.reconfigure(t.Context(), f.read("{kind: role, name: reader, toolGroups: [b]}", moduleA, taken))
	if err == nil || summary != nil || !strings.Contains(err.Error(), "org.yaml:") {
		t.Errorf("summary %q, %v", summary, err)
	}
	if got := f.allowedTools("a", "b", "console_print"); got != "console_print" {
		t.Errorf("the reader may call %q", got)
	}
	if _, err := f.reconfigure(t.Context(), f.read("{kind: role, name: reader, toolGroups: [b, console]}", moduleA, moduleB)); err != nil || f.allowedTools("a", "b") != "b" {
		t.Errorf("after the fix: %v, the reader may call %q", err, f.allowedTools("a", "b"))
	}
}

// slowModule is a module whose first refresh blocks until release is closed.
type slowModule struct {
	name       string
	changed    func()
	asked      int
	refreshing chan struct{}
	release    chan struct{}
}

// Name implements modules.Module.
func (m *slowModule) Name() string { return m.name }

// ToolGroups implements modules.Module.
func (m *slowModule) ToolGroups() []toolgroups.Group {
	if m.asked++; m.asked == 2 {
		close(m.refreshing)
		<-m.release
	}
	t, err := tool.New(m.name, "", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
	if err != nil {
		panic(err)
	}
	return []toolgroups.Group{{ID: toolgroups.GroupID(m.name), Tools: []tool.Tool{t}}}
}

// A module that is being refreshed while the configuration removes it is unloaded all the
// same, and a role with all groups loses its tools.
func TestReconfigure_UnloadsModuleDuringRefresh(t *testing.T) {
	made := &slowModule{refreshing: make(chan struct{}), release: make(chan struct{})}
	f := newFixture(t, modules.ModuleKind{Name: "slow", New: func(c modules.Config) (modules.Module, error) {
		made.name, made.changed = c.Name, c.Host.Changed
		return made, nil
	}})
	all := "{kind: role, name: reader, toolGroups: ['*']}"
	if err := f.ApplyConfig(t.Context(), f.read(all, "{kind: module, name: s, type: slow}"), nil); err != nil {
		t.Fatal(err)
	}
	made.changed()
	<-made.refreshing
	time.AfterFunc(2*drainTimeout, func() { close(made.release) })
	summary, err := f.reconfigure(t.Context(), f.read(all))
	if got := f.allowedTools("s"); got != "" || err != nil {
		t.Errorf("the reader may call %q; summary %q, %v", got, summary, err)
	}
}

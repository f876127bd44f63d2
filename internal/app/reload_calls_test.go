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

// valve is a module whose tool returns when it is let go, and not before.
type valve struct {
	name string
	Size int `json:"size"`
	open chan struct{}
	in   chan struct{}
}

// Name implements modules.Module.
func (v *valve) Name() string { return v.name }

// Groups implements modules.Module.
func (v *valve) Groups() []toolgroups.Group {
	t, err := tool.New(v.name, "", func(context.Context, struct{}) (string, error) {
		v.in <- struct{}{}
		<-v.open
		return "let through", nil
	}, nil)
	if err != nil {
		panic(err)
	}
	return []toolgroups.Group{{ID: toolgroups.GroupID(v.name), Tools: []tool.Tool{t}}}
}

// A call that does not return keeps neither a revocation of roles nor of tokens
// from coming in force, whether its module is replaced or unloaded.
func TestACallThatGoesOnHindersNoRevocation(t *testing.T) {
	const token = "rc_0123456789012345678901234567890123456789012"
	sum := sha256.Sum256([]byte(token))
	door := "{kind: gateway, name: door, tokens: [{name: ci, sha256: " + hex.EncodeToString(sum[:]) + ", role: reader}]}"
	for why, next := range map[string][]string{
		"its module is replaced": {"{kind: role, name: reader, toolGroups: [v]}", "{kind: module, name: v, type: valve, settings: {size: 2}}"},
		"its module is unloaded": {"{kind: role, name: reader, toolGroups: []}"},
	} {
		t.Run(why, func(t *testing.T) {
			open, in := make(chan struct{}), make(chan struct{}, 1)
			w := openWorkshop(t, modules.Kind{Name: "valve", New: func(c modules.Config) (modules.Module, error) {
				v := &valve{name: c.Name, open: open, in: in}
				return v, c.Decode(v)
			}})
			if err := w.Configure(t.Context(), w.read("{kind: role, name: reader, toolGroups: [v, console]}", "{kind: module, name: v, type: valve}", door), nil); err != nil {
				t.Fatal(err)
			}
			role, _ := w.Runtime.Org().RoleNamed("reader")
			ended := make(chan error, 1)
			go func() {
				_, err := w.Runtime.Invoke(context.Background(), identity.ByCaller("ann", role.ID), "v", nil)
				ended <- err
			}()
			<-in
			changed := make(chan error, 1)
			go func() {
				_, err := w.reconfigure(t.Context(), w.read(next...))
				changed <- err
			}()
			select {
			case err := <-changed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the new configuration waits for a call")
			}
			if got := w.may("console_print"); got != "" {
				t.Errorf("the reader may still call %q", got)
			}
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			if p, err := w.Tokens.Authenticate(r); err == nil {
				t.Errorf("the token that is gone stands for %v", p)
			}
			close(open)
			if err := <-ended; err != nil {
				t.Error("the call that had begun:", err)
			}
		})
	}
}

// A module that does not come up gives nobody the old one in its stead: a role
// that would get its groups by the new configuration gets neither.
func TestAModuleThatDoesNotComeUpGivesNobodyTheOldOne(t *testing.T) {
	broken := "{kind: module, name: a, type: lamp, settings: {fail: true, tool: a2}}"
	for why, c := range map[string]struct{ role, may string }{
		"a role that gets the group":  {"{kind: role, name: reader, toolGroups: [a, b]}", "console_print"},
		"a role that gets everything": {"{kind: role, name: reader, toolGroups: ['*']}", "console_print"},
		"a role that may grant it":    {"{kind: role, name: reader, toolGroups: [console], grant: [a]}", "console_print"},
		"a role that is new":          {"{kind: role, name: reader, toolGroups: [b]}\n---\n{kind: role, name: second, toolGroups: [a]}", "console_print"},
		"nobody gets it":              {"{kind: role, name: reader, toolGroups: [b]}", "b"},
	} {
		t.Run(why, func(t *testing.T) {
			w := openWorkshop(t)
			if err := w.Configure(t.Context(), w.read("{kind: role, name: reader, toolGroups: [console]}", lampA, lampB), nil); err != nil {
				t.Fatal(err)
			}
			told, err := w.reconfigure(t.Context(), w.read(c.role, broken, lampB))
			if got := w.may("a", "a2", "b", "console_print", "list_roles"); got != c.may {
				t.Errorf("the reader may call %q, want %q; told %q, %v", got, c.may, told, err)
			}
		})
	}
}

// The same of a module that comes up and whose tool another has: what it would
// replace is unloaded.
func TestAModuleThatCannotBeSwappedGivesNobodyTheOldOne(t *testing.T) {
	w := openWorkshop(t)
	if err := w.Configure(t.Context(), w.read("{kind: role, name: reader, toolGroups: [console]}", lampA, lampB), nil); err != nil {
		t.Fatal(err)
	}
	taken := "{kind: module, name: b, type: lamp, settings: {tool: a}}"
	told, err := w.reconfigure(t.Context(), w.read("{kind: role, name: reader, toolGroups: [b]}", lampA, taken))
	if err == nil || told == nil || !strings.Contains(err.Error(), "is unloaded") {
		t.Errorf("told %q, %v", told, err)
	}
	if got := w.may("a", "b", "console_print"); got != "" {
		t.Errorf("the reader may call %q", got)
	}
	if _, err := w.reconfigure(t.Context(), w.read("{kind: role, name: reader, toolGroups: [b, console]}", lampA, lampB)); err != nil || w.may("a", "b") != "b" {
		t.Errorf("mended: %v, the reader may call %q", err, w.may("a", "b"))
	}
}

// slow is a module whose groups, asked for again, take their time.
type slow struct {
	name    string
	changed func()
	asked   int
	begun   chan struct{}
	free    chan struct{}
}

// Name implements modules.Module.
func (s *slow) Name() string { return s.name }

// Groups implements modules.Module.
func (s *slow) Groups() []toolgroups.Group {
	if s.asked++; s.asked == 2 {
		close(s.begun)
		<-s.free
	}
	t, err := tool.New(s.name, "", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
	if err != nil {
		panic(err)
	}
	return []toolgroups.Group{{ID: toolgroups.GroupID(s.name), Tools: []tool.Tool{t}}}
}

// A module that is asked for its groups while the configuration drops it is
// unloaded all the same: a role of all groups loses its tools.
func TestAModuleThatIsRefreshedIsUnloaded(t *testing.T) {
	made := &slow{begun: make(chan struct{}), free: make(chan struct{})}
	w := openWorkshop(t, modules.Kind{Name: "slow", New: func(c modules.Config) (modules.Module, error) {
		made.name, made.changed = c.Name, c.Host.Changed
		return made, nil
	}})
	all := "{kind: role, name: reader, toolGroups: ['*']}"
	if err := w.Configure(t.Context(), w.read(all, "{kind: module, name: s, type: slow}"), nil); err != nil {
		t.Fatal(err)
	}
	made.changed()
	<-made.begun
	time.AfterFunc(2*drainTimeout, func() { close(made.free) })
	told, err := w.reconfigure(t.Context(), w.read(all))
	if got := w.may("s"); got != "" || err != nil {
		t.Errorf("the reader may call %q; told %q, %v", got, told, err)
	}
}

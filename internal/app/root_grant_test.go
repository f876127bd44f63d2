package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// rootDoc is an organization in which root may grant a list of groups.
func rootDoc(list string) string { return "kind: organization\nname: o\ngrant: " + list }

// The configuration says what root may grant. A change applies at once, to roles that root
// has created already, and without the field root may grant everything.
func TestRootGrant_FollowsConfiguration(t *testing.T) {
	f := newFixture(t)
	rt := f.Runtime
	apply := func(docs ...string) {
		t.Helper()
		if _, err := f.reconfigure(t.Context(), f.read(append(docs, moduleA, moduleB)...)); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	prepared, err := org.PrepareTask(org.TaskSpec{Text: "go", Caller: identity.ByOperator("op")})
	if err != nil {
		t.Fatal(err)
	}
	_, root, _, err := rt.Org().StartTask("t", 0, prepared) // no agent runs it
	if err != nil {
		t.Fatal(err)
	}
	by, use := identity.ByAgent(root.ID), toolgroups.SetOf("a", "b")
	create := func(name string) (identity.RoleID, errcode.Code) {
		role, _, err := rt.Org().CreateRole(by, identity.RoleID(name), org.RoleSpec{Name: name, Use: &use})
		return role.ID, errcode.CodeOf(err)
	}
	made, code := create("made")
	if code != "" {
		t.Fatal(code)
	}
	for i, step := range []struct{ doc, tools string }{
		{rootDoc("[a]"), "a"}, {rootDoc("[]"), ""}, {rootDoc("all"), "a b"}, {rootDoc("[b]"), "b"}, {moduleC, "a b"},
	} {
		apply(step.doc)
		view := rt.Org().RoleView(made, toolgroups.AllGroups())
		if got := strings.Join(view.ToolNames(), " "); got != step.tools {
			t.Errorf("%s: a role of root may call %q, want %q", step.doc, got, step.tools)
		}
		if _, code := create(fmt.Sprint("new ", i)); (code == "") != (step.tools == "a b") {
			t.Errorf("%s: create_role is %q", step.doc, code)
		}
	}
}

// moduleC is a document without influence.
const moduleC = "{kind: module, name: c, type: fake}"

// A group that does not exist is an error at its position, with a suggestion.
func TestRootGrant_RejectsUnknownGroup(t *testing.T) {
	f := newFixture(t)
	err := f.ApplyConfig(t.Context(), f.read(rootDoc("[console, worksapce]")), nil)
	if want := `org.yaml:3:18: grant: unknown tool group worksapce (did you mean "workspace"?)`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if !f.Runtime.Org().RootGrant().IsAll() {
		t.Error("a rejected configuration has an effect")
	}
}

// If a replacement of a module fails to start, root does not gain the old module's groups.
func TestRootGrant_FailedModuleGrantsNoOldTools(t *testing.T) {
	broken := "{kind: module, name: a, type: fake, settings: {fail: true, tool: a2}}"
	for name, c := range map[string]struct {
		grant string
		ok    bool
	}{"gains the group": {"[a, b]", false}, "gains its read part": {"[a:read, b]", false}, "gains all groups": {"all", false}, "loses a group": {"[]", true}, "same": {"[b]", true}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if err := f.ApplyConfig(t.Context(), f.read(rootDoc("[b]"), moduleA, moduleB), nil); err != nil {
				t.Fatal(err)
			}
			_, err := f.reconfigure(t.Context(), f.read(rootDoc(c.grant), broken, moduleB))
			if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "org.yaml:") {
				t.Errorf("got %v, want accepted %v", err, c.ok)
			}
		})
	}
}

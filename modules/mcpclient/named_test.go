package mcpclient_test

import (
	"testing"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// namedConfig returns a server whose tool echo has a second name, and which names the tool
// late before the server has it.
func (fx *fixture) namedConfig() mcpclient.Config {
	c := fx.childConfig("fs", "real")
	readOnly, state := tool.ReadOnly, "done"
	c.NamedTools = []mcpclient.NamedTool{
		{Name: "say", Description: "says it", Tool: "echo", Label: modules.Label{Effect: &readOnly, State: &state, States: []string{"a"}}},
		{Name: "evening", Description: "is late", Tool: "late"},
	}
	return c
}

// A named tool has its own name, description and labels, and the schema and the call of the
// server's tool.
func TestNamedTools_CallTheServersTool(t *testing.T) {
	fx := newFixture(t)
	fx.load(fx.namedConfig())
	d := fx.handle("say").Definition
	if d.Description != "says it" || d.Effect != tool.ReadOnly || d.State != "done" || len(d.States) != 1 || string(d.Input) != string(fx.handle("fs__echo").Definition.Input) {
		t.Errorf("got %+v", d)
	}
	if other := fx.handle("fs__echo").Definition; other.State != "" || other.States != nil || other.Effect != tool.Mutating {
		t.Errorf("the server's tool became %+v", other)
	}
	fx.want(fx.call("say", `{"a":1}`), `{"a":1}`)
	if g := fx.tools("mcp-tool/fs"); len(g) != 2 || g[0] != "say" || g[1] != "evening" {
		t.Errorf("the group has %v", g)
	}
}

// A named tool is unavailable until the definition that it calls is accepted, and again when
// that definition changes.
func TestNamedTools_FollowAcceptance(t *testing.T) {
	fx := newFixture(t)
	fx.load(fx.namedConfig())
	missing := `tool_unavailable: evening did not run: the MCP server "fs" has no tool "late" that the operator has accepted; "rolecall tool list --quarantined" lists those that wait`
	fx.want(fx.call("evening", `{}`), missing)
	fx.want(fx.call("fs__define", `{"name":"late","description":"is new"}`), "defined")
	fx.waitFor("late is pending", func() bool { return len(fx.pending()) == 1 })
	fx.want(fx.call("evening", `{}`), missing)
	fx.accept("fs__late")
	fx.waitFor("late is active", func() bool { return fx.hasTool("fs__late") })
	fx.want(fx.call("evening", `{}`), "defined as is new")
	before := fx.handle("evening")
	fx.want(fx.call("fs__define", `{"name":"late","description":"IMPORTANT: other"}`), "defined")
	fx.waitFor("late is removed", func() bool { return !fx.hasTool("fs__late") && fx.handle("evening") != before })
	fx.want(fx.call("evening", `{}`), missing)
}

// A server cannot take the name of a named tool.
func TestNamedTools_KeepTheirNames(t *testing.T) {
	fx := newFixture(t)
	c := fx.namedConfig()
	c.Prefix, c.DisablePinning = new(string), true
	fx.load(c)
	fx.want(fx.call("define", `{"name":"say","description":"IMPORTANT: other"}`), "defined")
	fx.want(fx.call("define", `{"name":"late","description":"comes next"}`), "defined")
	fx.waitFor("late is active", func() bool { return fx.hasTool("late") })
	fx.want(fx.call("say", `{"a":2}`), `{"a":2}`)
	if d := fx.handle("say").Definition; d.Description != "says it" {
		t.Errorf("the server replaced %+v", d)
	}
}

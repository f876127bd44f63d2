package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// failing is a tool that always fails with an error.
func failing(name string, err error) tool.Tool {
	return &fakeTool{definition: definition(name, tool.ReadOnly), run: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, err
	}}
}

// answering is a tool that always returns a result.
func answering(name string, r tool.Result) tool.Tool {
	return &fakeTool{definition: definition(name, tool.ReadOnly), run: func(context.Context, tool.Call) (tool.Result, error) { return r, nil }}
}

// newFallbackFixture returns a gate with the groups db, spare and draft of ann, and hidden.
func newFallbackFixture(t *testing.T) *fixture {
	f := newFixture(t)
	down := errcode.New(errcode.ToolUnavailable, "the database is down").With("source", "main")
	group := toolgroups.Group{
		ID: "db", Fallback: []toolgroups.GroupID{"hidden", "spare", "draft", "none"},
		Tools: []tool.Tool{failing("query", down), failing("broken", errcode.New(errcode.ToolExecutionFailed, "it broke")),
			answering("told", tool.Result{Text: "no", Structured: []byte(`{"error":"tool_unavailable","message":"told so","n":9007199254740993}`), IsError: true}),
			answering("odd", tool.Result{Structured: []byte(`{"error":"tool_unavailable"}`), IsError: true})},
	}
	if _, err := grouptest.RegisterGroup(f.groups, "test", group); err != nil {
		t.Fatal(err)
	}
	later := definition("edit", tool.ReadOnly)
	later.States = []string{"draft"}
	f.register("hidden", &fakeTool{definition: definition("secret", tool.ReadOnly), run: mustNotRun(t)})
	f.register("spare", &fakeTool{definition: definition("search", tool.ReadOnly), run: mustNotRun(t)})
	f.register("draft", &fakeTool{definition: later, run: mustNotRun(t)})
	f.grant("db", "spare", "draft")
	return f
}

// The failure of an unavailable tool names the tools that its caller may call instead, in its
// workflow state, and no other tool.
func TestFallback_NamesToolsOfCaller(t *testing.T) {
	f := newFallbackFixture(t)
	check := func(name, want string, names ...string) {
		t.Helper()
		got := f.call(name, `{}`).Result
		doc := gjson.ParseBytes(got.Structured)
		var list []string
		for _, one := range doc.Get("fallback").Array() {
			list = append(list, one.Str)
		}
		if doc.Get("message").Str != want || strings.Join(list, " ") != strings.Join(names, " ") || !got.IsError {
			t.Errorf("%s: got %s", name, got.Structured)
		}
	}
	check("query", "the database is down; these tools can be called instead: search", "search")
	check("broken", "it broke")
	check("told", "told so; these tools can be called instead: search", "search")
	if got := f.call("told", `{}`).Result; got.Text != "no; these tools can be called instead: search" || gjson.GetBytes(got.Structured, "n").Raw != "9007199254740993" {
		t.Errorf("told: %q %s", got.Text, got.Structured)
	}
	if got := f.call("odd", `{}`).Result; string(got.Structured) != `{"error":"tool_unavailable"}` {
		t.Errorf("odd: %s", got.Structured)
	}
	if doc := f.call("query", `{}`).Result.Structured; gjson.GetBytes(doc, "source").Str != "main" || gjson.GetBytes(doc, "error").Str != "tool_unavailable" {
		t.Errorf("the details are lost: %s", doc)
	}
	f.directory.setState("draft")
	check("query", "the database is down; these tools can be called instead: search, edit", "search", "edit")
	f.grant("db")
	check("query", "the database is down")
}

// What a call names is what its caller may call when it has failed: a permission that was
// revoked while the tool ran is not named.
func TestFallback_AfterRevocation(t *testing.T) {
	f := newFallbackFixture(t)
	slow := &fakeTool{definition: definition("slow", tool.ReadOnly), run: func(context.Context, tool.Call) (tool.Result, error) {
		f.grant("slow")
		return tool.Result{}, errcode.New(errcode.ToolUnavailable, "gone")
	}}
	if _, err := grouptest.RegisterGroup(f.groups, "test", toolgroups.Group{ID: "slow", Tools: []tool.Tool{slow}, Fallback: []toolgroups.GroupID{"spare"}}); err != nil {
		t.Fatal(err)
	}
	f.grant("slow", "spare")
	if got := f.call("slow", `{}`).Result; gjson.GetBytes(got.Structured, "message").Str != "gone" {
		t.Errorf("got %s", got.Structured)
	}
}

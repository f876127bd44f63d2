package gate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// message returns the message of a denied call of ann.
func (f *fixture) message(name, args string) string {
	f.t.Helper()
	return errcode.Message(f.call(name, args).Err)
}

// A denial tells an agent what it can do instead.
func TestAdvice_NamesToolsOfAgent(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("read_file", tool.ReadOnly)}, &fakeTool{definition: definition("write_file", tool.Mutating)})
	for name, want := range map[string]string{
		"write_fil": `there is no tool write_fil; did you mean "write_file"? Your tools: read_file, write_file.`,
		"summarize": "there is no tool summarize. Your tools: read_file, write_file.",
		"theirs":    "tool theirs is not available to this role. It cannot be granted during this task: work without it, or say in your answer what you could not do.",
	} {
		if got := f.message(name, `{}`); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	f.grant()
	if got, want := f.message("write_fil", `{}`), "there is no tool write_fil. You have no tools now: answer in words."; got != want {
		t.Errorf("without tools: got %q, want %q", got, want)
	}
}

func TestAdvice_LeaderHires(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("spawn_agent_with_task", tool.Mutating), run: mustNotRun(t)})
	if got := f.message("theirs", `{}`); !strings.Contains(got, "hire an agent whose role has it") {
		t.Errorf("got %q", got)
	}
}

func TestAdvice_ListsFewTools(t *testing.T) {
	var tools []tool.Tool
	for i := range 40 {
		tools = append(tools, &fakeTool{definition: definition(fmt.Sprintf("t%d", i), tool.ReadOnly)})
	}
	f := newFixture(t, tools...)
	if got := f.message("nothing_like_that", `{}`); !strings.HasSuffix(got, ", t18, t19 and 20 more.") {
		t.Errorf("got %q", got)
	}
}

// A denial names no tool that the agent is not shown: of other groups, of another workflow
// state, or if it is tool-gated or suspended.
func TestAdvice_NamesNoHiddenTool(t *testing.T) {
	late := definition("their_late", tool.ReadOnly)
	late.States = []string{"review"}
	f := newFixture(t, &fakeTool{definition: definition("mine", tool.ReadOnly)}, &fakeTool{definition: late})
	for _, name := range []string{"their", "thiers", "their_lat", "functions.their", "functions.theirs"} {
		if got := strings.ReplaceAll(f.message(name, `{}`), "there is no tool "+name, ""); strings.Contains(got, "their") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	gated := newGatedFixture(t)
	if got := gated.message("min", `{}`); strings.Contains(got, "mine") {
		t.Errorf("tool-gated: got %q", got)
	}
	view := f.groups.CurrentSnapshot().Compile(toolgroups.PinnedSet{})
	view.SetSuspended("role clerk is suspended")
	f.ref.PublishView(view)
	if got, want := f.message("mine", `{}`), "tool mine is not available: role clerk is suspended"; got != want {
		t.Errorf("suspended: got %q, want %q", got, want)
	}
}

// Callers from outside get the reason alone.
func TestAdvice_IsForAgents(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("mine", tool.ReadOnly)})
	user := identity.ByCaller("u", "r")
	f.directory.refs[user] = f.ref
	for name, want := range map[string]string{
		"min":            "there is no tool min",
		"theirs":         "tool theirs is not available to this role",
		"functions.mine": "there is no tool functions.mine",
	} {
		list, err := f.Call(t.Context(), user, []gate.CallRequest{request(name, `{}`)}, &fakeRecorder{})
		if err != nil {
			t.Fatal(err)
		}
		if got := errcode.Message(list[0].Err); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Malformed arguments are shown where they are wrong, next to some that are right.
func TestCall_ExplainsMalformedArguments(t *testing.T) {
	d := definition("a", tool.ReadOnly)
	d.Input = json.RawMessage(`{"type":"object","properties":{"secret":{"type":"string"},"path":{"type":"string"}},"required":["path"]}`)
	d.Shown = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	f := newFixture(t, &fakeTool{definition: d, run: mustNotRun(t)})
	tests := []struct{ name, tool, args, want string }{
		{"single quotes", "a", `"{'path': 1}"`, `arguments of a are malformed or ambiguous JSON: expected a key at byte 1 in {'path': 1}; send one JSON object with double quotes, such as {"path":"…"}`},
		{"not quoted", "a", `{'path'`, `arguments of a are malformed or ambiguous JSON: expected a key at byte 1 in {'path'; send one JSON object with double quotes, such as {"path":"…"}`},
		{"long", "a", `{"path":"` + strings.Repeat("x", 100) + `" "` + strings.Repeat("y", 100), `expected ',' or '}' at byte 111 in …xxxxxxxxxxxxxxxxxxxxxx" "yyyyyyyyyyyyyyyyyyyyyyy…; send`},
		{"denied tool", "theirs", `{'path': 1}`, `arguments of theirs are malformed or ambiguous JSON: expected a key at byte 1 in {'path': 1}; send one JSON object with double quotes, such as {"name":"…"}`},
		{"control characters", "a", "{\x00\x1b", "expected a key at byte 1 in {��;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := f.message(tt.tool, tt.args); !strings.Contains(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	r := request("a", `"{\"path\": \"x"`)
	r.Cut = 256
	if got, want := errcode.Message(f.calls(&fakeRecorder{}, r)[0].Err), "your answer was cut off at its limit of 256 tokens, in the middle of this call of a; make a shorter call, or several"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The arguments of a caller from outside may hold credentials, and an error is recorded.
func TestCall_RepeatsNoArgumentsOfCallers(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("a", tool.ReadOnly), run: mustNotRun(t)})
	user := identity.ByCaller("u", "r")
	f.directory.refs[user] = f.ref
	list, err := f.Call(t.Context(), user, []gate.CallRequest{request("a", `{'password': 'hunter2'}`)}, &fakeRecorder{})
	if err != nil {
		t.Fatal(err)
	}
	if got := errcode.Message(list[0].Err); strings.Contains(got, "password") || !strings.Contains(got, "expected a key at byte 1; send") {
		t.Errorf("got %q", got)
	}
}

// An unknown argument is answered with the known ones, as far as models are shown them.
func TestCall_ListsKnownArguments(t *testing.T) {
	d := definition("a", tool.ReadOnly)
	d.Input = json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string"},"path":{"type":"string"},"hidden":{"type":"string"}},"additionalProperties":false}`)
	d.Shown = json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string"},"path":{"type":"string"}}}`)
	f := newFixture(t, &fakeTool{definition: d, run: mustNotRun(t)})
	if got, want := f.message("a", `{"pth":"x"}`), "unknown property pth, known are zone, path"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package modules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// fakeModule is a module whose methods are functions. It records the calls of its
// methods.
type fakeModule struct {
	name      func() string
	provision func(context.Context) error
	validate  func() error
	groups    func() []toolgroups.Group
	close     func() error

	mu    sync.Mutex
	calls []string
}

// newFakeModule returns a module with these groups whose steps succeed.
func newFakeModule(name string, groups ...toolgroups.Group) *fakeModule {
	return &fakeModule{
		name:      func() string { return name },
		provision: func(context.Context) error { return nil },
		validate:  func() error { return nil },
		groups:    func() []toolgroups.Group { return groups },
		close:     func() error { return nil },
	}
}

func (f *fakeModule) record(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, method)
}

// recorded returns the names of the called methods, in order.
func (f *fakeModule) recorded() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.calls, " ")
}

func (f *fakeModule) Name() string { f.record("name"); return f.name() }
func (f *fakeModule) Provision(ctx context.Context) error {
	f.record("provision")
	return f.provision(ctx)
}
func (f *fakeModule) Validate() error                { f.record("validate"); return f.validate() }
func (f *fakeModule) ToolGroups() []toolgroups.Group { f.record("groups"); return f.groups() }
func (f *fakeModule) Close() error                   { f.record("close"); return f.close() }

// plainModule implements Module only.
type plainModule struct{ name string }

func (p plainModule) Name() string                   { return p.name }
func (p plainModule) ToolGroups() []toolgroups.Group { return nil }

// toolFunc is a tool without arguments that calls a function.
type toolFunc struct {
	name string
	call func(context.Context) (tool.Result, error)
}

func (t toolFunc) Definition() tool.Definition {
	return tool.Definition{Name: t.name, Input: json.RawMessage(`{"type":"object"}`)}
}

func (t toolFunc) Call(ctx context.Context, _ tool.Call) (tool.Result, error) { return t.call(ctx) }

// textTool returns a tool that returns text.
func textTool(name, text string) tool.Tool {
	return toolFunc{name, func(context.Context) (tool.Result, error) { return tool.Result{Text: text}, nil }}
}

// blockingTool returns a tool that returns text once release is closed.
func blockingTool(name, text string, release <-chan struct{}) tool.Tool {
	return toolFunc{name, func(context.Context) (tool.Result, error) {
		<-release
		return tool.Result{Text: text}, nil
	}}
}

func group(id toolgroups.GroupID, tools ...tool.Tool) toolgroups.Group {
	return toolgroups.Group{ID: id, Description: "of a test", Tools: tools}
}

// fixture is a registry, which has groups of two other owners, and a loader.
type fixture struct {
	*testing.T
	manager *toolgroups.Manager
	loader  *modules.Loader
}

func newFixture(t *testing.T) *fixture {
	fx := &fixture{T: t, manager: toolgroups.NewManager(toolgroups.ReservedIDs()...)}
	fx.register(toolgroups.Builtin, group(toolgroups.Workspace, textTool("read_file", "builtin")))
	fx.register("module:neighbour", group("other_group", textTool("other_tool", "neighbour")))
	fx.loader = modules.NewLoader(fx.manager)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // some tests leave a hanging module
		defer cancel()
		_ = fx.loader.Close(ctx) // the tests check its error where it matters
	})
	return fx
}

func (fx *fixture) register(owner toolgroups.GroupOwner, g toolgroups.Group) {
	fx.Helper()
	if _, err := grouptest.RegisterGroup(fx.manager, owner, g); err != nil {
		fx.Fatal(err)
	}
}

func (fx *fixture) load(m modules.Module) {
	fx.Helper()
	if err := fx.loader.LoadModule(fx.Context(), m); err != nil {
		fx.Fatalf("Load: %v", err)
	}
}

// offered lists the registered groups as "owner id: tool=result ...", without the
// groups of other owners.
func (fx *fixture) offered() []string {
	fx.Helper()
	list := []string{}
	for _, g := range fx.manager.CurrentSnapshot().ListGroups() {
		if g.Owner == toolgroups.Builtin || g.Owner == "module:neighbour" {
			continue
		}
		line := fmt.Sprintf("%s %s:", g.Owner, g.ID)
		for _, name := range g.Tools {
			line += " " + name + "=" + fx.call(name)
		}
		list = append(list, line)
	}
	return list
}

// call calls a registered tool: see callTool.
func (fx *fixture) call(name string) string {
	fx.Helper()
	h, ok := fx.manager.CurrentSnapshot().LookupTool(name)
	if !ok {
		fx.Fatalf("there is no tool %q", name)
	}
	return callTool(fx.Context(), h.Tool)
}

// callTool returns the text that a tool returns, or the code of its error.
func callTool(ctx context.Context, t tool.Tool) string {
	result, err := t.Call(ctx, tool.Call{Args: json.RawMessage(`{}`)})
	if err != nil {
		return string(errcode.CodeOf(err))
	}
	return result.Text
}

func (fx *fixture) wantOffered(want ...string) {
	fx.Helper()
	if diff := cmp.Diff(append([]string{}, want...), fx.offered()); diff != "" {
		fx.Errorf("groups (-want +got):\n%s", diff)
	}
}

func (fx *fixture) wantLoaded(want ...modules.ModuleInfo) {
	fx.Helper()
	if diff := cmp.Diff(append([]modules.ModuleInfo{}, want...), fx.loader.ListModules()); diff != "" {
		fx.Errorf("modules (-want +got):\n%s", diff)
	}
}

// wantStep checks which step failed and with which code.
func wantStep(t *testing.T, err error, step modules.LoadStep, code errcode.Code) {
	t.Helper()
	e, ok := errors.AsType[*modules.StepError](err)
	if !ok || e.Step != step || errcode.CodeOf(err) != code {
		t.Errorf("error is %v, of code %q; want step %q, code %q", err, errcode.CodeOf(err), step, code)
	}
}

// wantCalls checks which methods of a module were called, in order.
func wantCalls(t *testing.T, f *fakeModule, want string) {
	t.Helper()
	if got := f.recorded(); got != want {
		t.Errorf("called methods: got %q, want %q", got, want)
	}
}

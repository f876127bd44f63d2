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
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// fake is a module of functions; those left out do nothing. It notes what is
// done to it.
type fake struct {
	name      func() string
	provision func(context.Context) error
	validate  func() error
	groups    func() []toolgroups.Group
	close     func() error

	mu  sync.Mutex
	log []string
}

func newFake(name string, groups ...toolgroups.Group) *fake {
	return &fake{
		name:      func() string { return name },
		provision: func(context.Context) error { return nil },
		validate:  func() error { return nil },
		groups:    func() []toolgroups.Group { return groups },
		close:     func() error { return nil },
	}
}

func (f *fake) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, what)
}

func (f *fake) noted() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.log, " ")
}

func (f *fake) Name() string                        { f.note("name"); return f.name() }
func (f *fake) Provision(ctx context.Context) error { f.note("provision"); return f.provision(ctx) }
func (f *fake) Validate() error                     { f.note("validate"); return f.validate() }
func (f *fake) Groups() []toolgroups.Group          { f.note("groups"); return f.groups() }
func (f *fake) Close() error                        { f.note("close"); return f.close() }

// plain is a module that is nothing else.
type plain struct{ name string }

func (p plain) Name() string               { return p.name }
func (p plain) Groups() []toolgroups.Group { return nil }

// toolFunc is a tool without arguments.
type toolFunc struct {
	name string
	call func(context.Context) (tool.Result, error)
}

func (t toolFunc) Definition() tool.Definition {
	return tool.Definition{Name: t.name, Input: json.RawMessage(`{"type":"object"}`)}
}

func (t toolFunc) Call(ctx context.Context, _ tool.Call) (tool.Result, error) { return t.call(ctx) }

// says is a tool that answers text.
func says(name, text string) tool.Tool {
	return toolFunc{name, func(context.Context) (tool.Result, error) { return tool.Result{Text: text}, nil }}
}

// holds is a tool that answers text when release is closed.
func holds(name, text string, release <-chan struct{}) tool.Tool {
	return toolFunc{name, func(context.Context) (tool.Result, error) {
		<-release
		return tool.Result{Text: text}, nil
	}}
}

func group(id toolgroups.GroupID, tools ...tool.Tool) toolgroups.Group {
	return toolgroups.Group{ID: id, Description: "of a test", Tools: tools}
}

// kit is a registry of groups, with groups of others in it, and a loader.
type kit struct {
	*testing.T
	manager *toolgroups.Manager
	loader  *modules.Loader
}

func newKit(t *testing.T) *kit {
	k := &kit{T: t, manager: toolgroups.NewManager(toolgroups.Reserved()...)}
	k.register(toolgroups.Builtin, group(toolgroups.Workspace, says("read_file", "builtin")))
	k.register("module:neighbour", group("next_door", says("knock", "neighbour")))
	k.loader = modules.NewLoader(k.manager)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // some tests leave a module that hangs
		defer cancel()
		_ = k.loader.Close(ctx) // what it says is the business of the tests
	})
	return k
}

func (k *kit) register(owner toolgroups.Owner, g toolgroups.Group) {
	k.Helper()
	if _, err := k.manager.Register(owner, g); err != nil {
		k.Fatal(err)
	}
}

func (k *kit) load(m modules.Module) {
	k.Helper()
	if err := k.loader.Load(k.Context(), m); err != nil {
		k.Fatalf("Load: %v", err)
	}
}

// offered lists the registered groups as "owner id: tool=answer ...", the
// groups of others left out.
func (k *kit) offered() []string {
	k.Helper()
	list := []string{}
	for _, g := range k.manager.Snapshot().Groups() {
		if g.Owner == toolgroups.Builtin || g.Owner == "module:neighbour" {
			continue
		}
		line := fmt.Sprintf("%s %s:", g.Owner, g.ID)
		for _, name := range g.Tools {
			line += " " + name + "=" + k.call(name)
		}
		list = append(list, line)
	}
	return list
}

// call gives what a tool answers, or the code of its error.
func (k *kit) call(name string) string {
	k.Helper()
	h, ok := k.manager.Snapshot().Lookup(name)
	if !ok {
		k.Fatalf("there is no tool %q", name)
	}
	return answer(k.Context(), h.Tool)
}

func answer(ctx context.Context, t tool.Tool) string {
	result, err := t.Call(ctx, tool.Call{Args: json.RawMessage(`{}`)})
	if err != nil {
		return string(errcode.Of(err))
	}
	return result.Text
}

func (k *kit) wantOffered(want ...string) {
	k.Helper()
	if diff := cmp.Diff(append([]string{}, want...), k.offered()); diff != "" {
		k.Errorf("groups (-want +got):\n%s", diff)
	}
}

func (k *kit) wantLoaded(want ...modules.Info) {
	k.Helper()
	if diff := cmp.Diff(append([]modules.Info{}, want...), k.loader.Modules()); diff != "" {
		k.Errorf("modules (-want +got):\n%s", diff)
	}
}

// wantStep checks which step failed, and with which code.
func wantStep(t *testing.T, err error, step modules.Step, code errcode.Code) {
	t.Helper()
	e, ok := errors.AsType[*modules.StepError](err)
	if !ok || e.Step != step || errcode.Of(err) != code {
		t.Errorf("error is %v, of code %q; want step %q, code %q", err, errcode.Of(err), step, code)
	}
}

func wantLog(t *testing.T, f *fake, want string) {
	t.Helper()
	if got := f.noted(); got != want {
		t.Errorf("the module saw %q, want %q", got, want)
	}
}

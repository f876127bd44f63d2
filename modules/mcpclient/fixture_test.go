package mcpclient_test

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// memoryStore is a modules.OwnerStore and modules.OwnerLister in memory.
type memoryStore struct {
	onChange func() // called after each change

	mu      sync.Mutex // guards records
	records map[toolgroups.GroupOwner][]byte
}

func (s *memoryStore) ReadValue(_ context.Context, owner toolgroups.GroupOwner) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[owner], nil
}

func (s *memoryStore) WriteValue(_ context.Context, owner toolgroups.GroupOwner, value []byte) error {
	defer s.onChange()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[owner] = value
	return nil
}

func (s *memoryStore) ListOwners(context.Context) iter.Seq2[toolgroups.GroupOwner, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := slices.Sorted(maps.Keys(s.records))
	return func(yield func(toolgroups.GroupOwner, error) bool) {
		for _, owner := range owners {
			if !yield(owner, nil) {
				return
			}
		}
	}
}

// fixture is a registry of groups with a loader and pins.
type fixture struct {
	*testing.T
	store   *memoryStore
	pins    *modules.PinStore
	manager *toolgroups.Manager
	loader  *modules.Loader
	changed chan struct{} // buffered for one: the registry or a record has changed
}

func newFixture(t *testing.T) *fixture {
	fx := &fixture{
		T: t, store: &memoryStore{records: map[toolgroups.GroupOwner][]byte{}},
		manager: toolgroups.NewManager(toolgroups.ReservedIDs()...), changed: make(chan struct{}, 1),
	}
	fx.pins = modules.NewPinStore(fx.store)
	onChange := func() {
		select {
		case fx.changed <- struct{}{}:
		default:
		}
	}
	fx.store.onChange = onChange
	fx.manager.WatchGroups(func([]toolgroups.GroupID) { onChange() })
	fx.loader = modules.NewLoader(fx.manager)
	t.Cleanup(func() {
		if err := fx.loader.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return fx
}

// childConfig returns the configuration of a server that is this binary in a server mode.
func (fx *fixture) childConfig(name, mode string) mcpclient.Config {
	program, err := os.Executable()
	if err != nil {
		fx.Fatal(err)
	}
	return mcpclient.Config{Name: name, Command: mcpclient.Command{Path: program, Env: []string{serverMode + "=" + mode, "GORACE=atexit_sleep_ms=0"}}}
}

// newModule returns a module that is connected to the fixture's registry and pins.
func (fx *fixture) newModule(c mcpclient.Config) *mcpclient.Module {
	fx.Helper()
	c.Pins = fx.pins
	c.Host.Changed = func() { fx.loader.NotifyChanged(c.Name) }
	c.NameTaken = func(name string) bool {
		h, ok := fx.manager.CurrentSnapshot().LookupTool(name)
		return ok && h.Owner != modules.OwnerOf(c.Name)
	}
	m, err := mcpclient.New(c)
	if err != nil {
		fx.Fatal(err)
	}
	return m
}

func (fx *fixture) load(c mcpclient.Config) {
	fx.Helper()
	if err := fx.loader.LoadModule(fx.Context(), fx.newModule(c)); err != nil {
		fx.Fatal(err)
	}
}

// tools lists the tools of a group.
func (fx *fixture) tools(group string) []string {
	info, _ := fx.manager.CurrentSnapshot().LookupGroup(toolgroups.GroupID(group))
	return info.Tools
}

// waitFor waits until condition reports true. It is checked after every change of the
// registry or of a record.
func (fx *fixture) waitFor(what string, condition func() bool) {
	fx.Helper()
	timeout := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-fx.changed:
		case <-timeout:
			fx.Fatalf("timed out waiting: %s; the tools are %v", what, fx.manager.CurrentSnapshot().ListTools())
		}
	}
}

func (fx *fixture) handle(name string) *toolgroups.ToolHandle {
	fx.Helper()
	h, ok := fx.manager.CurrentSnapshot().LookupTool(name)
	if !ok {
		fx.Fatalf("there is no tool %s", name)
	}
	return h
}

// call returns the result of a tool as text, or the code and message of its error.
func (fx *fixture) call(name, args string) string {
	fx.Helper()
	return fx.callWith(fx.Context(), name, args)
}

func (fx *fixture) callWith(ctx context.Context, name, args string) string {
	fx.Helper()
	r, err := fx.handle(name).Tool.Call(ctx, tool.Call{Name: name, Args: json.RawMessage(args)})
	if err != nil {
		return string(errcode.CodeOf(err)) + ": " + errcode.Message(err)
	}
	r.Content = tool.CheckContents(r.Content)
	if r.Text != "" {
		return r.Text
	}
	return string(r.JSON())
}

// want checks that got contains want.
func (fx *fixture) want(got, want string) {
	fx.Helper()
	if !strings.Contains(got, want) {
		fx.Errorf("got %.600q, want it to contain %q", got, want)
	}
}

// pending lists the names of the tools in quarantine.
func (fx *fixture) pending() []string {
	fx.Helper()
	list, err := fx.pins.ListQuarantine(fx.Context())
	if err != nil {
		fx.Fatal(err)
	}
	names := []string{}
	for _, w := range list {
		names = append(names, w.Name)
	}
	return names
}

// accept accepts the pending definition of a tool.
func (fx *fixture) accept(name string) {
	fx.Helper()
	list, err := fx.pins.ListQuarantine(fx.Context())
	if err != nil {
		fx.Fatal(err)
	}
	for _, w := range list {
		if w.Name == name {
			if _, err := fx.pins.AcceptTool(fx.Context(), w.Owner, name, w.Digest); err != nil {
				fx.Fatal(err)
			}
			return
		}
	}
	fx.Fatalf("%s is not in quarantine", name)
}

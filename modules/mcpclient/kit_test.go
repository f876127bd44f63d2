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

// shelf keeps records in memory.
type shelf struct {
	noted func() // called after each change

	mu      sync.Mutex // guards records
	records map[toolgroups.Owner][]byte
}

func (s *shelf) Get(_ context.Context, owner toolgroups.Owner) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[owner], nil
}

func (s *shelf) Set(_ context.Context, owner toolgroups.Owner, value []byte) error {
	defer s.noted()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[owner] = value
	return nil
}

func (s *shelf) Owners(context.Context) iter.Seq2[toolgroups.Owner, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := slices.Sorted(maps.Keys(s.records))
	return func(yield func(toolgroups.Owner, error) bool) {
		for _, owner := range owners {
			if !yield(owner, nil) {
				return
			}
		}
	}
}

// kit is a registry with a loader and pins.
type kit struct {
	*testing.T
	shelf   *shelf
	pins    *modules.Pins
	manager *toolgroups.Manager
	loader  *modules.Loader
	changed chan struct{} // has room for one: the registry changed, or a record
}

func newKit(t *testing.T) *kit {
	k := &kit{
		T: t, shelf: &shelf{records: map[toolgroups.Owner][]byte{}},
		manager: toolgroups.NewManager(toolgroups.Reserved()...), changed: make(chan struct{}, 1),
	}
	k.pins = modules.NewPins(k.shelf)
	noted := func() {
		select {
		case k.changed <- struct{}{}:
		default:
		}
	}
	k.shelf.noted = noted
	k.manager.Watch(func([]toolgroups.GroupID) { noted() })
	k.loader = modules.NewLoader(k.manager)
	t.Cleanup(func() {
		if err := k.loader.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return k
}

// child is the configuration of a server that is this binary.
func (k *kit) child(name, mode string) mcpclient.Config {
	program, err := os.Executable()
	if err != nil {
		k.Fatal(err)
	}
	return mcpclient.Config{Name: name, Command: mcpclient.Command{Path: program, Env: []string{serverMode + "=" + mode, "GORACE=atexit_sleep_ms=0"}}}
}

// make completes a configuration.
func (k *kit) make(c mcpclient.Config) *mcpclient.Module {
	k.Helper()
	c.Pins = k.pins
	c.Host.Changed = func() { k.loader.Changed(c.Name) }
	c.NameTaken = func(name string) bool {
		h, ok := k.manager.Snapshot().Lookup(name)
		return ok && h.Owner != modules.Owner(c.Name)
	}
	m, err := mcpclient.New(c)
	if err != nil {
		k.Fatal(err)
	}
	return m
}

func (k *kit) load(c mcpclient.Config) {
	k.Helper()
	if err := k.loader.Load(k.Context(), k.make(c)); err != nil {
		k.Fatal(err)
	}
}

// tools lists the tools of a group.
func (k *kit) tools(group string) []string {
	info, _ := k.manager.Snapshot().Group(toolgroups.GroupID(group))
	return info.Tools
}

// until waits for the registry to be as wanted.
func (k *kit) until(what string, is func() bool) {
	k.Helper()
	late := time.After(30 * time.Second)
	for !is() {
		select {
		case <-k.changed:
		case <-late:
			k.Fatalf("never: %s; the tools are %v", what, k.manager.Snapshot().Tools())
		}
	}
}

func (k *kit) handle(name string) *toolgroups.Handle {
	k.Helper()
	h, ok := k.manager.Snapshot().Lookup(name)
	if !ok {
		k.Fatalf("there is no tool %s", name)
	}
	return h
}

// call gives what a tool answers, as text, or the code of its error.
func (k *kit) call(name, args string) string {
	k.Helper()
	return k.callWith(k.Context(), name, args)
}

func (k *kit) callWith(ctx context.Context, name, args string) string {
	k.Helper()
	r, err := k.handle(name).Tool.Call(ctx, tool.Call{Name: name, Args: json.RawMessage(args)})
	if err != nil {
		return string(errcode.Of(err)) + ": " + errcode.Message(err)
	}
	if len(r.Structured) > 0 {
		return string(r.Structured)
	}
	return r.Text
}

func (k *kit) want(got, want string) {
	k.Helper()
	if !strings.Contains(got, want) {
		k.Errorf("got %.600q, want it to hold %q", got, want)
	}
}

// waiting lists the names in quarantine.
func (k *kit) waiting() []string {
	k.Helper()
	list, err := k.pins.Quarantine(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	names := []string{}
	for _, w := range list {
		names = append(names, w.Name)
	}
	return names
}

func (k *kit) accept(name string) {
	k.Helper()
	list, err := k.pins.Quarantine(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	for _, w := range list {
		if w.Name == name {
			if _, err := k.pins.Accept(k.Context(), w.Owner, name, w.Digest); err != nil {
				k.Fatal(err)
			}
			return
		}
	}
	k.Fatalf("%s is not in quarantine", name)
}

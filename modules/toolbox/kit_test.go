package toolbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// world is a gate before the tools of a configuration, and somebody who may
// use all of them.
type world struct {
	t      *testing.T
	gate   *gate.Gate
	groups *toolgroups.Manager
	loader *modules.Loader
	slot   *toolgroups.ViewRef
	pools  toolbox.Pools
	log    log
	loaded map[string]*toolbox.Module

	authn  gate.Authn
	change func(*toolbox.Config) // of each source, before it is made; nil leaves it
}

var ann = identity.ByAgent("ann")

// newWorld makes a world whose auth services are those of c.
func newWorld(t *testing.T, c *config.Config) *world {
	t.Helper()
	w := &world{t: t, groups: toolgroups.NewManager(toolgroups.Reserved()...), slot: new(toolgroups.ViewRef), loaded: map[string]*toolbox.Module{}}
	w.loader = modules.NewLoader(w.groups)
	w.groups.Watch(func([]toolgroups.GroupID) {
		s := w.groups.Snapshot()
		w.slot.Publish(s.Compile(s.Bind(toolgroups.All())))
	})
	w.authn = newServices(t, c)
	var err error
	w.gate, err = gate.New(gate.Config{Groups: w.groups, Directory: w, Log: slog.New(slog.DiscardHandler), Authn: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.loader.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := w.pools.Open(); n != 0 {
			t.Errorf("%d pools are left open", n)
		}
	})
	return w
}

// Resolve implements gate.Directory.
func (w *world) Resolve(p identity.Principal) (*toolgroups.ViewRef, string) {
	if p != ann {
		return new(toolgroups.ViewRef), ""
	}
	return w.slot, ""
}

// Verify implements gate.Authn.
func (w *world) Verify(ctx context.Context, service, token string) (gate.Verified, error) {
	return w.authn.Verify(ctx, service, token)
}

// module makes the module of a source.
func (w *world) module(c *config.Config, s config.Source) (*toolbox.Module, error) {
	of := toolbox.Config{Source: s, Pools: &w.pools, Host: modules.Host{Log: slog.New(slog.NewTextHandler(&w.log, nil))}}
	for _, t := range c.Tools {
		if t.Source == s.Name {
			of.Tools = append(of.Tools, t)
		}
	}
	for _, a := range c.AuthServices {
		if a.MCPEnabled {
			of.ScopesOf = a.Name
		}
	}
	if w.change != nil {
		w.change(&of)
	}
	return toolbox.New(of)
}

// load loads the sources of a configuration, or reloads those that are loaded.
func (w *world) load(c *config.Config) {
	w.t.Helper()
	for _, s := range c.Sources {
		m, err := w.module(c, s)
		if err != nil {
			w.t.Fatal(err)
		}
		if w.loaded[s.Name] != nil {
			err = w.loader.Reload(w.t.Context(), m)
		} else {
			err = w.loader.Load(w.t.Context(), m)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.loaded[s.Name] = m
	}
}

// open makes a world with a configuration.
func open(t *testing.T, text string, more ...any) *world {
	t.Helper()
	c := parse(t, fmt.Sprintf(text, more...))
	w := newWorld(t, c)
	w.load(c)
	return w
}

// parse reads a configuration.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(text string) (*config.Config, error) {
	return config.Read([]config.File{{Path: "/dir/tools.yaml", Data: []byte(text)}}, func(string) (string, bool) { return "", false })
}

// call takes a call through the gate.
func (w *world) call(ctx context.Context, name, args string) *gate.Admission {
	w.t.Helper()
	r := gate.Request{Call: tool.Call{ID: identity.CallID(identity.NewID()), Name: name, Args: json.RawMessage(args)}}
	list, err := w.gate.Call(ctx, ann, []gate.Request{r}, recorder{})
	if err != nil || len(list) != 1 {
		w.t.Errorf("%s %s: got %d outcomes, %v", name, args, len(list), err)
		return &gate.Admission{}
	}
	return list[0]
}

// rows calls a tool that has to answer.
func (w *world) rows(name, args string) string {
	w.t.Helper()
	a := w.call(w.t.Context(), name, args)
	if a.Result.IsError {
		w.t.Errorf("%s %s: %s", name, args, a.Result.JSON())
	}
	return shown(a.Result)
}

// shown gives what a model reads.
func shown(r tool.Result) string {
	if len(r.Structured) > 0 {
		return string(r.Structured)
	}
	return r.Text
}

// wantCode checks a refusal or failure and gives its message.
func wantCode(t *testing.T, a *gate.Admission, code errcode.Code) string {
	t.Helper()
	if a.Code() != code {
		t.Errorf("%s: got %q %s, want %s", a.Request.Name, a.Code(), shown(a.Result), code)
	}
	var said struct{ Message string }
	_ = json.Unmarshal(a.Result.Structured, &said)
	return said.Message
}

// recorder is a gate.Recorder that remembers nothing.
type recorder struct{}

func (recorder) Started(_ context.Context, calls []*gate.Admission) error {
	for _, a := range calls {
		if a.Superseded() {
			return gate.ErrSuperseded
		}
	}
	return nil
}

func (recorder) Finished(context.Context, []*gate.Admission) error { return nil }

// log is a buffer for many writers.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// services is a gate.Authn of real auth services.
type services map[string]*oidc.Service

func newServices(t *testing.T, c *config.Config) services {
	t.Helper()
	all := services{}
	if c == nil {
		return all
	}
	for _, a := range c.AuthServices {
		s, err := oidc.New(oidc.Config{Name: a.Name, Issuer: a.Issuer, Audience: a.Audience, Scopes: a.Scopes})
		if err != nil {
			t.Fatal(err)
		}
		all[a.Name] = s
	}
	return all
}

// Verify implements gate.Authn.
func (s services) Verify(ctx context.Context, name, token string) (gate.Verified, error) {
	service, ok := s[name]
	if !ok {
		return gate.Verified{}, errcode.New(errcode.Unauthenticated, "there is no auth service %s", name)
	}
	claims, err := service.Verify(ctx, token)
	return gate.Verified{Claims: json.RawMessage(claims), Scopes: claims.Scopes()}, err
}

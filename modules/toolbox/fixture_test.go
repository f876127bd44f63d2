package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunTests(m)) }

// fixture is a gate with the tools of a configuration, and an agent that may use all
// of them.
type fixture struct {
	t      *testing.T
	gate   *gate.Gate
	groups *toolgroups.Manager
	loader *modules.Loader
	view   *toolgroups.ViewRef
	pools  toolbox.Pools
	log    buffer.SyncBuffer
	loaded map[string]*toolbox.Module

	authn  gate.TokenVerifier
	change func(*toolbox.Config) // changes the config of each source; may be nil
}

var ann, bob = identity.ByAgent("ann"), identity.ByAgent("bob")

// newFixture returns a fixture with the auth services of c.
func newFixture(t *testing.T, c *config.Config) *fixture {
	t.Helper()
	w := &fixture{t: t, groups: toolgroups.NewManager(toolgroups.ReservedIDs()...), view: new(toolgroups.ViewRef), loaded: map[string]*toolbox.Module{}}
	w.loader = modules.NewLoader(w.groups)
	w.groups.WatchGroups(func([]toolgroups.GroupID) {
		s := w.groups.CurrentSnapshot()
		w.view.PublishView(s.Compile(s.PinOwners(toolgroups.AllGroups())))
	})
	w.authn = newAuthServices(t, c)
	var err error
	w.gate, err = gate.New(gate.Config{Groups: w.groups, Directory: w, Log: slog.New(slog.DiscardHandler), Authn: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.loader.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := w.pools.CountOpen(); n != 0 {
			t.Errorf("%d pools were not closed", n)
		}
	})
	return w
}

// ResolveView implements gate.ViewResolver.
func (f *fixture) ResolveView(p identity.Principal) (*toolgroups.ViewRef, string) {
	if p != ann && p != bob {
		return new(toolgroups.ViewRef), ""
	}
	return f.view, ""
}

// VerifyToken implements gate.TokenVerifier.
func (f *fixture) VerifyToken(ctx context.Context, service, token string) (gate.VerifiedToken, error) {
	return f.authn.VerifyToken(ctx, service, token)
}

// module returns the module of a source.
func (f *fixture) module(c *config.Config, s toolboxfile.Source) (*toolbox.Module, error) {
	of := toolbox.Config{Source: s, Pools: &f.pools, Host: modules.ModuleHost{Log: slog.New(slog.NewTextHandler(&f.log, nil))}}
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
	if f.change != nil {
		f.change(&of)
	}
	return toolbox.New(of)
}

// load loads the sources of a configuration, or reloads them.
func (f *fixture) load(c *config.Config) {
	f.t.Helper()
	for _, s := range c.Sources {
		m, err := f.module(c, s)
		if err != nil {
			f.t.Fatal(err)
		}
		if f.loaded[s.Name] != nil {
			err = f.loader.ReloadModule(f.t.Context(), m)
		} else {
			err = f.loader.LoadModule(f.t.Context(), m)
		}
		if err != nil {
			f.t.Fatal(err)
		}
		f.loaded[s.Name] = m
	}
}

// open returns a fixture with a loaded configuration.
func open(t *testing.T, text string, more ...any) *fixture {
	t.Helper()
	c := parse(t, fmt.Sprintf(text, more...))
	w := newFixture(t, c)
	w.load(c)
	return w
}

// parse parses a valid configuration.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(text string) (*config.Config, error) {
	return config.ReadFiles([]yamldoc.File{{Path: "/dir/tools.yaml", Data: []byte(text)}}, func(string) (string, bool) { return "", false })
}

// call sends a call through the gate.
func (f *fixture) call(ctx context.Context, name, args string) *gate.Admission {
	f.t.Helper()
	return f.callAs(ctx, ann, name, args)
}

// callAs is call for another principal.
func (f *fixture) callAs(ctx context.Context, by identity.Principal, name, args string) *gate.Admission {
	f.t.Helper()
	r := gate.CallRequest{Call: tool.Call{ID: identity.CallID(identity.NewID()), Name: name, Args: json.RawMessage(args)}}
	list, err := f.gate.Call(ctx, by, []gate.CallRequest{r}, nopRecorder{})
	if err != nil || len(list) != 1 {
		f.t.Errorf("%s %s: got %d outcomes, %v", name, args, len(list), err)
		return &gate.Admission{}
	}
	return list[0]
}

// rows calls a tool that must succeed, and returns its result.
func (f *fixture) rows(name, args string) string {
	f.t.Helper()
	a := f.call(f.t.Context(), name, args)
	if a.Result.IsError {
		f.t.Errorf("%s %s: %s", name, args, a.Result.JSON())
	}
	return resultText(a.Result)
}

// resultText returns what a model reads.
func resultText(r tool.Result) string {
	if len(r.Structured) > 0 {
		return string(r.Structured)
	}
	return r.Text
}

// wantCode checks the error code of a call and returns its message.
func wantCode(t *testing.T, a *gate.Admission, code errcode.Code) string {
	t.Helper()
	if a.Code() != code {
		t.Errorf("%s: got %q %s, want %s", a.Request.Name, a.Code(), resultText(a.Result), code)
	}
	var body struct{ Message string }
	_ = json.Unmarshal(a.Result.Structured, &body)
	return body.Message
}

// nopRecorder is a gate.CallRecorder that stores nothing.
type nopRecorder struct{}

// CallPending implements gate.CallRecorder.
func (nopRecorder) CallPending(context.Context, []gate.CallRequest) error { return nil }

func (nopRecorder) CallStarted(_ context.Context, calls []*gate.Admission) error {
	for _, a := range calls {
		if a.Superseded() {
			return gate.ErrSuperseded
		}
	}
	return nil
}

func (nopRecorder) CallFinished(context.Context, []*gate.Admission) error { return nil }

// authServices is a gate.TokenVerifier that uses the configured auth services.
type authServices map[string]*oidc.Service

func newAuthServices(t *testing.T, c *config.Config) authServices {
	t.Helper()
	all := authServices{}
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

// VerifyToken implements gate.TokenVerifier.
func (s authServices) VerifyToken(ctx context.Context, name, token string) (gate.VerifiedToken, error) {
	service, ok := s[name]
	if !ok {
		return gate.VerifiedToken{}, errcode.New(errcode.Unauthenticated, "unknown auth service %s", name)
	}
	claims, err := service.Verify(ctx, token)
	return gate.VerifiedToken{Claims: json.RawMessage(claims), Scopes: claims.Scopes()}, err
}

package gatewaytest

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Fixture is a runtime with the built-in tools, and a gateway for it.
type Fixture struct {
	Runtime *runtime.Runtime
	Store   journal.Store
	Handler http.Handler
}

// NewFixture returns a Fixture on a store. m is the model of all its agents. Every request is the
// operator's.
func NewFixture(t testing.TB, store journal.Store, m model.Model) *Fixture {
	t.Helper()
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: groups, Workspaces: t.TempDir(),
		Model: func(string) (model.Model, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	f := &Fixture{Runtime: rt, Store: store}
	return f.WithAuthenticator(t, auth.AlwaysOperator)
}

// WithAuthenticator returns the Fixture with a gateway that identifies senders by
// authenticate.
func (f *Fixture) WithAuthenticator(t testing.TB, authenticate auth.Authenticator) *Fixture {
	t.Helper()
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: authenticate, Version: "v0", StartTask: f.Runtime.StartTask})
	if err != nil {
		t.Fatal(err)
	}
	return &Fixture{Runtime: f.Runtime, Store: f.Store, Handler: WithOpenAPICheck(t, handler)}
}

// WithCaller returns the Fixture with a gateway whose sender is the caller ann in a
// role.
func (f *Fixture) WithCaller(t testing.TB, role identity.RoleID) *Fixture {
	t.Helper()
	return f.WithAuthenticator(t, func(*http.Request) (identity.Principal, error) { return identity.ByCaller("ann", role), nil })
}

// LocalClient returns a client that calls the handler in this process.
func (f *Fixture) LocalClient() *client.Client { return client.NewLocal(f.Handler) }

// StartTask starts a task and returns its id.
func (f *Fixture) StartTask(t testing.TB, text string) identity.TaskID {
	t.Helper()
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: text, Caller: identity.ByOperator("test")})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// RunTask runs a task to its end.
func (f *Fixture) RunTask(t testing.TB, text string) org.Task {
	t.Helper()
	task, err := f.Runtime.WaitTask(t.Context(), f.StartTask(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// AddTool registers a group with one tool. It is available in the given workflow states; without
// any, in all.
func (f *Fixture) AddTool(t *testing.T, group toolgroups.GroupID, name string, states ...string) {
	t.Helper()
	handler := func(context.Context, struct{}) (string, error) { return "", nil }
	made, err := tool.New(name, "a tool", handler, &tool.Options{States: states})
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, group, made)
}

// AddRole creates a role as the operator.
func (f *Fixture) AddRole(t testing.TB, name string, use ...toolgroups.GroupID) org.Role {
	t.Helper()
	set := toolgroups.SetOf(use...)
	role, err := f.LocalClient().CreateRole(t.Context(), wire.RoleRequest{Name: name, Use: &set}, false)
	if err != nil {
		t.Fatal(err)
	}
	return role.Role
}

// AddGroup registers a group of tools.
func (f *Fixture) AddGroup(t *testing.T, id toolgroups.GroupID, tools ...tool.Tool) {
	t.Helper()
	if _, err := grouptest.RegisterGroup(f.Runtime.GroupManager(), "test", toolgroups.Group{ID: id, Description: "a group", Tools: tools}); err != nil {
		t.Fatal(err)
	}
}

// ToolNames lists the tools of groups, sorted by name.
func (f *Fixture) ToolNames(ids ...toolgroups.GroupID) []string {
	var names []string
	for _, d := range f.Runtime.GroupManager().CurrentSnapshot().ToolDefinitions(ids...) {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/toolgroups"
)

// A request that writes a role must name a model of the active configuration. Without a
// configuration the answer says that the model is not checked.
func TestRole_ModelIsChecked(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	with := func(loaded bool, names ...string) *client.Client {
		handler, err := gateway.New(gateway.Config{
			Runtime: f.Runtime, Authenticate: auth.AlwaysOperator,
			Models: func() ([]string, bool) { return names, loaded },
		})
		if err != nil {
			t.Fatal(err)
		}
		return client.NewLocal(handler)
	}
	none := toolgroups.SetOf()
	write := func(c *client.Client, name, model string, allow bool) (client.Role, error) {
		return c.CreateRole(t.Context(), client.RoleRequest{Name: name, Model: model, Use: &none, AllowUnknown: allow}, false)
	}
	known := with(true, "main", "small")
	if r, err := write(known, "a", "main", false); err != nil || r.Unchecked != nil {
		t.Errorf("a declared model: %+v, %v", r, err)
	}
	for c, want := range map[*client.Client]string{known: `no model "mian" is declared; did you mean "main"? Name`, with(true): "the configuration declares no models; name"} {
		_, err := write(c, "b", "mian", false)
		if errcode.CodeOf(err) != errcode.InvalidRole || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want invalid_role with %q", err, want)
		}
		_, err = c.UpdateRole(t.Context(), "a", client.RoleRequest{Model: "mian"}, true)
		if errcode.CodeOf(err) != errcode.InvalidRole {
			t.Errorf("an update: %v", err)
		}
	}
	if r, err := write(known, "b", "mian", true); err != nil || r.Unchecked != nil {
		t.Errorf("allowed: %+v, %v", r, err)
	}
	unknown := with(false)
	if r, err := write(unknown, "c", "mian", false); err != nil || strings.Join(r.Unchecked, "") != "llmServiceId" {
		t.Errorf("without a configuration: %+v, %v", r.Unchecked, err)
	}
	if change, err := unknown.UpdateRole(t.Context(), "c", client.RoleRequest{Prompt: "p"}, false); err != nil || change.Role.Unchecked != nil {
		t.Errorf("an update of another field: %+v, %v", change.Role.Unchecked, err)
	}
}

// Suggestions are for the operator: looking for them takes time for each known name.
func TestSuggestions_ForOperatorOnly(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	groups := toolgroups.SetOfNames("workspace")
	role, err := f.LocalClient().CreateRole(t.Context(), client.RoleRequest{Name: "reader", Use: &groups}, false)
	if err != nil {
		t.Fatal(err)
	}
	caller := f.WithCaller(t, role.ID).LocalClient()
	for path, want := range map[string]string{"read_fil": `there is no tool read_fil; did you mean "read_file"?`, "run_comand": `there is no tool run_comand; did you mean "run_command"?`} {
		if _, err := f.LocalClient().FindTool(t.Context(), path); errcode.Message(err) != want {
			t.Errorf("the operator: %v, want %q", err, want)
		}
		if _, err := caller.FindTool(t.Context(), path); errcode.Message(err) != "there is no tool "+path {
			t.Errorf("a caller: %v", err)
		}
	}
	if _, err := caller.FindGroup(t.Context(), "workspac"); errcode.Message(err) != `there is no tool group "workspac"` {
		t.Errorf("a caller: %v", err)
	}
	if v, err := caller.CheckAccess(t.Context(), client.Question{Tool: "read_fil"}); err != nil || v.Reason != "there is no tool read_fil" {
		t.Errorf("a caller: %+v, %v", v, err)
	}
}

// The error for a role name that several agents have lists their ids, newest first.
func TestAgents_AmbiguousNameListsIDs(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.StartTask(t, "one")
	f.StartTask(t, "two")
	c := f.LocalClient()
	_, err := c.FindAgent(t.Context(), "root")
	v, canErr := c.CheckAccess(t.Context(), client.Question{Agent: "root", Tool: "send_message"})
	if canErr != nil || v.Allowed {
		t.Fatalf("got %+v, %v", v, canErr)
	}
	last := len(errcode.Message(err))
	for a, err2 := range c.ListAgents(t.Context(), "", "") {
		if err2 != nil {
			t.Fatal(err2)
		}
		if at := strings.Index(errcode.Message(err), string(a.ID)); a.RoleID == "root" && at >= last {
			t.Errorf("the ids are not sorted, newest first: %v", err)
		} else if at >= 0 {
			last = at
		}
		if a.RoleID == "root" && (!strings.Contains(errcode.Message(err), string(a.ID)) || !strings.Contains(v.Reason, string(a.ID))) {
			t.Errorf("%s is not in %v and %q", a.ID, err, v.Reason)
		}
	}
}

// The error for what only the operator may do names no route.
func TestAccess_ErrorNamesNoRoute(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	none := toolgroups.SetOf()
	role, err := f.LocalClient().CreateRole(t.Context(), client.RoleRequest{Name: "reader", Use: &none}, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WithCaller(t, role.ID).LocalClient().FindRole(t.Context(), "reader")
	if errcode.CodeOf(err) != errcode.InsufficientPermissions || strings.Contains(err.Error(), "/") || strings.Contains(err.Error(), http.MethodGet) {
		t.Errorf("got %v", err)
	}
}

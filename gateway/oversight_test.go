package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// watched has clients of people whose operators need approvals by security.
type watched struct {
	*gatewaytest.Fixture
	alice, bruno, sam *client.Client // two operators and a person in the role security
	url               string
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "bank", "transfer")
	use, none := toolgroups.SetOf("bank"), toolgroups.SetOf()
	finance := approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}
	rule := approval.Oversight{Operations: approval.Operations(), From: approval.Approvers{Any: []approval.Quorum{{Role: "security"}, {Operator: true}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Oversight: &rule, Roles: []org.RoleSpec{
		{Name: "clerk", Use: &use, Grant: &none, Approval: []approval.Rule{finance}}, {Name: "finance", Use: &none, Grant: &none}, {Name: "security", Use: &none, Grant: &none},
	}}); err != nil {
		t.Fatal(err)
	}
	security, _ := f.Runtime.Org().RoleByName("security")
	_, a := gatewaytest.NewToken("alice", auth.Token{Scope: auth.ScopeOperator})
	_, b := gatewaytest.NewToken("bruno", auth.Token{Scope: auth.ScopeOperator})
	_, s := gatewaytest.NewToken("sam", auth.Token{Scope: auth.ScopeRole, Role: security.ID})
	w := &watched{Fixture: f, url: gatewaytest.ServeAPI(t, f, auth.HostCheck{Tokens: gatewaytest.NewTokens(t, f, a, b, s)})}
	for name, to := range map[string]**client.Client{"alice": &w.alice, "bruno": &w.bruno, "sam": &w.sam} {
		c, err := client.NewRemote(w.url, "rc_"+name)
		if err != nil {
			t.Fatal(err)
		}
		*to = c
	}
	return w
}

// held requires that an operation is held, and returns the id of its request.
func held(t *testing.T, err error) string {
	t.Helper()
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || e.Code != errcode.ApprovalRequired {
		t.Fatalf("%v, want %s", err, errcode.ApprovalRequired)
	}
	id, _ := e.Details["approval"].(string)
	return id
}

func (w *watched) decide(t *testing.T, as *client.Client, id string, want errcode.Code) {
	t.Helper()
	if _, err := as.DecideApproval(t.Context(), id, client.ApprovalDecision{Action: "approve"}); errcode.CodeOf(err) != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// An operator's change that gives rights waits until another operator, or a person of the role, has
// approved it. The change is sent again, with the same revision.
func TestOversight_RolesOverHTTP(t *testing.T) {
	w, none := newWatched(t), toolgroups.SetOf()
	role, err := w.alice.CreateRole(t.Context(), client.RoleRequest{Name: "helper", Use: &none, Grant: &none}, false)
	if err != nil {
		t.Fatal(err)
	}
	use := toolgroups.SetOf("bank")
	more := client.RoleRequest{Use: &use, Revision: role.Revision}
	if _, err := w.alice.UpdateRole(t.Context(), "helper", more, true); err != nil {
		t.Errorf("a trial: %v", err)
	}
	_, err = w.alice.UpdateRole(t.Context(), "helper", more, false)
	id := held(t, err)
	w.decide(t, w.alice, id, errcode.InsufficientPermissions)
	a, err := w.sam.FindApproval(t.Context(), id)
	if err != nil || a.Operation != approval.RoleGain || a.Starter != "alice" || !strings.Contains(string(a.Args), `"gains":["transfer"]`) {
		t.Fatalf("%+v %s, %v", a, a.Args, err)
	}
	w.decide(t, w.bruno, id, "")
	if _, err := w.alice.UpdateRole(t.Context(), "helper", more, false); err != nil {
		t.Fatal(err)
	}
	if _, err := w.alice.UpdateRole(t.Context(), "helper", more, false); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("the former revision: %v", err)
	}
	w.checkUsed(t, 1)
}

// checkUsed requires that n operations are on record, each with who asked, who approved and how they
// were authenticated.
func (w *watched) checkUsed(t *testing.T, n int) {
	t.Helper()
	var used, asked []string
	for e, err := range w.LocalClient().StreamEvents(t.Context(), client.EventQuery{}, false) {
		if err != nil {
			t.Fatal(err)
		}
		switch body := e.Body.(type) {
		case journal.ApprovalRequested:
			if body.Operation != "" {
				asked = append(asked, body.Operator+", "+body.Auth)
			}
		case journal.ApprovalDecided:
			if body.Outcome == journal.ApprovalUsed {
				used = append(used, body.By+", "+body.Auth)
			}
		}
	}
	want := slices.Repeat([]string{"alice, token of alice"}, n)
	if !slices.Equal(asked, want) || !slices.Equal(used, slices.Repeat([]string{"operator, token of alice"}, n)) {
		t.Errorf("asked %q, used %q", asked, used)
	}
}

// An operator cannot override the approvers of a call alone.
func TestOversight_OverrideOverHTTP(t *testing.T) {
	w := newWatched(t)
	clerk, _ := w.Runtime.Org().RoleByName("clerk")
	a, err := w.Runtime.InvokeTool(t.Context(), identity.ByCaller("carl", clerk.ID), "transfer", nil)
	if err != nil {
		t.Fatal(err)
	}
	override := client.ApprovalDecision{Action: "approve", Override: true, Reason: "finance is away"}
	_, err = w.alice.DecideApproval(t.Context(), a.Approval(), override)
	id := held(t, err)
	w.decide(t, w.alice, id, errcode.InsufficientPermissions)
	if _, err := w.bruno.DecideApproval(t.Context(), id, override); errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("an override of an override: %v", err)
	}
	w.decide(t, w.sam, id, "")
	out, err := w.alice.DecideApproval(t.Context(), a.Approval(), override)
	if err != nil || out.Outcome != "approved" {
		t.Errorf("%+v, %v", out, err)
	}
	w.checkUsed(t, 1)
}

// The answer to an operation that waits is an error with a status of its own, so that no client
// takes it for the changed role.
func TestOversight_StatusOfHeldOperation(t *testing.T) {
	w := newWatched(t)
	status, _, body := gatewaytest.SendRaw(t, "POST", w.url+"/api/v1/roles", gatewaytest.BearerHeader("rc_alice"), strings.NewReader(`{"name": "helper", "toolGroups": ["bank"]}`))
	var e struct {
		Error struct {
			Code    string
			Details map[string]string
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || status != http.StatusForbidden || e.Error.Code != "approval_required" || e.Error.Details["approval"] == "" {
		t.Errorf("%d %s", status, body)
	}
}

// A definition in quarantine is accepted when another person has approved this definition.
func TestOversight_AcceptOverHTTP(t *testing.T) {
	f, pins, handler := newQuarantineFixture(t)
	rule := approval.Oversight{Operations: []approval.Operation{approval.ToolAccept}, From: approval.Approvers{All: []approval.Quorum{{Operator: true}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Oversight: &rule}); err != nil {
		t.Fatal(err)
	}
	as := func(name identity.UserName) *client.Client {
		return client.NewLocal(handler(func(*http.Request) (identity.Principal, error) { return identity.ByOperator(name), nil }))
	}
	alice, bruno := as("alice"), as("bruno")
	write, err := alice.FindTool(t.Context(), "fs__write")
	if err != nil {
		t.Fatal(err)
	}
	accept := func() error {
		_, err := alice.AcceptTool(t.Context(), "fs__write", client.AcceptRequest{Digest: write.Digest})
		return err
	}
	id := held(t, accept())
	if _, err := alice.AcceptTool(t.Context(), "fs__write", client.AcceptRequest{Digest: strings.Repeat("0", 64)}); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("another digest: %v", err)
	}
	a, err := bruno.FindApproval(t.Context(), id)
	if err != nil || !strings.Contains(string(a.Args), "writes elsewhere") || a.Operation != approval.ToolAccept {
		t.Errorf("%s, %v", a.Args, err)
	}
	if _, err := bruno.DecideApproval(t.Context(), id, client.ApprovalDecision{Action: "approve"}); err != nil {
		t.Fatal(err)
	}
	if p, err := pins.ReadPins(t.Context(), "module:fs"); err != nil || len(p.Pending) != 2 {
		t.Errorf("accepted before the request was sent again: %+v, %v", p, err)
	}
	if err := accept(); err != nil {
		t.Error(err)
	}
	if p, err := pins.ReadPins(t.Context(), "module:fs"); err != nil || len(p.Pending) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// flippingPins is an OwnerStore whose values change after a number of reads, as those of a server
// that offers its tools anew.
type flippingPins struct {
	pinStore
	reads int
	next  func()
}

type pinStore interface {
	modules.OwnerStore
	modules.OwnerLister
}

func (s *flippingPins) ReadValue(ctx context.Context, owner toolgroups.GroupOwner) ([]byte, error) {
	if s.reads--; s.reads == -1 {
		s.next()
	}
	return s.pinStore.ReadValue(ctx, owner)
}

// A definition that the server offers while the request arrives needs its own approval: an operator
// who knows its digest does not get it accepted.
func TestOversight_AcceptOfDefinitionToCome(t *testing.T) {
	f, pins, _ := newQuarantineFixture(t)
	rule := approval.Oversight{Operations: []approval.Operation{approval.ToolAccept}, From: approval.Approvers{All: []approval.Quorum{{Operator: true}}}}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{Oversight: &rule}); err != nil {
		t.Fatal(err)
	}
	later := modules.ToolPin{Tool: "write", Description: "writes and sends", Input: json.RawMessage(`{"type":"object"}`)}
	store := &flippingPins{pinStore: f.Runtime.OwnerStore(), reads: 1, next: func() {
		if _, err := pins.UpdateTools(t.Context(), modules.OwnerOf("fs"), "fs__", []modules.ToolPin{later}); err != nil {
			t.Error(err)
		}
	}}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, Pins: modules.NewPinStore(store)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.NewLocal(handler).AcceptTool(t.Context(), "fs__write", client.AcceptRequest{Digest: later.Digest()})
	if errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("%v, want %s", err, errcode.Conflict)
	}
	p, err := pins.ReadPins(t.Context(), modules.OwnerOf("fs"))
	if err != nil || slices.ContainsFunc(p.Active, func(p modules.ToolPin) bool { return p.Tool == "write" }) {
		t.Errorf("active: %+v, %v", p.Active, err)
	}
}

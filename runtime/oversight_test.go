package runtime_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

var (
	alice = identity.ByOperator("alice")
	bruno = identity.ByOperator("bruno")
)

// bySecurity lets all operations wait for one person in the role security.
var bySecurity = approval.Oversight{Operations: approval.Operations(), From: approval.Approvers{All: []approval.Quorum{{Role: "security"}}}}

// newWatched returns a bank whose operators need approvals.
func newWatched(t *testing.T, o approval.Oversight, now func() time.Time) *bank {
	t.Helper()
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: financeRule, model: clerkModel, now: now, oversight: &o}
	b.rule.Tools = []string{"transfer"}
	b.open(t)
	return b
}

// heldAs requires that an operation is held, and returns the id of its request.
func heldAs(t *testing.T, err error) string {
	t.Helper()
	e, ok := err.(*errcode.Error)
	if !ok || e.Code != errcode.ApprovalRequired {
		t.Fatalf("%v, want %s", err, errcode.ApprovalRequired)
	}
	return e.Details["approval"].(string)
}

func (b *bank) create(t *testing.T, by identity.Principal, spec org.RoleSpec) (org.Role, error) {
	t.Helper()
	return b.CreateRole(t.Context(), newCall(by), spec)
}

func (b *bank) update(by identity.Principal, id identity.RoleID, spec org.RoleSpec) error {
	_, _, err := b.UpdateRole(by, id, spec, false)
	return err
}

// newRole creates a role that security has approved.
func (b *bank) newRole(t *testing.T, spec org.RoleSpec) org.Role {
	t.Helper()
	_, err := b.create(t, alice, spec)
	b.wantDecided(t, b.approvers["security ann"], approve(heldAs(t, err)), "approved")
	role, err := b.create(t, alice, spec)
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// bindOf parses the bounds of a role.
func bindOf(t *testing.T, text string) bounds.Bind {
	t.Helper()
	bind, err := org.ParseBind("helper", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return bind
}

// A role that gains rights waits for another person than the operator who asks. The same request
// uses the approval, once.
func TestOversight_RoleGain(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	spec := org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet(), Auth: "token of alice"}
	_, err := b.create(t, alice, spec)
	id := heldAs(t, err)
	if _, err := b.create(t, alice, spec); heldAs(t, err) != id {
		t.Error("the same request is asked about twice")
	}
	if _, err := b.create(t, bruno, spec); heldAs(t, err) == id {
		t.Error("two operators share a request")
	}
	for _, by := range []identity.Principal{alice, bruno, b.approvers["finance ann"]} {
		if got := b.decide(t, by, approve(id)); got != "insufficient_permissions" && got != "approval_not_found" {
			t.Errorf("%v approves: %s", by, got)
		}
	}
	b.wantDecided(t, bruno, runtime.ApprovalDecision{ID: id, Approve: true, Override: true, Reason: "r"}, "insufficient_permissions")
	b.wantDecided(t, b.approvers["security ann"], runtime.ApprovalDecision{ID: id, Approve: true, Args: mustJSON(obj{})}, "invalid_arguments")
	found, args, err := b.FindApprovalRequest(t.Context(), b.approvers["security ann"], id)
	if tools := gjson.GetBytes(args.Asked, "tools").Raw; tools != `["balance","transfer"]` {
		t.Errorf("tools of the new role: %s", tools)
	}
	if err != nil || found.Operation != approval.RoleGain || found.Starter != "alice" || !strings.Contains(gjson.GetBytes(args.Asked, "changes.toolGroups.to").Raw, "probe") || found.Digest != approval.DigestJSON(args.Asked) {
		t.Fatalf("%+v, %s, %v", found, args.Asked, err)
	}
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	if _, ok := b.Org().RoleByName("helper"); ok {
		t.Fatal("the role exists before the request is sent again")
	}
	role, err := b.create(t, alice, spec)
	if err != nil || role.Name != "helper" {
		t.Fatalf("%+v, %v", role, err)
	}
	requested, decided := bodiesOf[journal.ApprovalRequested](t, b.fixture)[0], bodiesOf[journal.ApprovalDecided](t, b.fixture)
	last := decided[len(decided)-1]
	if requested.Operator != "alice" || requested.Auth != "token of alice" || requested.Operation != "role_gain" || last.Outcome != journal.ApprovalUsed || last.Approval != id || last.Auth != "token of alice" {
		t.Errorf("on record: %+v, %+v", requested, last)
	}
	if err := b.update(alice, role.ID, org.RoleSpec{Use: groupSet("probe", "artifact")}); heldAs(t, err) == id {
		t.Error("an approval is used twice")
	}
}

// What gains no right is never held: other texts, fewer groups, a trial, a pause and its end, a
// deletion.
func TestOversight_NothingGained(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	role := b.newRole(t, org.RoleSpec{Name: "helper", Use: groupSet("probe", "artifact"), Grant: groupSet("artifact")})
	for _, spec := range []org.RoleSpec{
		{Prompt: "Help."}, {Use: groupSet("probe")}, {Grant: groupSet()}, {Limits: org.AgentLimits{Rounds: 3}}, {Bind: bindOf(t, `{"transfer": {"/amount": {"max": 5}}}`)}, {Name: "aide"},
	} {
		if err := b.update(alice, role.ID, spec); err != nil {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if _, diff, err := b.UpdateRole(alice, role.ID, org.RoleSpec{Use: groupSet("artifact")}, true); err != nil || !diff.Gains() {
		t.Errorf("a trial: %+v, %v", diff, err)
	}
	if _, _, err := b.PauseRole(alice, role.ID, ""); err != nil {
		t.Error(err)
	}
	if _, _, err := b.ResumeRole(alice, role.ID, ""); err != nil {
		t.Errorf("a role that gets back what it had: %v", err)
	}
	if _, err := b.DeleteRole(alice, role.ID, false); err != nil {
		t.Error(err)
	}
	if _, err := b.create(t, alice, org.RoleSpec{Name: "empty", Use: groupSet(), Grant: groupSet()}); err != nil {
		t.Errorf("a role without rights: %v", err)
	}
}

// A role that is changed in a pause gains what it will have when it is resumed.
func TestOversight_GainOfPausedRole(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	role := b.newRole(t, org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()})
	if _, _, err := b.PauseRole(alice, role.ID, ""); err != nil {
		t.Fatal(err)
	}
	heldAs(t, b.update(alice, role.ID, org.RoleSpec{Use: groupSet("probe", "artifact")}))
}

// Each of these changes lets a role do more, now or later.
func TestOversight_Gained(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	server := "files"
	role := b.newRole(t, org.RoleSpec{
		Name: "helper", Use: groupSet("probe"), Grant: groupSet(), Server: &server, Bind: bindOf(t, `{"transfer": {"/amount": {"max": 5}}}`), AllowUnknown: true,
	})
	all, none := toolgroups.AllGroups(), ""
	as := string(b.clerk.ID)
	for name, spec := range map[string]org.RoleSpec{
		"another group": {Use: groupSet("probe", "artifact")}, "all groups": {Use: &all}, "a group that is away": {Use: groupSet("probe", "later"), AllowUnknown: true},
		"a grant": {Grant: groupSet("probe")}, "a wider bound": {Bind: bindOf(t, `{"transfer": {"/amount": {"max": 6}}}`)}, "no bound": {Defaults: []org.RoleField{org.BindField}},
		"no server": {Server: &none}, "requests to agents": {Agent: &org.AskSettings{}}, "a state": {States: []string{"paid"}}, "tasks": {TasksAs: &as},
		"the default groups": {Defaults: []org.RoleField{org.UseField}},
	} {
		if err := b.update(alice, role.ID, spec); errcode.CodeOf(err) != errcode.ApprovalRequired {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now, _ := b.Org().RoleByID(role.ID); now.Revision != role.Revision {
		t.Errorf("the role has changed: %+v", now)
	}
}

// A group gains, whatever its tools are now: others may come. The part of a group that a role holds
// gains nothing.
func TestOversight_GroupsWithSameTools(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return nil, nil })
	for _, g := range []toolgroups.Group{{ID: "files", Children: []toolgroups.GroupID{"files/now"}}, {ID: "files/now", Tools: []tool.Tool{look}}} {
		if _, err := grouptest.RegisterGroup(b.GroupManager(), "files", g); err != nil {
			t.Fatal(err)
		}
	}
	reader := b.newRole(t, org.RoleSpec{Name: "reader", Use: groupSet("files:read"), Grant: groupSet("files/now")})
	for name, spec := range map[string]org.RoleSpec{
		"the whole group": {Use: groupSet("files")}, "a child": {Use: groupSet("files:read", "files/now")}, "the group above": {Grant: groupSet("files")},
	} {
		if err := b.update(alice, reader.ID, spec); errcode.CodeOf(err) != errcode.ApprovalRequired {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spec := range map[string]org.RoleSpec{
		"a child": {Use: groupSet("files/now")}, "the read part": {Grant: groupSet("files:read")}, "the read part of a child": {Grant: groupSet("files/now:read")},
	} {
		holder := b.newRole(t, org.RoleSpec{Name: "holder of " + name, Use: groupSet("files"), Grant: groupSet("files")})
		if err := b.update(alice, holder.ID, spec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A role that lists a group of a former owner has none of the present one: a part of that is a gain.
func TestOversight_GroupOfAnotherOwner(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return nil, nil })
	group := toolgroups.Group{ID: "files", Tools: []tool.Tool{look}}
	if _, err := grouptest.RegisterGroup(b.GroupManager(), "old", group); err != nil {
		t.Fatal(err)
	}
	role := b.newRole(t, org.RoleSpec{Name: "helper", Use: groupSet(), Grant: groupSet("files")})
	if err := grouptest.UnregisterGroup(b.GroupManager(), "old", "files"); err != nil {
		t.Fatal(err)
	}
	if _, err := grouptest.RegisterGroup(b.GroupManager(), "new", group); err != nil {
		t.Fatal(err)
	}
	if err := b.update(alice, role.ID, org.RoleSpec{Prompt: "Help."}); err != nil {
		t.Error(err)
	}
	for _, id := range []toolgroups.GroupID{"files", "files:read"} {
		if err := b.update(alice, role.ID, org.RoleSpec{Grant: groupSet(id)}); errcode.CodeOf(err) != errcode.ApprovalRequired {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A change in the meantime voids a request at once, whether it was approved or not.
func TestOversight_VoidAfterChange(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	role := b.newRole(t, org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()})
	more := org.RoleSpec{Use: groupSet("probe", "artifact")}
	for _, approved := range []bool{false, true} {
		id := heldAs(t, b.update(alice, role.ID, more))
		if approved {
			b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
		}
		if err := b.update(bruno, role.ID, org.RoleSpec{Prompt: time.Now().String()}); err != nil {
			t.Fatal(err)
		}
		b.wantDecided(t, b.approvers["security bob"], approve(id), "approval_not_found")
		if again := heldAs(t, b.update(alice, role.ID, more)); again == id {
			t.Error("the approval of another revision counts")
		}
		if err := b.update(bruno, role.ID, org.RoleSpec{Prompt: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	stale := more
	stale.Revision = 1
	if err := b.update(alice, role.ID, stale); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("another revision: %v", err)
	}
}

// Approvers have seen which tools a role gains. If the group has others by then, they are asked again.
func TestOversight_VoidAfterOtherTools(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	probe := func(name string) tool.Tool {
		return newTool(t, name, tool.Options{}, func(context.Context, obj) (any, error) { return nil, nil })
	}
	if _, err := grouptest.RegisterGroup(b.GroupManager(), "extra", toolgroups.Group{ID: "extra", Tools: []tool.Tool{probe("one")}}); err != nil {
		t.Fatal(err)
	}
	role := b.newRole(t, org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()})
	more := org.RoleSpec{Use: groupSet("probe", "extra")}
	id := heldAs(t, b.update(alice, role.ID, more))
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	if err := grouptest.ReplaceTools(b.GroupManager(), "extra", "extra", []tool.Tool{probe("one"), probe("two")}); err != nil {
		t.Fatal(err)
	}
	again := heldAs(t, b.update(alice, role.ID, more))
	b.wantDecided(t, b.approvers["security bob"], approve(id), "approval_not_found")
	_, args, err := b.FindApprovalRequest(t.Context(), alice, again)
	if err != nil || !strings.Contains(gjson.GetBytes(args.Asked, "effect.roles.0.gains").Raw, "two") {
		t.Errorf("%s, %v", args.Asked, err)
	}
}

// A denial is told once, and the operator may ask again. A request that is decided too late, or
// used too late, has no effect.
func TestOversight_DeniedAndLate(t *testing.T) {
	var past atomic.Int64
	b := newWatched(t, bySecurity, func() time.Time { return time.Now().Add(time.Duration(past.Load())) })
	spec := org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()}
	ask := func() error { _, err := b.create(t, alice, spec); return err }
	id := heldAs(t, ask())
	b.wantDecided(t, b.approvers["security ann"], deny(id, "not now"), "denied")
	if err := ask(); errcode.CodeOf(err) != errcode.ApprovalDenied || !strings.Contains(err.Error(), "not now") {
		t.Errorf("%v", err)
	}
	id = heldAs(t, ask())
	past.Add(int64(2 * time.Hour))
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approval_not_found")
	if err := ask(); errcode.CodeOf(err) != errcode.ApprovalDenied {
		t.Errorf("after the deadline: %v", err)
	}
	id = heldAs(t, ask())
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	past.Add(int64(2 * time.Hour))
	if err := ask(); errcode.CodeOf(err) != errcode.ApprovalDenied {
		t.Errorf("an approval that was not used in time: %v", err)
	}
	id = heldAs(t, ask())
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	b.wantDecided(t, alice, deny(id, "I do not need it"), "denied") // taken back by the one who asked
	if err := ask(); errcode.CodeOf(err) != errcode.ApprovalDenied {
		t.Errorf("an approval that was taken back: %v", err)
	}
}

// The vote of a person whose role is paused does not count, also when the approval is used.
func TestOversight_RemovedApprover(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	spec := org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()}
	_, err := b.create(t, alice, spec)
	id := heldAs(t, err)
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	security, _ := b.Org().RoleByName("security")
	if _, _, err := b.PauseRole(bruno, security.ID, ""); err != nil {
		t.Fatal(err)
	}
	_, err = b.create(t, alice, spec)
	again := heldAs(t, err)
	if again == id {
		t.Error("the approval of a paused role is used")
	}
	b.wantDecided(t, b.approvers["security ann"], approve(again), "approval_not_found")
	if _, _, err := b.ResumeRole(bruno, security.ID, ""); err != nil {
		t.Error(err)
	}
	b.wantDecided(t, b.approvers["security ann"], approve(again), "approved")
}

// Operators approve each other's operations, and are told apart by name. Two votes are two people.
func TestOversight_Operators(t *testing.T) {
	b := newWatched(t, approval.Oversight{Operations: approval.Operations(), From: approval.Approvers{Any: []approval.Quorum{{Operator: true, Count: 2}}}}, nil)
	spec := org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()}
	_, err := b.create(t, alice, spec)
	id := heldAs(t, err)
	b.wantDecided(t, alice, approve(id), "insufficient_permissions")
	b.wantDecided(t, bruno, approve(id), "vote")
	b.wantDecided(t, bruno, approve(id), "conflict")
	b.wantDecided(t, operator, approve(id), "approved")
	if _, err := b.create(t, bruno, spec); heldAs(t, err) == id {
		t.Error("an approver uses the approval")
	}
	if _, err := b.create(t, alice, spec); err != nil {
		t.Error(err)
	}
}

// The name of a role says whose votes count. An operator cannot create such a role alone, or
// rename one.
func TestOversight_ApproverNames(t *testing.T) {
	b := newWatched(t, approval.Oversight{Operations: approval.Operations(), From: approval.Approvers{Any: []approval.Quorum{{Role: "auditor"}, {Role: "security"}}}}, nil)
	none := org.RoleSpec{Name: "intern", Use: groupSet(), Grant: groupSet()}
	role, err := b.create(t, alice, none)
	if err != nil {
		t.Fatal(err)
	}
	heldAs(t, b.update(alice, role.ID, org.RoleSpec{Name: "auditor"}))
	none.Name = "auditor"
	_, err = b.create(t, alice, none)
	heldAs(t, err)
}

// An operator who approves a call in place of its approvers needs an approval for that.
func TestOversight_Override(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	call := b.invoke(t, identity.ByCaller("carl", b.clerk.ID), "transfer", obj{"amount": 7})
	override := runtime.ApprovalDecision{ID: call.Approval(), Approve: true, Override: true, Reason: "finance is on holiday"}
	b.wantDecided(t, alice, override, "approval_required")
	b.wantDecided(t, alice, override, "approval_required")
	var id string
	for _, a := range b.ListApprovals(b.approvers["security ann"]) {
		if a.Operation != approval.Override || id != "" {
			t.Fatalf("%+v", a)
		}
		id = a.ID
		_, args, err := b.FindApprovalRequest(t.Context(), b.approvers["security ann"], id)
		if err != nil || gjson.GetBytes(args.Asked, "args.amount").Int() != 7 || !strings.Contains(args.Short(), `"amount":7`) {
			t.Errorf("the arguments are not shown: %s, %q, %v", args.Asked, args.Short(), err)
		}
	}
	b.wantDecided(t, alice, runtime.ApprovalDecision{ID: id, Approve: true, Override: true, Reason: "r"}, "insufficient_permissions")
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	other := override
	other.Reason = "another reason"
	b.wantDecided(t, alice, other, "approval_required")
	b.wantDecided(t, bruno, override, "approval_required")
	b.wantDecided(t, alice, override, "approved")
	if again := b.invoke(t, identity.ByCaller("carl", b.clerk.ID), "transfer", obj{"amount": 7}); !again.Allowed() || b.paid.Load() != 1 {
		t.Errorf("%s", again.Result.JSON())
	}
}

// Another rule, or none, needs the people of the active one. Until then nothing of the
// configuration becomes active. The rule holds after a restart, whatever configuration is loaded.
func TestOversight_RuleItself(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	roles := []org.RoleSpec{{Name: "new", Use: groupSet(), Grant: groupSet()}, {Name: "security", Use: groupSet(), Grant: groupSet()}}
	weaker := bySecurity
	weaker.Operations = []approval.Operation{approval.Override}
	for _, next := range []*approval.Oversight{nil, &weaker} {
		c := runtime.OrgConfig{Roles: roles, Oversight: next}
		id := heldAs(t, b.ApplyConfig(c))
		if _, ok := b.Org().RoleByName("new"); ok || b.ActiveOversight() == nil {
			t.Fatal("a part of the configuration is active")
		}
		b.wantDecided(t, identity.ByOperator("operator"), approve(id), "insufficient_permissions")
		if heldAs(t, b.ApplyConfig(c)) != id {
			t.Error("the same change is asked about twice")
		}
	}
	b.shutdown(t)
	b.fixture = fixtureConfig{dir: b.dir, model: clerkModel}.open(t)
	if _, err := b.create(t, alice, org.RoleSpec{Name: "helper"}); errcode.CodeOf(err) != errcode.ApprovalRequired {
		t.Errorf("after a restart without a configuration: %v", err)
	}
	if err := b.ApplyConfig(runtime.OrgConfig{KeepRoles: true}); err != nil || !b.ActiveOversight().Equal(&bySecurity) {
		t.Errorf("a configuration that is restored: %v, %+v", err, b.ActiveOversight())
	}
	waiting := len(b.ListApprovals(operator))
	id := heldAs(t, b.ApplyConfig(runtime.OrgConfig{Roles: roles}))
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	if err := b.ApplyConfig(runtime.OrgConfig{Roles: roles}); err != nil {
		t.Fatal(err)
	}
	if n := len(b.ListApprovals(operator)); waiting == 0 || n != 0 {
		t.Errorf("%d requests wait for a rule that is gone", n)
	}
	if _, err := b.create(t, alice, org.RoleSpec{Name: "helper"}); err != nil {
		t.Errorf("without a rule: %v", err)
	}
}

// Roles of configuration files are not held, also if they gain. The record says who gains what.
func TestOversight_RolesOfFiles(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	roles := func(use *toolgroups.GroupSet) []org.RoleSpec {
		return []org.RoleSpec{{Name: "helper", Use: use, Grant: groupSet()}, {Name: "security", Use: groupSet(), Grant: groupSet()}}
	}
	for _, use := range []*toolgroups.GroupSet{groupSet(), groupSet("probe")} {
		if err := b.ApplyConfig(runtime.OrgConfig{Roles: roles(use), Oversight: &bySecurity}); err != nil {
			t.Fatal(err)
		}
	}
	if list := b.ListApprovals(operator); len(list) != 0 {
		t.Errorf("waiting: %+v", list)
	}
	changes := slices.DeleteFunc(bodiesOf[journal.RoleChanged](t, b.fixture), func(c journal.RoleChanged) bool { return c.Change != "updated" || c.Diff == nil })
	last := changes[len(changes)-1]
	if last.By != "config" || !strings.Contains(string(last.Diff), `"gains":["balance","transfer"]`) {
		t.Errorf("recorded by %s: %s", last.By, last.Diff)
	}
}

// Invalid rules are rejected before anything changes.
func TestOversight_RejectsInvalid(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	for _, o := range []approval.Oversight{{}, {Operations: approval.Operations()}, {Operations: []approval.Operation{"tea"}, From: bySecurity.From}} {
		if err := b.ApplyConfig(runtime.OrgConfig{Oversight: &o}); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Operators who ask for the same role at once, and approvers who decide at once, lead to as many
// gains as there are approvals that were used.
func TestOversight_Races(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	role := b.newRole(t, org.RoleSpec{Name: "helper", Use: groupSet("probe"), Grant: groupSet()})
	more := org.RoleSpec{Use: groupSet("probe", "artifact")}
	for range 20 {
		var wg sync.WaitGroup
		for _, by := range []identity.Principal{alice, bruno, alice} {
			wg.Go(func() {
				for range 3 {
					if e, held := b.update(by, role.ID, more).(*errcode.Error); held {
						id, _ := e.Details["approval"].(string)
						wg.Go(func() {
							_, _ = b.DecideApprovals(t.Context(), b.approvers["security ann"], runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{approve(id)})
						})
					}
				}
			})
		}
		wg.Wait()
		if err := b.update(alice, role.ID, org.RoleSpec{Use: groupSet("probe")}); err != nil {
			t.Fatal(err)
		}
	}
	b.checkGains(t)
}

// checkGains requires of each role that an operator has given rights, in the record, an approval by
// security that was used in the same commit and nowhere else.
func (b *bank) checkGains(t *testing.T) (gains int) {
	t.Helper()
	approved, used, fresh := map[string]bool{}, map[string]bool{}, ""
	for _, e := range b.events(t) {
		switch body := e.Body.(type) {
		case journal.ApprovalDecided:
			switch body.Outcome {
			case journal.ApprovalGiven:
				approved[body.Approval] = body.As == "security"
			case journal.ApprovalUsed:
				if !approved[body.Approval] || used[body.Approval] {
					t.Errorf("%s is used: approved %v, used before %v", body.Approval, approved[body.Approval], used[body.Approval])
				}
				used[body.Approval], fresh = true, body.Approval
			}
		case journal.RoleChanged:
			if body.By == "operator" && (body.Change == "created" || strings.Contains(gjson.GetBytes(body.Diff, "roles.#.gains").Raw, `"`)) {
				if gains++; fresh == "" {
					t.Errorf("a role gains without approval: %s", body.Diff)
				}
				fresh = ""
			}
		}
	}
	return gains
}

// An operation outside of the organization uses its approval before it is carried out, once.
func TestOversight_UseOperation(t *testing.T) {
	b := newWatched(t, bySecurity, nil)
	from := runtime.Requester{By: alice, Auth: "token of alice"}
	o := runtime.Operation{Kind: approval.ToolAccept, Subject: "server/tool", Request: obj{"digest": "d"}, Base: "old"}
	id := heldAs(t, b.UseOperationApproval(from, o))
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	changed := o
	changed.Request = obj{"digest": "e"}
	heldAs(t, b.UseOperationApproval(from, changed))
	heldAs(t, b.UseOperationApproval(runtime.Requester{By: bruno}, o))
	if err := b.UseOperationApproval(from, o); err != nil {
		t.Fatal(err)
	}
	id = heldAs(t, b.UseOperationApproval(from, o))
	b.wantDecided(t, b.approvers["security ann"], approve(id), "approved")
	o.Base = "newer"
	if again := heldAs(t, b.UseOperationApproval(from, o)); again == id {
		t.Error("the approval counts for another base")
	}
	if err := b.UseOperationApproval(runtime.Requester{By: identity.Principal{Kind: identity.Configuration}}, o); err != nil {
		t.Errorf("the configuration is no operator: %v", err)
	}
}

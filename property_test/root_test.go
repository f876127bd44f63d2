package property_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// rootFixture is an organization with a root agent, a manager below it, and all
// interfaces that could be used to imitate or change root.
type rootFixture struct {
	*attackEnv
	rt            *runtime.Runtime
	api           *client.Client
	root, manager identity.AgentID
	role          identity.RoleID // role of the manager
}

// newRootFixture starts a task whose root creates a manager with all groups.
func newRootFixture(t *testing.T) *rootFixture {
	t.Helper()
	s, err := newAttackEnv()
	if err != nil {
		t.Fatal(err)
	}
	f := &rootFixture{attackEnv: s, rt: s.system.(*runtime.Runtime)}
	t.Cleanup(func() { f.rt.Close() })
	handler, err := gateway.New(gateway.Config{Runtime: f.rt, Authenticate: auth.AlwaysOperator})
	if err != nil {
		t.Fatal(err)
	}
	f.api = client.NewLocal(handler)
	t.Cleanup(func() { f.api.Close() })
	id, err := f.rt.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: operator})
	if err != nil {
		t.Fatal(err)
	}
	f.applyCommits()
	task, _ := f.rt.Org().TaskByID(id)
	f.root = task.Top
	v, err := f.callWith(f.root, "create_role", createRoleArgs("manager", &ids{"*"}, &ids{"*"}))
	if err != nil || v.code != "" {
		t.Fatalf("%v %s", err, v.code)
	}
	f.role = identity.RoleID(v.body.ID)
	if v, err = f.callWith(f.root, "spawn_agent", map[string]any{"roleId": f.role, "taskBrief": taskBrief}); err != nil || v.code != "" {
		t.Fatalf("%v %s", err, v.code)
	}
	f.manager = identity.AgentID(v.body.ID)
	return f
}

// callError returns the error of a built-in tool as an error.
func callError(v toolOutcome, err error) error {
	if err == nil && v.code != "" {
		err = errcode.New(v.code, "rejected")
	}
	return err
}

// namingCalls are the ways to name a role.
var namingCalls = []struct {
	name string
	call func(f *rootFixture, t *testing.T, name string) error
}{
	{"create_role by root", func(f *rootFixture, t *testing.T, name string) error {
		return callError(f.callWith(f.root, "create_role", createRoleArgs(name, &ids{}, &ids{})))
	}},
	{"create_role by a manager", func(f *rootFixture, t *testing.T, name string) error {
		return callError(f.callWith(f.manager, "create_role", createRoleArgs(name, &ids{"*"}, &ids{"*"})))
	}},
	{"create by the operator", func(f *rootFixture, t *testing.T, name string) error {
		_, err := f.rt.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: name})
		f.applyCommits()
		return err
	}},
	{"rename by the operator", func(f *rootFixture, t *testing.T, name string) error {
		_, _, err := f.rt.UpdateRole(operator, f.role, org.RoleSpec{Name: name}, false)
		f.applyCommits()
		return err
	}},
	{"create over the API", func(f *rootFixture, t *testing.T, name string) error {
		_, err := f.api.CreateRole(t.Context(), client.RoleRequest{Name: name}, false)
		return err
	}},
	{"rename over the API", func(f *rootFixture, t *testing.T, name string) error {
		_, err := f.api.UpdateRole(t.Context(), string(f.role), client.RoleRequest{Name: name}, false)
		return err
	}},
}

// Root cannot be imitated: no interface accepts a role name that looks like
// root, and none finds a role by such a name afterwards.
func TestRoot_NameCannotBeTaken(t *testing.T) {
	spellings := rootLookalikes(t)
	t.Logf("%d spellings", len(spellings))
	for _, entry := range namingCalls {
		t.Run(entry.name, func(t *testing.T) {
			f := newRootFixture(t)
			before := len(f.rt.Org().ListRoles())
			for _, name := range spellings {
				if err := entry.call(f, t, name); errcode.CodeOf(err) != errcode.InvalidRole && errcode.CodeOf(err) != errcode.InvalidArguments {
					t.Errorf("%q (%+q): %v", name, name, err)
				}
				f.checkNotFound(t, name)
			}
			if got := f.rt.Org().ListRoles(); len(got) != before {
				t.Errorf("%d roles, want %d", len(got), before)
			}
			f.checkRoot(t)
		})
	}
}

// The configuration cannot use such a name either.
func TestRoot_NameRejectedInConfiguration(t *testing.T) {
	s, err := newAttackEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rt := s.system.(*runtime.Runtime)
	for _, name := range rootLookalikes(t) {
		err := rt.ApplyConfig(runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "first"}, {Name: name}}})
		if errcode.CodeOf(err) != errcode.InvalidRole {
			t.Errorf("%+q: %v", name, err)
		}
	}
	if got := rt.Org().ListRoles(); len(got) != 1 { // a rejected configuration creates none
		t.Errorf("%d roles, want only that of the operator", len(got))
	}
}

// checkNotFound checks that no interface finds a role by a name.
func (f *rootFixture) checkNotFound(t *testing.T, name string) {
	t.Helper()
	out, err := f.checkedCall(f.root, newRequest("find_role_by_name", string(mustJSON(map[string]any{"name": name}))))
	if err != nil || out.body.ID != "" {
		t.Errorf("find_role_by_name %+q: %+v, %v", name, out.body, err)
	}
	if role, err := f.rt.Org().FindRole(name); err == nil {
		t.Errorf("%+q is role %q", name, role.Name)
	}
	if role, err := f.api.FindRole(t.Context(), name); err == nil && name != "" {
		t.Errorf("the API shows %+q as role %q", name, role.Name)
	}
	if _, err := f.rt.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: operator, Role: name}); err == nil && name != "" {
		t.Errorf("a task was started with role %+q", name)
		f.applyCommits()
	}
}

// checkRoot checks that root is unchanged: active, with only org_management,
// and the only root of its task.
func (f *rootFixture) checkRoot(t *testing.T) {
	t.Helper()
	if got, want := definitionNames(f.Gate().Subject(identity.ByAgent(f.root)).VisibleTools()), f.groups.Naive.Definitions(toolgroups.OrgManagement); !slices.Equal(got, want) {
		t.Errorf("root sees %v, want %v", got, want)
	}
	a, ok := f.rt.Org().AgentByID(f.root)
	if !ok || !a.Root || a.Role != org.RootRole || a.Parent != "" || a.Status != org.Active {
		t.Errorf("root is %+v", a)
	}
	for _, other := range f.rt.Org().ListAgents(a.Task) {
		if other.ID != f.root && (other.Root || other.Role == org.RootRole) {
			t.Errorf("agent %s is root too", other.ID)
		}
	}
	if err := f.checkVisible(); err != nil {
		t.Error(err)
	}
}

// Root cannot be spawned, changed, terminated or renamed, by any caller,
// through any interface, by any spelling of its name or by its ids.
func TestRoot_CannotBeChanged(t *testing.T) {
	f := newRootFixture(t)
	a, _ := f.rt.Org().AgentByID(f.root)
	all := toolgroups.AllGroups()
	refs := append(rootLookalikes(t), string(f.root), string(a.Task), "", "*", org.CreatorOperator, org.CreatorConfig)
	for _, ref := range refs {
		for by, who := range map[string]identity.AgentID{"root": f.root, "manager": f.manager} {
			for name, args := range map[string]map[string]any{
				"spawn_agent":           {"roleId": ref, "taskBrief": taskBrief},
				"spawn_agent_with_task": {"roleId": ref, "taskBrief": taskBrief, "initialMessage": map[string]any{"task": "t"}},
				"terminate_agent":       {"agentId": ref},
			} {
				if err := callError(f.callWith(who, name, args)); err == nil {
					t.Errorf("%s by %s of %+q succeeded", name, by, ref)
				}
			}
		}
		for what, err := range f.operatorChanges(t, ref, &all) {
			if err == nil {
				t.Errorf("%s: %+q succeeded", what, ref)
			}
		}
	}
	f.checkRoot(t)
}

// operatorChanges tries all changes that an operator can make and returns their
// errors.
func (f *rootFixture) operatorChanges(t *testing.T, ref string, all *toolgroups.GroupSet) map[string]error {
	tries := map[string]error{}
	_, _, tries["update"] = f.rt.UpdateRole(operator, identity.RoleID(ref), org.RoleSpec{Use: all, Grant: all}, false)
	_, _, tries["rename"] = f.rt.UpdateRole(operator, identity.RoleID(ref), org.RoleSpec{Name: "leaf"}, false)
	_, tries["delete"] = f.rt.DeleteRole(operator, identity.RoleID(ref), false)
	tries["terminate"] = f.rt.TerminateAgent(t.Context(), newCall(operator), identity.AgentID(ref), "why not")
	if ref == "" { // there is no API path for it
		return tries
	}
	_, tries["update over the API"] = f.api.UpdateRole(t.Context(), ref, client.RoleRequest{Use: all}, false)
	_, tries["rename over the API"] = f.api.UpdateRole(t.Context(), ref, client.RoleRequest{Name: "leaf"}, false)
	_, tries["delete over the API"] = f.api.DeleteRole(t.Context(), ref, false)
	_, tries["terminate over the API"] = f.api.TerminateAgent(t.Context(), ref, "why not")
	return tries
}

// Unusual strings are either rejected as role names or accepted as they are.
// Accepted roles are found by exactly that name, and root is unchanged.
func TestRoot_UnusualNamesAreNotRoot(t *testing.T) {
	f := newRootFixture(t)
	named := map[string]identity.RoleID{}
	for _, name := range corpus.NaughtyStrings() {
		v, err := f.callWith(f.manager, "create_role", createRoleArgs(name, &ids{}, &ids{}))
		switch {
		case err != nil:
			t.Errorf("%q: %v", name, err)
		case v.code == "":
			named[name] = identity.RoleID(v.body.ID)
		case v.code != errcode.InvalidRole && v.code != errcode.InvalidArguments:
			t.Errorf("%q: %s", name, v.code)
		}
	}
	for name, id := range named {
		v, err := f.callWith(f.root, "find_role_by_name", map[string]any{"name": name})
		if err != nil || v.body.ID != string(id) {
			t.Errorf("%q is found as %q, want %q; %v", name, v.body.ID, id, err)
		}
		shown, err := f.api.FindRole(t.Context(), name)
		if err != nil || shown.ID != id {
			t.Errorf("the API finds %q as %q, want %q; %v", name, shown.ID, id, err)
		}
	}
	if t.Logf("%d of %d strings are accepted", len(named), len(corpus.NaughtyStrings())); len(named) < 200 {
		t.Error("too few were accepted")
	}
	f.checkRoot(t)
}

// A role record with the id or name of root neither has permissions of root nor
// changes those of root.
func TestRoot_ForgedRecordIsNotRoot(t *testing.T) {
	store := newMemoryStore()
	storeSampleRecords(t, store)
	before := visibleTools(t, store, nil)
	for _, record := range []string{
		`{"id":"root","name":"root","createdBy":"operator","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`,
		`{"id":"root","name":"boss","createdBy":"root","createdByRole":"root","status":"active","toolGroups":["*"],"grant":["*"]}`,
		`{"id":"root","name":"root","createdBy":"root","createdByRole":"root","status":"deleted","toolGroups":[],"grant":[]}`,
	} {
		after := visibleTools(t, store, &journal.Record{Kind: string(org.KindRole), Key: "root", Value: []byte(record)})
		for agent, tools := range after {
			if !slices.Equal(tools, before[agent]) {
				t.Errorf("%s: agent %s may call %v, before %v", record, agent, tools, before[agent])
			}
		}
	}
}

// rootLookalikes returns spellings that a person may read as root.
func rootLookalikes(t *testing.T) []string {
	t.Helper()
	like := confusables(t)
	list := []string{
		"root", "ROOT", "Root", "rOoT", "\uff52\uff4f\uff4f\uff54", "\uff32\uff2f\uff2f\uff34", "r\uff4fot", "r00t", "ro0t",
		"\U0001d42b\U0001d428\U0001d428\U0001d42d", "\U0001d4c7\U0001d45c\U0001d45c\U0001d4c9", "\u24e1\u24de\u24de\u24e3", "\u02b3\u1d52\u1d52\u1d57", "r.o.o.t", "root.",
		" root", "root ", "\troot", "root\n", "\u00a0root", "root\u3000", "\u2003root\u2003",
		"root#1", "root #2", "\u202eroot", "\u202etoor", "\u2067root\u2069", "root\u0000",
	}
	for i := range 5 { // before, between and after the letters
		for _, mark := range "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e\u061c\u115f\u3164\ufe0f\u0301\u0308\u0332\u0338\u20e3\u0489" {
			list = append(list, "root"[:i]+string(mark)+"root"[i:])
		}
	}
	words := []string{""}
	for _, letter := range "root" {
		var longer []string
		for _, w := range words {
			for _, r := range like[letter] {
				longer = append(longer, w+string(r))
			}
		}
		words = longer
	}
	return append(list, words...)
}

// confusables returns, for each letter of root, the characters that are
// intended to look the same (Unicode UTS #39), in either case.
func confusables(t *testing.T) map[rune][]rune {
	t.Helper()
	f, err := os.Open("../org/testdata/unicode_intentional_confusables.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	like := map[rune][]rune{'r': {'r', 'R'}, 'o': {'o', 'O'}, 't': {'t', 'T'}}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ A, B string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		letter := unicode.ToLower([]rune(row.A)[0])
		if other := []rune(row.B)[0]; strings.ContainsRune("rot", letter) {
			like[letter] = append(like[letter], unicode.ToLower(other), unicode.ToUpper(other))
		}
	}
	if n := len(like['o']); n < 6 {
		t.Fatalf("%d letters look like o", n)
	}
	return like
}

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

// fort is an organization with a root, a manager below it, and every door
// somebody could try to be root at.
type fort struct {
	*scene
	rt            *runtime.Runtime
	api           *client.Client
	root, manager identity.AgentID
	role          identity.RoleID // the manager's
}

func newFort(t *testing.T) *fort {
	t.Helper()
	s, err := newScene()
	if err != nil {
		t.Fatal(err)
	}
	f := &fort{scene: s, rt: s.realm.(*runtime.Runtime)}
	t.Cleanup(func() { f.rt.Close() })
	handler, err := gateway.New(gateway.Config{Runtime: f.rt, Authenticate: auth.AlwaysOperator})
	if err != nil {
		t.Fatal(err)
	}
	f.api = client.Local(handler)
	t.Cleanup(func() { f.api.Close() })
	id, err := f.rt.Start(t.Context(), org.TaskSpec{Text: "go", Caller: operator})
	if err != nil {
		t.Fatal(err)
	}
	f.learn()
	task, _ := f.rt.Org().Task(id)
	f.root = task.Top
	v, err := f.plea(f.root, "create_role", rolePlea("manager", &ids{"*"}, &ids{"*"}))
	if err != nil || v.code != "" {
		t.Fatalf("%v %s", err, v.code)
	}
	f.role = identity.RoleID(v.body.ID)
	if v, err = f.plea(f.root, "spawn_agent", map[string]any{"roleId": f.role, "taskBrief": brief}); err != nil || v.code != "" {
		t.Fatalf("%v %s", err, v.code)
	}
	f.manager = identity.AgentID(v.body.ID)
	return f
}

// asked gives a verdict as an error.
func asked(v verdict, err error) error {
	if err == nil && v.code != "" {
		err = errcode.New(v.code, "refused")
	}
	return err
}

// namings are the doors through which a role gets a name.
var namings = []struct {
	name string
	call func(f *fort, t *testing.T, name string) error
}{
	{"create_role by root", func(f *fort, t *testing.T, name string) error {
		return asked(f.plea(f.root, "create_role", rolePlea(name, &ids{}, &ids{})))
	}},
	{"create_role by a manager", func(f *fort, t *testing.T, name string) error {
		return asked(f.plea(f.manager, "create_role", rolePlea(name, &ids{"*"}, &ids{"*"})))
	}},
	{"the operator makes a role", func(f *fort, t *testing.T, name string) error {
		_, err := f.rt.CreateRole(t.Context(), call(operator), org.RoleSpec{Name: name})
		f.learn()
		return err
	}},
	{"the operator renames a role", func(f *fort, t *testing.T, name string) error {
		_, _, err := f.rt.UpdateRole(operator, f.role, org.RoleSpec{Name: name}, false)
		f.learn()
		return err
	}},
	{"the API makes a role", func(f *fort, t *testing.T, name string) error {
		_, err := f.api.CreateRole(t.Context(), client.RoleRequest{Name: name}, false)
		return err
	}},
	{"the API renames a role", func(f *fort, t *testing.T, name string) error {
		_, err := f.api.UpdateRole(t.Context(), string(f.role), client.RoleRequest{Name: name}, false)
		return err
	}},
}

// Root cannot be imitated, and nothing can be renamed to pass for it: through
// every door, every spelling that a person reads as root is refused, and is
// nobody's name afterwards.
func TestNobodyIsRootButRoot(t *testing.T) {
	spellings := spellingsOfRoot(t)
	t.Logf("%d spellings", len(spellings))
	for _, door := range namings {
		t.Run(door.name, func(t *testing.T) {
			f := newFort(t)
			before := len(f.rt.Org().Roles())
			for _, name := range spellings {
				if err := door.call(f, t, name); errcode.Of(err) != errcode.InvalidRole && errcode.Of(err) != errcode.InvalidArguments {
					t.Errorf("%q (%+q): %v", name, name, err)
				}
				f.checkNobody(t, name)
			}
			if got := f.rt.Org().Roles(); len(got) != before {
				t.Errorf("%d roles, want %d", len(got), before)
			}
			f.checkRoot(t)
		})
	}
}

// Nor does the configuration name it: it comes before anything runs.
func TestNoConfigurationNamesRoot(t *testing.T) {
	s, err := newScene()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rt := s.realm.(*runtime.Runtime)
	for _, name := range spellingsOfRoot(t) {
		err := rt.Configure(runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "first"}, {Name: name}}})
		if errcode.Of(err) != errcode.InvalidRole {
			t.Errorf("%+q: %v", name, err)
		}
	}
	if got := rt.Org().Roles(); len(got) != 1 { // none of a configuration that is refused
		t.Errorf("%d roles, want that of the operator alone", len(got))
	}
}

// checkNobody looks a name up in every way there is.
func (f *fort) checkNobody(t *testing.T, name string) {
	t.Helper()
	out, err := f.act(f.root, request("find_role_by_name", string(mustJSON(map[string]any{"name": name}))))
	if err != nil || out.body.ID != "" {
		t.Errorf("find_role_by_name %+q: %+v, %v", name, out.body, err)
	}
	if role, err := f.rt.Org().FindRole(name); err == nil {
		t.Errorf("%+q is role %q", name, role.Name)
	}
	if role, err := f.api.Role(t.Context(), name); err == nil && name != "" {
		t.Errorf("the API shows %+q as role %q", name, role.Name)
	}
	if _, err := f.rt.Start(t.Context(), org.TaskSpec{Text: "go", Caller: operator, Role: name}); err == nil && name != "" {
		t.Errorf("a task was given to %+q", name)
		f.learn()
	}
}

// checkRoot says that root is what it was: there, with org_management alone,
// and the only one of its kind in its task.
func (f *fort) checkRoot(t *testing.T) {
	t.Helper()
	if got, want := definitionNames(f.Gate().Subject(identity.ByAgent(f.root)).Visible()), f.groups.naive.definitions(toolgroups.OrgManagement); !slices.Equal(got, want) {
		t.Errorf("root sees %v, want %v", got, want)
	}
	a, ok := f.rt.Org().Agent(f.root)
	if !ok || !a.Root || a.Role != org.RootRole || a.Parent != "" || a.Status != org.Active {
		t.Errorf("root is %+v", a)
	}
	for _, other := range f.rt.Org().Agents(a.Task) {
		if other.ID != f.root && (other.Root || other.Role == org.RootRole) {
			t.Errorf("agent %s is root too", other.ID)
		}
	}
	if err := f.checkSight(); err != nil {
		t.Error(err)
	}
}

// Root cannot be spawned, edited, ended or renamed: not by its name, in any
// spelling, nor by its ids, by nobody and through no door.
func TestRootCannotBeTouched(t *testing.T) {
	f := newFort(t)
	a, _ := f.rt.Org().Agent(f.root)
	all := toolgroups.All()
	refs := append(spellingsOfRoot(t), string(f.root), string(a.Task), "", "*", org.CreatorOperator, org.CreatorConfig)
	for _, ref := range refs {
		for by, who := range map[string]identity.AgentID{"root": f.root, "a manager": f.manager} {
			for name, args := range map[string]map[string]any{
				"spawn_agent":           {"roleId": ref, "taskBrief": brief},
				"spawn_agent_with_task": {"roleId": ref, "taskBrief": brief, "initialMessage": map[string]any{"task": "t"}},
				"terminate_agent":       {"agentId": ref},
			} {
				if err := asked(f.plea(who, name, args)); err == nil {
					t.Errorf("%s by %s of %+q was granted", name, by, ref)
				}
			}
		}
		for what, err := range f.touch(t, ref, &all) {
			if err == nil {
				t.Errorf("%s: %+q was granted", what, ref)
			}
		}
	}
	f.checkRoot(t)
}

// touch is what the operator could try.
func (f *fort) touch(t *testing.T, ref string, all *toolgroups.Set) map[string]error {
	tries := map[string]error{}
	_, _, tries["update"] = f.rt.UpdateRole(operator, identity.RoleID(ref), org.RoleSpec{Use: all, Grant: all}, false)
	_, _, tries["rename"] = f.rt.UpdateRole(operator, identity.RoleID(ref), org.RoleSpec{Name: "leaf"}, false)
	_, tries["delete"] = f.rt.DeleteRole(operator, identity.RoleID(ref), false)
	tries["terminate"] = f.rt.Terminate(t.Context(), call(operator), identity.AgentID(ref), "why not")
	if ref == "" { // the API has no path for it
		return tries
	}
	_, tries["update over the API"] = f.api.UpdateRole(t.Context(), ref, client.RoleRequest{Use: all}, false)
	_, tries["rename over the API"] = f.api.UpdateRole(t.Context(), ref, client.RoleRequest{Name: "leaf"}, false)
	_, tries["delete over the API"] = f.api.DeleteRole(t.Context(), ref, false)
	_, tries["terminate over the API"] = f.api.Terminate(t.Context(), ref, "why not")
	return tries
}

// Naughty strings are names or they are refused; whatever they are, root stays
// what it is, and a role is found by its own name alone.
func TestNaughtyNamesAreNotRoot(t *testing.T) {
	f := newFort(t)
	named := map[string]identity.RoleID{}
	for _, name := range corpus.NaughtyStrings() {
		v, err := f.plea(f.manager, "create_role", rolePlea(name, &ids{}, &ids{}))
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
		v, err := f.plea(f.root, "find_role_by_name", map[string]any{"name": name})
		if err != nil || v.body.ID != string(id) {
			t.Errorf("%q is found as %q, want %q; %v", name, v.body.ID, id, err)
		}
		shown, err := f.api.Role(t.Context(), name)
		if err != nil || shown.ID != id {
			t.Errorf("the API finds %q as %q, want %q; %v", name, shown.ID, id, err)
		}
	}
	if t.Logf("%d of %d strings are names", len(named), len(corpus.NaughtyStrings())); len(named) < 200 {
		t.Error("too few")
	}
	f.checkRoot(t)
}

// A record that claims root's id or name is no way to root's rights, nor to
// more for root.
func TestARecordOfRootIsNotRoot(t *testing.T) {
	store := newMemory()
	furnishRecords(t, store)
	before := sights(t, store, nil)
	for _, record := range []string{
		`{"id":"root","name":"root","createdBy":"operator","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`,
		`{"id":"root","name":"boss","createdBy":"root","createdByRole":"root","status":"active","toolGroups":["*"],"grant":["*"]}`,
		`{"id":"root","name":"root","createdBy":"root","createdByRole":"root","status":"deleted","toolGroups":[],"grant":[]}`,
	} {
		after := sights(t, store, &journal.Record{Kind: string(org.KindRole), Key: "root", Value: []byte(record)})
		for agent, tools := range after {
			if !slices.Equal(tools, before[agent]) {
				t.Errorf("%s: agent %s may call %v, before %v", record, agent, tools, before[agent])
			}
		}
	}
}

// spellingsOfRoot lists what a person reads as root.
func spellingsOfRoot(t *testing.T) []string {
	t.Helper()
	like := confusables(t)
	list := []string{
		"root", "ROOT", "Root", "rOoT", "\uff52\uff4f\uff4f\uff54", "\uff32\uff2f\uff2f\uff34", "r\uff4fot", "r00t", "ro0t",
		"\U0001d42b\U0001d428\U0001d428\U0001d42d", "\U0001d4c7\U0001d45c\U0001d45c\U0001d4c9", "\u24e1\u24de\u24de\u24e3", "\u02b3\u1d52\u1d52\u1d57", "r.o.o.t", "root.",
		" root", "root ", "\troot", "root\n", "\u00a0root", "root\u3000", "\u2003root\u2003",
		"root#1", "root #2", "\u202eroot", "\u202etoor", "\u2067root\u2069", "root\u0000",
	}
	for i := range 5 { // between any two letters, and at the ends
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

// confusables lists, for each letter of root, what is meant to look the same
// (UTS #39), in either case.
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

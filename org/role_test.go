package org_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestCheckRoleName(t *testing.T) {
	tests := []struct{ name, role, why string }{ // the name is accepted if why is ""
		{"one letter", "r", ""},
		{"other alphabets and inner spaces", "分析师 Nr. 3 — «données»", ""},
		{"128 characters of four bytes", strings.Repeat("🦊", 128), ""},
		{"129 characters", strings.Repeat("é", 129), "more than 128"},
		{"empty", "", "is empty"},
		{"only a space", " ", "begins or ends with space"},
		{"trailing space", "analyst ", "begins or ends with space"},
		{"leading space", "\u3000analyst", "begins or ends with space"},
		{"invalid UTF-8", "ana\xfflyst", "not UTF-8"},
		{"a new line", "ana\nlyst", "control or invisible"},
		{"a zero byte", "ana\x00lyst", "control or invisible"},
		{"a zero-width space", "ana\u200blyst", "control or invisible"},
		{"a right-to-left override", "ana\u202elyst", "control or invisible"},
		{"a byte order mark", "ana\ufefflyst", "control or invisible"},
		{"a grapheme joiner", "ro\u034fot", "control or invisible"},
		{"only a filler", "\u3164", "control or invisible"},
		{"root", "root", "looks like root"},
		{"root in capitals", "ROOT", "looks like root"},
		{"root in mixed case", "rOoT", "looks like root"},
		{"root with zeros", "r00t", "looks like root"},
		{"root in full width", "ｒＯｏｔ", "looks like root"},
		{"root in Cyrillic", "гоот", "looks like root"},
		{"root in Greek", "rοoτ", "looks like root"},
		{"root in small capitals", "ʀᴏᴏᴛ", "looks like root"},
		{"root with a variation selector", "ro\ufe0eot", "looks like root"},
		{"root as a part", "rooted", ""},
		{"root with a word", "root helper", ""},
		{"operator", "operator", "looks like operator"},
		{"user", "User", "looks like user"},
		{"the program", "rolecall", "looks like rolecall"},
		{"the program in other letters", "RоIеCaⅼ1", "looks like rolecall"},
		{"the program with a word", "rolecall clerk", ""},
		{"root in mathematical letters", "𝗋𝗈𝗈𝗍", "looks like root"},
		{"root in circles", "ⓡⓞⓞⓣ", "looks like root"},
		{"root with a dot below", "rooṭ", "looks like root"},
		{"root with enclosing marks", "ro\u0489ot\u20e3", "looks like root"},
		{"root with a full stop", "root.", "looks like root"},
		{"root with a number", "root#2", "such names are for agents of one role"},
		{"inner number sign", "C# expert", ""},
		{"an emoji with a variation selector", "❤\ufe0f", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			role, changes, err := f.CreateRole(operator, "r", org.RoleSpec{Name: tt.role})
			f.store.put(changes)
			if tt.why == "" {
				wantCode(t, err, "")
				wantFound(t, f, role, tt.role)
				return
			}
			wantCode(t, err, errcode.InvalidRole, tt.why)
			if got := f.ListRoles(); len(got) != 0 {
				t.Errorf("got role %q in spite of the error", got[0].Name)
			}
		})
	}
}

func wantFound(t *testing.T, f *fixture, role org.Role, name string) {
	t.Helper()
	for range 2 { // in memory, then from the store
		found, err := f.FindRole(name)
		if err != nil || found.ID != role.ID || found.Name != name {
			t.Errorf("got %q (%v), want %q", found.Name, err, name)
		}
		if named, ok := f.RoleByName(name); !ok || named.ID != role.ID {
			t.Errorf("RoleNamed does not find %q", name)
		}
		f.reopen()
	}
}

// All spellings of root with intentional confusables of Unicode Technical Standard #39
// are rejected.
func TestCheckRoleName_RejectsConfusables(t *testing.T) {
	like := map[rune][]rune{'r': {'r', 'R'}, 'o': {'o', 'O'}, 't': {'t', 'T'}}
	for _, pair := range confusables(t) {
		for letter, runes := range like {
			for _, r := range runes[:2] {
				if pair[0] == r {
					like[letter] = append(like[letter], pair[1], unicode.ToLower(pair[1]), unicode.ToUpper(pair[1]))
				}
			}
		}
	}
	spellings := []string{""}
	for _, letter := range "root" {
		var longer []string
		for _, s := range spellings {
			for _, r := range like[letter] {
				longer = append(longer, s+string(r))
			}
		}
		spellings = longer
	}
	if len(spellings) < 100 {
		t.Fatalf("got %d spellings, want more", len(spellings))
	}
	for _, s := range spellings {
		if org.CheckRoleName(s) == nil {
			t.Errorf("%q (%+q) looks like root and is accepted", s, s)
		}
	}
}

// One foreign letter in a reserved name is enough, and so is every letter.
func TestCheckRoleName_RejectsConfusablesOfReservedNames(t *testing.T) {
	like := map[rune][]rune{}
	for _, pair := range confusables(t) {
		letter := unicode.ToLower(pair[0])
		like[letter] = append(like[letter], pair[1], unicode.ToLower(pair[1]), unicode.ToUpper(pair[1]))
	}
	for _, name := range []string{"root", "user", "operator", "config", "rolecall"} {
		spellings := 0
		for i, letter := range name {
			for _, r := range like[letter] {
				spellings++
				one := name[:i] + string(r) + name[i+1:]
				for _, s := range []string{one, strings.ToUpper(one), strings.ReplaceAll(name, string(letter), string(r))} {
					wantReserved(t, s, name)
				}
			}
		}
		if spellings < 10 {
			t.Errorf("got %d spellings of %s, want more", spellings, name)
		}
	}
	for name, list := range map[string]string{
		"root":     "r\ua74ft r\u221et ⓡοот ᖇ০০ᴛ r.σ.o.t",
		"user":     "usеr υser ᴜꜱᴇʀ ＵＳＥＲ սѕer 𝓾𝓼𝓮𝓻 user\u0301 ūšér u\ufe0fser us℮r",
		"operator": "operаtor оperator ᴏᴘᴇʀᴀᴛᴏʀ ОРЕRАТОR 0perat0r оρеrαtоr oper⍺tor ºperator орегатог",
		"config":   "сonfig conﬁg conſig conflg conf1g ConfIg CΟNFΙG ᴄᴏɴfɪɢ ⅽonfⅰg con\u0192ig ｃonſig confі\u0261 соոfіց",
	} {
		for s := range strings.SplitSeq(list, " ") {
			wantReserved(t, s, name)
		}
	}
}

func wantReserved(t *testing.T, name, reserved string) {
	t.Helper()
	if err := org.CheckRoleName(name); !strings.Contains(fmt.Sprint(err), "looks like "+reserved) {
		t.Errorf("%q (%+q): got %v, want that it looks like %s", name, name, err, reserved)
	}
}

// Other names in any alphabet are accepted, also those with letters of a reserved name.
func TestCheckRoleName_AcceptsOtherNames(t *testing.T) {
	for _, name := range []string{
		"users", "usher", "use", "operators", "operate", "configs", "confident", "cooperator", "rooter", "rot",
		"пользователь", "оператор связи", "χρήστης", "анализ", "us7r", "u6er", "5er",
	} {
		if err := org.CheckRoleName(name); err != nil {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// A role that was stored under a name which is not accepted any more stays usable. It is
// found, spawned, changed and found again, but no other role takes such a name.
func TestRole_StoredConfusableNameStaysUsable(t *testing.T) {
	const name = "usеr" // with a Cyrillic letter
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "plain"})
	record := strings.Replace(string(f.store.records["role "+string(role.ID)]), `"plain"`, `"`+name+`"`, 1)
	f.store.records["role "+string(role.ID)] = []byte(record)
	f.reopen()
	wantFound(t, f, org.Role{ID: role.ID}, name)
	updated, _, changes, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Prompt: "new"}, false)
	f.store.put(changes)
	if err != nil || updated.Name != name || updated.Prompt != "new" {
		t.Errorf("got %+v, %v", updated, err)
	}
	wantFound(t, f, org.Role{ID: role.ID}, name)
	if again, err := f.create(operator, org.RoleSpec{Name: name, Prompt: "new"}); err != nil || again.ID != role.ID {
		t.Errorf("got role %q, %v, want the stored role", again.ID, err)
	}
	_, _, _, err = f.UpdateRole(operator, role.ID, org.RoleSpec{Name: "uѕer"}, false)
	wantCode(t, err, errcode.InvalidRole, "looks like user")
}

func confusables(t *testing.T) (pairs [][2]rune) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "unicode_intentional_confusables.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ A, B string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, [2]rune{[]rune(row.A)[0], []rune(row.B)[0]})
	}
	return pairs
}

// Naughty strings as names never cause a panic. Accepted ones are stored and found again
// byte for byte.
func TestCreateRole_NaughtyNames(t *testing.T) {
	list := corpus.NaughtyStrings()
	f, made := newFixture(t), map[string]identity.RoleID{}
	for _, name := range list {
		if name == "" {
			continue
		}
		role, err := f.create(operator, org.RoleSpec{Name: name, Prompt: name})
		switch known, ok := made[name]; {
		case err != nil:
			wantCode(t, err, errcode.InvalidRole)
		case ok && role.ID != known:
			t.Errorf("%q was created twice", name)
		default:
			made[name] = role.ID
		}
	}
	t.Logf("%d of %d naughty strings are names", len(made), len(list))
	if len(made) < 200 {
		t.Errorf("got %d names of %d strings", len(made), len(list))
	}
	f.reopen()
	for name, id := range made {
		role, err := f.FindRole(name)
		if err != nil || role.ID != id || role.Name != name || role.Prompt != name {
			t.Errorf("got %q %q %q, %v for %q", role.ID, role.Name, role.Prompt, err, name)
		}
	}
	if len(f.ListRoles()) != len(made) {
		t.Errorf("got %d roles, want %d", len(f.ListRoles()), len(made))
	}
}

// The names of the JSON fields of a role are part of the API and of the file format.
func TestRole_JSONFields(t *testing.T) {
	f := newFixture(t)
	f.create(operator, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("workspace"), Grant: of("*")})
	const want = `{"id":"r1","name":"scribe","rolePrompt":"Write.","createdBy":"operator","createdByRole":"operator",` +
		`"createdAt":"2026-01-01T00:00:01Z","status":"active","llmServiceId":null,"toolGroups":["workspace"],"grant":["*"],` +
		`"groupOwners":{"workspace":"builtin"},"revision":1}`
	if diff := cmp.Diff(string(f.store.records["role r1"]), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	f.update("r1", org.RoleSpec{Model: "clever", Limits: org.AgentLimits{Rounds: 3}})
	for _, part := range []string{`"llmServiceId":"clever"`, `"limits":{"rounds":3}`, `"revision":2`} {
		if record := string(f.store.records["role r1"]); !strings.Contains(record, part) {
			t.Errorf("got %s, want %s in it", record, part)
		}
	}
	before, _ := f.RoleByID("r1")
	f.reopen()
	after, _ := f.RoleByID("r1")
	if diff := cmp.Diff(after, before, cmp.AllowUnexported(toolgroups.GroupSet{})); diff != "" {
		t.Errorf("read again, got before want:\n%s", diff)
	}
}

func TestOrg_CreateRole(t *testing.T) {
	f := newFixture(t)
	root := identity.ByAgent(f.task(org.TaskSpec{}))
	spec := org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("workspace", "docs")}
	first := f.role(root, spec)
	t.Run("same creator and content", func(t *testing.T) {
		spec.Use = of("docs", "workspace")
		role, changes, err := f.CreateRole(identity.ByAgent(f.task(org.TaskSpec{})), "other id", spec)
		if err != nil || role.ID != first.ID || changes != nil {
			t.Errorf("got %s, %d changes, %v", role.ID, len(changes), err)
		}
	})
	t.Run("same id", func(t *testing.T) {
		role, changes, err := f.CreateRole(root, first.ID, org.RoleSpec{Name: "other"})
		if err != nil || role.Name != "scribe" || changes != nil {
			t.Errorf("got %s, %d changes, %v", role.Name, len(changes), err)
		}
	})
	t.Run("name in use", func(t *testing.T) {
		for name, other := range map[string]struct {
			by   identity.Principal
			spec org.RoleSpec
		}{
			"other creator": {operator, spec},
			"other groups":  {root, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("docs")}},
			"other prompt":  {root, org.RoleSpec{Name: "scribe", Prompt: "Read.", Use: spec.Use}},
			"other grant":   {root, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: spec.Use, Grant: of("docs")}},
			"other model":   {root, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: spec.Use, Model: "m"}},
		} {
			_, err := f.create(other.by, other.spec)
			wantCode(t, err, errcode.RoleExists, string(first.ID))
			_, err = f.PlanRole(other.by, other.spec)
			wantCode(t, err, errcode.RoleExists)
			if got := err.(*errcode.Error).Details["roleId"]; got != first.ID {
				t.Errorf("%s: got detail %v, want %v", name, got, first.ID)
			}
		}
	})
	t.Run("invalid group id", func(t *testing.T) {
		_, err := f.create(root, org.RoleSpec{Name: "n", Use: of("work space")})
		wantCode(t, err, errcode.InvalidRole, "work space")
		_, err = f.create(root, org.RoleSpec{Name: "n", Use: of(), Grant: of("")})
		wantCode(t, err, errcode.InvalidRole)
	})
	t.Run("epoch", func(t *testing.T) {
		before := f.CurrentEpoch()
		f.role(root, org.RoleSpec{})
		if got := f.CurrentEpoch(); got != before+1 {
			t.Errorf("got %d, want %d", got, before+1)
		}
	})
	t.Run("name of a deleted role", func(t *testing.T) {
		if _, _, err := f.DeleteRole(operator, first.ID, false); err != nil {
			t.Fatal(err)
		}
		if _, err := f.FindRole("scribe"); errcode.CodeOf(err) != errcode.RoleNotFound {
			t.Errorf("a deleted role is found: %v", err)
		}
		if _, err := f.FindRole(string(first.ID)); errcode.CodeOf(err) != errcode.RoleNotFound {
			t.Errorf("a deleted role is found by id: %v", err)
		}
		if role, ok := f.RoleByID(first.ID); !ok || role.Status != org.Deleted {
			t.Errorf("got %v, %v, want the deleted role", role.Status, ok)
		}
		if role := f.role(root, spec); role.ID == first.ID {
			t.Error("got the deleted role")
		}
	})
	t.Run("id of a deleted role", func(t *testing.T) {
		role, changes, err := f.CreateRole(root, first.ID, spec)
		if err != nil || role.Status != org.Deleted || changes != nil {
			t.Errorf("got %s, %d changes, %v", role.Status, len(changes), err)
		}
	})
}

func TestPlanRole_ChangesNothing(t *testing.T) {
	f := newFixture(t)
	root := identity.ByAgent(f.task(org.TaskSpec{}))
	before := f.CurrentEpoch()
	spec := org.RoleSpec{Name: "scribe", Use: of("docs")}
	plan, err := f.PlanRole(root, spec)
	if err != nil || plan.Name != "scribe" || plan.ID != "" || len(f.ListRoles()) != 0 || f.CurrentEpoch() != before {
		t.Errorf("got %+v, %v and %d roles", plan, err, len(f.ListRoles()))
	}
	made := f.role(root, spec)
	if again, err := f.PlanRole(root, spec); err != nil || again.ID != made.ID {
		t.Errorf("got %q, %v, want the existing role", again.ID, err)
	}
	_, err = f.PlanRole(root, org.RoleSpec{Name: "root"})
	wantCode(t, err, errcode.InvalidRole)
	_, err = f.PlanRole(identity.Principal{}, spec)
	wantCode(t, err, errcode.Unauthenticated)
}

// A stored agent may have a role that does not exist. When the role is created, the agent
// gets its View and the new epoch together.
func TestCreateRole_AppliesToStoredAgents(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "late", Use: of("docs")})
	agent := f.spawn(f.task(org.TaskSpec{}), role.ID)
	delete(f.store.records, "role "+string(role.ID))
	f.reopen()
	f.wantTools(agent)
	if _, _, err := f.CreateRole(operator, role.ID, org.RoleSpec{Name: "late", Use: of("docs")}); err != nil {
		t.Fatal(err)
	}
	f.wantTools(agent, "search")
	ref, _ := f.ResolveView(identity.ByAgent(agent))
	decided := ref.CurrentView().ForState("").EvaluateTool(handle(f.groups, "search"))
	if decided.Epoch != f.CurrentEpoch() {
		t.Errorf("the View has epoch %d, the organization %d", decided.Epoch, f.CurrentEpoch())
	}
}

func TestOrg_UpdateRole(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(identity.ByAgent(root), org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("workspace")})
	other := f.role(operator, org.RoleSpec{Name: "other"})
	one, two := f.spawn(root, role.ID), f.spawn(root, role.ID)
	change := org.AccessChange{Gains: []string{"search"}, Loses: []string{"read_file", "write_file"}}
	want := org.PermissionDiff{
		Agents:  []org.AgentDiff{{Agent: one, Role: "scribe", AccessChange: change}, {Agent: two, Role: "scribe", AccessChange: change}},
		Roles:   []org.RoleDiff{{ID: role.ID, Name: "scribe", AccessChange: change}},
		Callers: []org.CallerDiff{}, Tasks: []org.TasksDiff{},
		Counts: org.DiffCounts{Agents: 2, Roles: 1},
	}
	t.Run("dry run", func(t *testing.T) {
		before, epoch := string(f.store.records["role "+string(role.ID)]), f.CurrentEpoch()
		next, diff, changes, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Name: "clerk", Use: of("docs")}, true)
		if err != nil || changes != nil || next.Revision != 2 {
			t.Fatalf("got revision %d, %d changes, %v", next.Revision, len(changes), err)
		}
		if d := cmp.Diff(diff, want); d != "" {
			t.Errorf("diff, got before want:\n%s", d)
		}
		kept, _ := f.RoleByID(role.ID)
		now, _ := json.Marshal(kept)
		if d := cmp.Diff(string(now), before); d != "" || f.CurrentEpoch() != epoch {
			t.Errorf("epoch %d after %d, got before want:\n%s", f.CurrentEpoch(), epoch, d)
		}
		f.wantTools(one, "read_file", "write_file")
		if _, changes, err := f.DeleteRole(operator, role.ID, true); err != nil || changes != nil {
			t.Errorf("deleting: %d changes, %v", len(changes), err)
		}
		f.wantTools(one, "read_file", "write_file")
	})
	t.Run("change", func(t *testing.T) {
		diff := f.update(role.ID, org.RoleSpec{Name: "clerk", Use: of("docs")})
		if d := cmp.Diff(diff, want); d != "" {
			t.Errorf("diff, got before want:\n%s", d)
		}
		f.wantTools(one, "search")
		f.wantTools(two, "search")
		if _, ok := f.RoleByName("scribe"); ok {
			t.Error("the old name is still found")
		}
		next, _ := f.FindRole("clerk")
		if next.CreatedBy != org.CreatorRoot || !next.CreatedAt.Equal(role.CreatedAt) || next.Revision != 2 || next.Prompt != "Write." {
			t.Errorf("got %+v", next)
		}
	})
	t.Run("fields that are set", func(t *testing.T) {
		diff := f.update(role.ID, org.RoleSpec{Prompt: "Read.", Model: "m", Limits: org.AgentLimits{Rounds: 2}, Grant: of("docs")})
		next, _ := f.RoleByID(role.ID)
		if !diff.IsEmpty() || next.Name != "clerk" || next.Prompt != "Read." || next.Model != "m" || next.Limits.Rounds != 2 {
			t.Errorf("got %v and %+v", diff, next)
		}
		wantSet(t, next.Use, "docs")
		wantSet(t, next.Grant, "docs")
		if !next.MatchesSpec(org.RoleSpec{Name: "clerk", Prompt: "Read.", Model: "m", Limits: org.AgentLimits{Rounds: 2}, Use: of("docs"), Grant: of("docs")}) {
			t.Error("Matches is false")
		}
	})
	t.Run("empty use", func(t *testing.T) {
		f.update(role.ID, org.RoleSpec{Use: of()})
		f.reopen()
		next, _ := f.RoleByID(role.ID)
		wantSet(t, next.Use, "-")
		f.wantTools(one)
	})
	t.Run("errors", func(t *testing.T) {
		config := f.role(identity.Principal{Kind: identity.Configuration}, org.RoleSpec{Name: "configured"})
		tests := []struct {
			name string
			by   identity.Principal
			id   identity.RoleID
			spec org.RoleSpec
			code errcode.Code
		}{
			{"by an agent", identity.ByAgent(root), role.ID, org.RoleSpec{Prompt: "p"}, errcode.InsufficientPermissions},
			{"by an external caller", identity.ByCaller("ann", other.ID), other.ID, org.RoleSpec{Prompt: "p"}, errcode.InsufficientPermissions},
			{"role of the operator's tasks by an external caller", identity.ByCaller("ann", other.ID), role.ID, org.RoleSpec{Prompt: "p"}, errcode.RoleNotFound},
			{"unknown role", operator, "nowhere", org.RoleSpec{}, errcode.RoleNotFound},
			{"role of root", operator, org.RootRole, org.RoleSpec{Use: of("*")}, errcode.RoleNotFound},
			{"configured role by the operator", operator, config.ID, org.RoleSpec{Prompt: "p"}, errcode.Conflict},
			{"other role by the configuration", identity.Principal{Kind: identity.Configuration}, role.ID, org.RoleSpec{Prompt: "p"}, errcode.Conflict},
			{"name in use", operator, role.ID, org.RoleSpec{Name: "other"}, errcode.RoleExists},
			{"name that looks like root", operator, role.ID, org.RoleSpec{Name: "Root"}, errcode.InvalidRole},
			{"invalid group id", operator, role.ID, org.RoleSpec{Use: of("a b")}, errcode.InvalidRole},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				_, _, changes, err := f.UpdateRole(tt.by, tt.id, tt.spec, false)
				wantCode(t, err, tt.code)
				if changes != nil {
					t.Errorf("got %d changes", len(changes))
				}
				if tt.spec.Prompt != "" {
					_, changes, err := f.DeleteRole(tt.by, tt.id, false)
					wantCode(t, err, tt.code)
					if changes != nil {
						t.Errorf("deleting: got %d changes", len(changes))
					}
				}
			})
		}
		if _, _, _, err := f.UpdateRole(identity.Principal{Kind: identity.Configuration}, config.ID, org.RoleSpec{Prompt: "p"}, false); err != nil {
			t.Errorf("the configuration may not change its own role: %v", err)
		}
	})
}

func TestOrg_RolesSortedAndActive(t *testing.T) {
	f := newFixture(t)
	var want []string
	for i := range 20 {
		want = append(want, f.role(operator, org.RoleSpec{Name: fmt.Sprintf("role %02d", (i*7)%20)}).Name)
	}
	gone, _ := f.RoleByName("role 03")
	if _, _, err := f.DeleteRole(operator, gone.ID, false); err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(n string) bool { return n == "role 03" })
	slices.Sort(want)
	var got []string
	for _, r := range f.ListRoles() {
		got = append(got, r.Name)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

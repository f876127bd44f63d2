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

func TestRoleNames(t *testing.T) {
	tests := []struct{ name, role, why string }{ // why "" accepts
		{"one letter", "r", ""},
		{"any alphabet, spaces within", "分析师 Nr. 3 — «données»", ""},
		{"128 characters of four bytes", strings.Repeat("🦊", 128), ""},
		{"129 characters", strings.Repeat("é", 129), "more than 128"},
		{"nothing", "", "is empty"},
		{"space alone", " ", "begins or ends with space"},
		{"space behind", "analyst ", "begins or ends with space"},
		{"space in front", "\u3000analyst", "begins or ends with space"},
		{"no UTF-8", "ana\xfflyst", "not UTF-8"},
		{"a new line", "ana\nlyst", "control or invisible"},
		{"a zero byte", "ana\x00lyst", "control or invisible"},
		{"a zero-width space", "ana\u200blyst", "control or invisible"},
		{"a right-to-left override", "ana\u202elyst", "control or invisible"},
		{"a byte order mark", "ana\ufefflyst", "control or invisible"},
		{"a grapheme joiner", "ro\u034fot", "control or invisible"},
		{"nothing but a filler", "\u3164", "control or invisible"},
		{"root", "root", "passes for root"},
		{"root in capitals", "ROOT", "passes for root"},
		{"root in mixed case", "rOoT", "passes for root"},
		{"root with zeros", "r00t", "passes for root"},
		{"root in full width", "ｒＯｏｔ", "passes for root"},
		{"root in Cyrillic", "гоот", "passes for root"},
		{"root in Greek", "rοoτ", "passes for root"},
		{"root in small capitals", "ʀᴏᴏᴛ", "passes for root"},
		{"root with a variation selector", "ro\ufe0eot", "passes for root"},
		{"root as a part", "rooted", ""},
		{"root with a word", "root helper", ""},
		{"another maker's name", "operator", "passes for operator"},
		{"the name of who is outside", "User", "passes for user"},
		{"root in mathematical letters", "𝗋𝗈𝗈𝗍", "passes for root"},
		{"root in circles", "ⓡⓞⓞⓣ", "passes for root"},
		{"root with a dot below", "rooṭ", "passes for root"},
		{"root with enclosing marks", "ro\u0489ot\u20e3", "passes for root"},
		{"root with a full stop", "root.", "passes for root"},
		{"a second root, as the tree shows it", "root#2", "tells agents of one role apart"},
		{"a number sign within", "C# expert", ""},
		{"an emoji with a variation selector", "❤\ufe0f", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t)
			role, changes, err := h.CreateRole(operator, "r", org.RoleSpec{Name: tt.role})
			h.store.put(changes)
			if tt.why == "" {
				wantCode(t, err, "")
				wantFound(t, h, role, tt.role)
				return
			}
			wantCode(t, err, errcode.InvalidRole, tt.why)
			if got := h.Roles(); len(got) != 0 {
				t.Errorf("got role %q in spite of the refusal", got[0].Name)
			}
		})
	}
}

func wantFound(t *testing.T, h *house, role org.Role, name string) {
	t.Helper()
	for range 2 { // in memory, then from the store
		found, err := h.FindRole(name)
		if err != nil || found.ID != role.ID || found.Name != name {
			t.Errorf("got %q (%v), want %q", found.Name, err, name)
		}
		if named, ok := h.RoleNamed(name); !ok || named.ID != role.ID {
			t.Errorf("%q is not found by name", name)
		}
		h.reopen()
	}
}

// UTS #39: every spelling of root with letters that are meant to look the same.
func TestNoIntentionalConfusablePassesForRoot(t *testing.T) {
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
			t.Errorf("%q (%+q) passes for root and is accepted", s, s)
		}
	}
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

// Naughty strings never crash; those that pass are stored and found again
// byte for byte, and tell nothing to a role of another name.
func TestNaughtyRoleNames(t *testing.T) {
	list := corpus.NaughtyStrings()
	h, made := open(t), map[string]identity.RoleID{}
	for _, name := range list {
		if name == "" {
			continue
		}
		role, err := h.create(operator, org.RoleSpec{Name: name, Prompt: name})
		switch known, ok := made[name]; {
		case err != nil:
			wantCode(t, err, errcode.InvalidRole)
		case ok && role.ID != known:
			t.Errorf("%q was made twice", name)
		default:
			made[name] = role.ID
		}
	}
	t.Logf("%d of %d naughty strings are names", len(made), len(list))
	if len(made) < 200 {
		t.Errorf("got %d names of %d strings", len(made), len(list))
	}
	h.reopen()
	for name, id := range made {
		role, err := h.FindRole(name)
		if err != nil || role.ID != id || role.Name != name || role.Prompt != name {
			t.Errorf("got %q %q %q, %v for %q", role.ID, role.Name, role.Prompt, err, name)
		}
	}
	if len(h.Roles()) != len(made) {
		t.Errorf("got %d roles, want %d", len(h.Roles()), len(made))
	}
}

// reference/agent-society.md §2: "the role: id name rolePrompt createdBy
// createdAt status:"active" llmServiceId toolGroups".
func TestARolesRecordHasTheSeedsNames(t *testing.T) {
	h := open(t)
	h.create(operator, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("workspace"), Grant: of("*")})
	const want = `{"id":"r1","name":"scribe","rolePrompt":"Write.","createdBy":"operator","createdByRole":"operator",` +
		`"createdAt":"2026-01-01T00:00:01Z","status":"active","llmServiceId":null,"toolGroups":["workspace"],"grant":["*"],` +
		`"groupOwners":{"workspace":"builtin"},"revision":1}`
	if diff := cmp.Diff(string(h.store.records["role r1"]), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	h.update("r1", org.RoleSpec{Model: "clever", Limits: org.Limits{Rounds: 3}})
	for _, part := range []string{`"llmServiceId":"clever"`, `"limits":{"rounds":3}`, `"revision":2`} {
		if record := string(h.store.records["role r1"]); !strings.Contains(record, part) {
			t.Errorf("got %s, want %s in it", record, part)
		}
	}
	before, _ := h.Role("r1")
	h.reopen()
	after, _ := h.Role("r1")
	if diff := cmp.Diff(after, before, cmp.AllowUnexported(toolgroups.Set{})); diff != "" {
		t.Errorf("read again, got before want:\n%s", diff)
	}
}

func TestCreateRole(t *testing.T) {
	h := open(t)
	root := identity.ByAgent(h.task(org.TaskSpec{}))
	spec := org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("workspace", "docs")}
	first := h.role(root, spec)
	t.Run("again by the same maker with the same content gives the same role", func(t *testing.T) {
		spec.Use = of("docs", "workspace")
		role, changes, err := h.CreateRole(identity.ByAgent(h.task(org.TaskSpec{})), "other id", spec)
		if err != nil || role.ID != first.ID || changes != nil {
			t.Errorf("got %s, %d changes, %v", role.ID, len(changes), err)
		}
	})
	t.Run("under the same id gives the same role", func(t *testing.T) {
		role, changes, err := h.CreateRole(root, first.ID, org.RoleSpec{Name: "other"})
		if err != nil || role.Name != "scribe" || changes != nil {
			t.Errorf("got %s, %d changes, %v", role.Name, len(changes), err)
		}
	})
	t.Run("of a name that is taken is refused", func(t *testing.T) {
		for name, other := range map[string]struct {
			by   identity.Principal
			spec org.RoleSpec
		}{
			"by another maker":   {operator, spec},
			"with other groups":  {root, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("docs")}},
			"with other words":   {root, org.RoleSpec{Name: "scribe", Prompt: "Read.", Use: spec.Use}},
			"with another grant": {root, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: spec.Use, Grant: of("docs")}},
			"with another model": {root, org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: spec.Use, Model: "m"}},
		} {
			_, err := h.create(other.by, other.spec)
			wantCode(t, err, errcode.RoleExists, string(first.ID))
			_, err = h.PlanRole(other.by, other.spec)
			wantCode(t, err, errcode.RoleExists)
			if got := err.(*errcode.Error).Details["roleId"]; got != first.ID {
				t.Errorf("%s: got detail %v, want %v", name, got, first.ID)
			}
		}
	})
	t.Run("with an id that is no group id is refused", func(t *testing.T) {
		_, err := h.create(root, org.RoleSpec{Name: "n", Use: of("work space")})
		wantCode(t, err, errcode.InvalidRole, "work space")
		_, err = h.create(root, org.RoleSpec{Name: "n", Use: of(), Grant: of("")})
		wantCode(t, err, errcode.InvalidRole)
	})
	t.Run("moves the epoch", func(t *testing.T) {
		before := h.Epoch()
		h.role(root, org.RoleSpec{})
		if got := h.Epoch(); got != before+1 {
			t.Errorf("got %d, want %d", got, before+1)
		}
	})
	t.Run("of a deleted role's name makes another", func(t *testing.T) {
		if _, _, err := h.DeleteRole(operator, first.ID, false); err != nil {
			t.Fatal(err)
		}
		if _, err := h.FindRole("scribe"); errcode.Of(err) != errcode.RoleNotFound {
			t.Errorf("a deleted role is found: %v", err)
		}
		if _, err := h.FindRole(string(first.ID)); errcode.Of(err) != errcode.RoleNotFound {
			t.Errorf("a deleted role is found by id: %v", err)
		}
		if role, ok := h.Role(first.ID); !ok || role.Status != org.Deleted {
			t.Errorf("got %v, %v, want the deleted role", role.Status, ok)
		}
		if role := h.role(root, spec); role.ID == first.ID {
			t.Error("the deleted role came back")
		}
	})
	t.Run("of a deleted role's id by the same call gives the deleted role", func(t *testing.T) {
		role, changes, err := h.CreateRole(root, first.ID, spec)
		if err != nil || role.Status != org.Deleted || changes != nil {
			t.Errorf("got %s, %d changes, %v", role.Status, len(changes), err)
		}
	})
}

func TestPlanRoleMakesNothing(t *testing.T) {
	h := open(t)
	root := identity.ByAgent(h.task(org.TaskSpec{}))
	before := h.Epoch()
	spec := org.RoleSpec{Name: "scribe", Use: of("docs")}
	plan, err := h.PlanRole(root, spec)
	if err != nil || plan.Name != "scribe" || plan.ID != "" || len(h.Roles()) != 0 || h.Epoch() != before {
		t.Errorf("got %+v, %v and %d roles", plan, err, len(h.Roles()))
	}
	made := h.role(root, spec)
	if again, err := h.PlanRole(root, spec); err != nil || again.ID != made.ID {
		t.Errorf("got %q, %v, want the existing role", again.ID, err)
	}
	_, err = h.PlanRole(root, org.RoleSpec{Name: "root"})
	wantCode(t, err, errcode.InvalidRole)
	_, err = h.PlanRole(identity.Principal{}, spec)
	wantCode(t, err, errcode.Unauthenticated)
}

// An agent may have been stored with a role that is not there; when the role
// comes, what the agent sees and the epoch it says come together.
func TestARoleThatAppearsIsInForceForItsAgents(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "late", Use: of("docs")})
	agent := h.spawn(h.task(org.TaskSpec{}), role.ID)
	delete(h.store.records, "role "+string(role.ID))
	h.reopen()
	h.wantMay(agent)
	if _, _, err := h.CreateRole(operator, role.ID, org.RoleSpec{Name: "late", Use: of("docs")}); err != nil {
		t.Fatal(err)
	}
	h.wantMay(agent, "search")
	slot, _ := h.Resolve(identity.ByAgent(agent))
	ruling := slot.View().ForState("").Decide(handle(h.groups, "search"))
	if ruling.Epoch != h.Epoch() {
		t.Errorf("the view is of epoch %d, the organization of %d", ruling.Epoch, h.Epoch())
	}
}

func TestUpdateRole(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(identity.ByAgent(root), org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: of("workspace")})
	other := h.role(operator, org.RoleSpec{Name: "other"})
	one, two := h.spawn(root, role.ID), h.spawn(root, role.ID)
	want := org.Diff{
		{Agent: one, Role: "scribe", Gains: []string{"search"}, Loses: []string{"read_file", "write_file"}},
		{Agent: two, Role: "scribe", Gains: []string{"search"}, Loses: []string{"read_file", "write_file"}},
	}
	t.Run("a dry run says who gains or loses what and changes nothing", func(t *testing.T) {
		before, epoch := string(h.store.records["role "+string(role.ID)]), h.Epoch()
		next, diff, changes, err := h.UpdateRole(operator, role.ID, org.RoleSpec{Name: "clerk", Use: of("docs")}, true)
		if err != nil || changes != nil || next.Revision != 2 {
			t.Fatalf("got revision %d, %d changes, %v", next.Revision, len(changes), err)
		}
		if d := cmp.Diff(diff, want); d != "" {
			t.Errorf("diff, got before want:\n%s", d)
		}
		kept, _ := h.Role(role.ID)
		now, _ := json.Marshal(kept)
		if d := cmp.Diff(string(now), before); d != "" || h.Epoch() != epoch {
			t.Errorf("epoch %d after %d, got before want:\n%s", h.Epoch(), epoch, d)
		}
		h.wantMay(one, "read_file", "write_file")
		if _, changes, err := h.DeleteRole(operator, role.ID, true); err != nil || changes != nil {
			t.Errorf("deleting: %d changes, %v", len(changes), err)
		}
		h.wantMay(one, "read_file", "write_file")
	})
	t.Run("says the same when it changes something", func(t *testing.T) {
		diff := h.update(role.ID, org.RoleSpec{Name: "clerk", Use: of("docs")})
		if d := cmp.Diff(diff, want); d != "" {
			t.Errorf("diff, got before want:\n%s", d)
		}
		h.wantMay(one, "search")
		h.wantMay(two, "search")
		if _, ok := h.RoleNamed("scribe"); ok {
			t.Error("the old name is still known")
		}
		next, _ := h.FindRole("clerk")
		if next.CreatedBy != org.CreatorRoot || !next.CreatedAt.Equal(role.CreatedAt) || next.Revision != 2 || next.Prompt != "Write." {
			t.Errorf("got %+v", next)
		}
	})
	t.Run("changes only what is set", func(t *testing.T) {
		diff := h.update(role.ID, org.RoleSpec{Prompt: "Read.", Model: "m", Limits: org.Limits{Rounds: 2}, Grant: of("docs")})
		next, _ := h.Role(role.ID)
		if len(diff) != 0 || diff == nil || next.Name != "clerk" || next.Prompt != "Read." || next.Model != "m" || next.Limits.Rounds != 2 {
			t.Errorf("got %v and %+v", diff, next)
		}
		wantSet(t, next.Use, "docs")
		wantSet(t, next.Grant, "docs")
		if !next.Is(org.RoleSpec{Name: "clerk", Prompt: "Read.", Model: "m", Limits: org.Limits{Rounds: 2}, Use: of("docs"), Grant: of("docs")}) {
			t.Error("Is says no")
		}
	})
	t.Run("to nothing is kept as nothing", func(t *testing.T) {
		h.update(role.ID, org.RoleSpec{Use: of()})
		h.reopen()
		next, _ := h.Role(role.ID)
		wantSet(t, next.Use, "-")
		h.wantMay(one)
	})
	t.Run("is refused", func(t *testing.T) {
		config := h.role(identity.Principal{Kind: identity.Configuration}, org.RoleSpec{Name: "configured"})
		tests := []struct {
			name string
			by   identity.Principal
			id   identity.RoleID
			spec org.RoleSpec
			code errcode.Code
		}{
			{"to an agent", identity.ByAgent(root), role.ID, org.RoleSpec{Prompt: "p"}, errcode.InsufficientPermissions},
			{"to a caller from outside", identity.ByCaller("ann", other.ID), role.ID, org.RoleSpec{Prompt: "p"}, errcode.InsufficientPermissions},
			{"of a role that is not there", operator, "nowhere", org.RoleSpec{}, errcode.RoleNotFound},
			{"of root's role", operator, org.RootRole, org.RoleSpec{Use: of("*")}, errcode.RoleNotFound},
			{"of a configured role to the operator", operator, config.ID, org.RoleSpec{Prompt: "p"}, errcode.Conflict},
			{"of another's role to the configuration", identity.Principal{Kind: identity.Configuration}, role.ID, org.RoleSpec{Prompt: "p"}, errcode.Conflict},
			{"to a name that is taken", operator, role.ID, org.RoleSpec{Name: "other"}, errcode.RoleExists},
			{"to a name that passes for root", operator, role.ID, org.RoleSpec{Name: "Root"}, errcode.InvalidRole},
			{"to an id that is no group id", operator, role.ID, org.RoleSpec{Use: of("a b")}, errcode.InvalidRole},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				_, _, changes, err := h.UpdateRole(tt.by, tt.id, tt.spec, false)
				wantCode(t, err, tt.code)
				if changes != nil {
					t.Errorf("got %d changes", len(changes))
				}
				if tt.spec.Prompt != "" {
					_, changes, err := h.DeleteRole(tt.by, tt.id, false)
					wantCode(t, err, tt.code)
					if changes != nil {
						t.Errorf("deleting: got %d changes", len(changes))
					}
				}
			})
		}
		if _, _, _, err := h.UpdateRole(identity.Principal{Kind: identity.Configuration}, config.ID, org.RoleSpec{Prompt: "p"}, false); err != nil {
			t.Errorf("the configuration may not change its own: %v", err)
		}
	})
}

func TestRolesAreListedSortedAndActive(t *testing.T) {
	h := open(t)
	var want []string
	for i := range 20 {
		want = append(want, h.role(operator, org.RoleSpec{Name: fmt.Sprintf("role %02d", (i*7)%20)}).Name)
	}
	gone, _ := h.RoleNamed("role 03")
	if _, _, err := h.DeleteRole(operator, gone.ID, false); err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(n string) bool { return n == "role 03" })
	slices.Sort(want)
	var got []string
	for _, r := range h.Roles() {
		got = append(got, r.Name)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

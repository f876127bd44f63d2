package runtime_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// configured opens a house in dir, puts configurations in force one after
// another, and gives the role worker as it is then.
func configured(t *testing.T, dir string, setups ...runtime.OrgConfig) (*house, org.Role) {
	t.Helper()
	h := open(t, dir, once(do("find_role_by_name", obj{"name": "x"})))
	for _, s := range setups {
		if err := h.Configure(s); err != nil {
			t.Fatal(err)
		}
	}
	role, _ := h.Org().RoleNamed("worker")
	return h, role
}

func roles(specs ...org.RoleSpec) runtime.OrgConfig { return runtime.OrgConfig{Roles: specs} }

func TestAConfigurationMakesItsRolesOnce(t *testing.T) {
	dir := scratch(t)
	s := roles(org.RoleSpec{Name: "worker", Prompt: "work", Model: "m", Use: use("artifact"), Limits: org.Limits{Rounds: 3}}, org.RoleSpec{Name: "other"})
	h, first := configured(t, dir, s, s)
	if first.CreatedBy != org.CreatorConfig || first.Revision != 1 || first.Prompt != "work" || first.Model != "m" || first.Limits.Rounds != 3 {
		t.Errorf("made %+v", first)
	}
	h.leave(t)
	h, again := configured(t, dir, s)
	if diff := cmp.Diff(string(encode(first)), string(encode(again))); diff != "" {
		t.Errorf("the same configuration changed its role (-first +again):\n%s", diff)
	}
	if n := len(said[journal.RoleChanged](t, h)); n != 2 {
		t.Errorf("%d changes of roles on record, want the making of two", n)
	}
}

func TestAConfigurationChangesWhatIsDifferent(t *testing.T) {
	whole := org.RoleSpec{Name: "worker", Prompt: "work", Model: "m", Use: use("artifact"), Grant: use(), Limits: org.Limits{Rounds: 3}}
	for _, c := range []struct {
		name   string
		change func(*org.RoleSpec)
		right  func(org.Role) bool
	}{
		{"another prompt", func(s *org.RoleSpec) { s.Prompt = "rest" }, func(r org.Role) bool { return r.Prompt == "rest" }},
		{"no prompt", func(s *org.RoleSpec) { s.Prompt = "" }, func(r org.Role) bool { return r.Prompt == "" }},
		{"another model", func(s *org.RoleSpec) { s.Model = "n" }, func(r org.Role) bool { return r.Model == "n" }},
		{"the default model", func(s *org.RoleSpec) { s.Model = "" }, func(r org.Role) bool { return r.Model == "" }},
		{"another limit", func(s *org.RoleSpec) { s.Limits.Rounds = 4 }, func(r org.Role) bool { return r.Limits.Rounds == 4 }},
		{"no limit", func(s *org.RoleSpec) { s.Limits = org.Limits{} }, func(r org.Role) bool { return r.Limits.Rounds == 0 }},
		{"other groups", func(s *org.RoleSpec) { s.Use = use("console") }, func(r org.Role) bool { return r.Use.Equal(*use("console")) }},
		{"no groups", func(s *org.RoleSpec) { s.Use = use() }, func(r org.Role) bool { return r.Use.Equal(*use()) }},
		{"the default groups", func(s *org.RoleSpec) { s.Use = nil }, func(r org.Role) bool { return r.Use.IsAll() }},
		{"a grant", func(s *org.RoleSpec) { s.Grant = use("network") }, func(r org.Role) bool { return r.Grant.Equal(*use("network")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := whole
			c.change(&next)
			_, role := configured(t, "", roles(whole), roles(next), roles(next))
			if !c.right(role) || role.Revision != 2 {
				t.Errorf("after the change, and the same again: revision %d, %s", role.Revision, encode(role))
			}
			_, role = configured(t, "", roles(whole), roles(next), roles(whole))
			if !role.Matches(whole) || role.Revision != 3 {
				t.Errorf("after the change back: revision %d, %s", role.Revision, encode(role))
			}
		})
	}
}

func TestARoleThatTheConfigurationNoLongerHasIsDeleted(t *testing.T) {
	dir := scratch(t)
	worker, other := org.RoleSpec{Name: "worker"}, org.RoleSpec{Name: "other"}
	h, _ := configured(t, dir, roles(worker, other))
	if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "by hand"}); err != nil {
		t.Fatal(err)
	}
	h.leave(t)
	h, gone := configured(t, dir, roles(other))
	if gone.ID != "" {
		t.Errorf("worker is there still: %+v", gone)
	}
	var names []string
	for _, r := range h.Org().Roles() {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"by hand", "other"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.leave(t)
	if _, back := configured(t, dir, roles(worker, other)); back.Status != org.Active {
		t.Errorf("a role that comes back: %+v", back)
	}
}

func TestAConfigurationDoesNotTakeARoleFromItsMaker(t *testing.T) {
	h := open(t, "", brain(team))
	if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "worker", Use: use()}); err != nil {
		t.Fatal(err)
	}
	if err := h.Configure(roles(org.RoleSpec{Name: "worker"})); errcode.Of(err) != errcode.RoleExists {
		t.Errorf("%v, want role_exists", err)
	}
	if err := h.Configure(roles()); err != nil {
		t.Error(err)
	}
	role, ok := h.Org().RoleNamed("worker")
	if !ok || role.CreatedBy != org.CreatorOperator || !role.Use.Equal(toolgroups.Of()) {
		t.Errorf("the role is now %+v", role)
	}
}

func TestAConfigurationThatIsRefusedChangesNothing(t *testing.T) {
	h := open(t, "", brain(team))
	if _, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "taken", Use: use()}); err != nil {
		t.Fatal(err)
	}
	if err := h.Configure(roles(org.RoleSpec{Name: "worker", Prompt: "work", Use: use()}, org.RoleSpec{Name: "other"})); err != nil {
		t.Fatal(err)
	}
	before, limit := encode(h.Org().Roles()), h.ArtifactLimit()
	for name, spec := range map[string]org.RoleSpec{
		"a name that is taken":            {Name: "taken"},
		"a pattern there is not":          {Name: "worker", Pattern: "dance"},
		"a pattern there is not, of none": {Name: "new", Pattern: "dance"},
	} {
		t.Run(name, func(t *testing.T) {
			s := roles(org.RoleSpec{Name: "first"}, spec)
			s.Storage.ArtifactBytes = limit + 1
			if h.Plan(s) == nil || h.Configure(s) == nil {
				t.Error("it was not refused")
			}
			if diff := cmp.Diff(string(before), string(encode(h.Org().Roles()))); diff != "" || h.ArtifactLimit() != limit {
				t.Errorf("it changed something: limit %d\n%s", h.ArtifactLimit(), diff)
			}
		})
	}
}

// What an earlier configuration said and the next leaves out is as before both.
func TestALimitThatAConfigurationLeavesOutIsTheRuntimesOwn(t *testing.T) {
	h := open(t, "", brain(team))
	own := h.ArtifactLimit()
	for _, c := range []struct{ says, want int64 }{{own + 1, own + 1}, {0, own}} {
		s := roles()
		s.Storage.ArtifactBytes = c.says
		if err := h.Configure(s); err != nil || h.ArtifactLimit() != c.want {
			t.Errorf("a configuration of %d: limit %d, %v; want %d", c.says, h.ArtifactLimit(), err, c.want)
		}
	}
}

// Agents are at work while configurations come and go: every task ends well, and
// under the last configuration the next one has its tools.
func TestAConfigurationComesInForceBesideAgentsAtWork(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if answers(r) < 5 {
			return do("get_artifact", obj{"artifactRef": "artifact:none"})
		}
		return end("done")
	}))
	wide, narrow := org.RoleSpec{Name: "worker", Use: use("artifact", "console")}, org.RoleSpec{Name: "worker", Use: use("artifact")}
	if err := h.Configure(roles(wide)); err != nil {
		t.Fatal(err)
	}
	role, _ := h.Org().RoleNamed("worker")
	stop, changed := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			s := roles([]org.RoleSpec{wide, narrow}[n%2], org.RoleSpec{Name: "other", Prompt: strconv.Itoa(n)})
			s.Storage.ArtifactBytes, s.RootPrompt, s.Rounds = int64(1000+n), strconv.Itoa(n), 100+n
			err := h.Configure(s)
			select {
			case <-stop:
				changed <- err
				return
			default:
				if err != nil {
					changed <- err
					return
				}
			}
		}
	}()
	for range 10 {
		if task := h.run(t, org.TaskSpec{Text: "go", Role: string(role.ID)}); task.Status != org.Done {
			t.Errorf("the task is %s: %+v", task.Status, task.Error)
		}
	}
	close(stop)
	if err := <-changed; err != nil {
		t.Error(err)
	}
}

func TestRolesCreatedWithoutToolGroupsGetTheDefault(t *testing.T) {
	for _, c := range []struct {
		name      string
		preset    *toolgroups.Set
		use, root toolgroups.Set
	}{
		{"nothing said", nil, toolgroups.All(), toolgroups.All()},
		{"a list", use("artifact", "org_management"), *use("artifact", "org_management"), *use("artifact", "org_management")},
		{"none", use(), *use(), *use()},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, "", brain(func(r model.Request) model.Answer {
				if answers(r) == 0 {
					return do("create_role", obj{"name": "made", "rolePrompt": ""})
				}
				return end("made")
			}))
			if err := h.Configure(runtime.OrgConfig{Default: c.preset, Roles: []org.RoleSpec{{Name: "worker"}, {Name: "own", Use: use("console")}}}); err != nil {
				t.Fatal(err)
			}
			h.run(t, org.TaskSpec{})
			for name, want := range map[string]toolgroups.Set{"worker": c.use, "made": c.root, "own": toolgroups.Of("console")} {
				role, _ := h.Org().RoleNamed(name)
				grant := toolgroups.Set{}
				if want.Has(toolgroups.OrgManagement) {
					grant = want
				}
				if !role.Use.Equal(want) || !role.Grant.Equal(grant) {
					t.Errorf("%s: use %v, grant %v; want %v, %v", name, role.Use, role.Grant, want, grant)
				}
			}
		})
	}
}

func TestWhatIsKeptIsFoundByItsHash(t *testing.T) {
	h := open(t, "", brain(team))
	hash, err := h.PutBlob([]byte("kind: role"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := h.Blob(t.Context(), hash); err != nil || string(got) != "kind: role" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := h.Blob(t.Context(), "nothing"); errcode.Of(err) != errcode.ArtifactNotFound {
		t.Errorf("nothing: %v", err)
	}
}

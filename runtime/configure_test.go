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

// configuredFixture opens a fixture in dir, applies configurations one after
// another and returns the resulting role worker.
func configuredFixture(t *testing.T, dir string, setups ...runtime.OrgConfig) (*fixture, org.Role) {
	t.Helper()
	fx := openFixture(t, dir, answerOnce(callTools("find_role_by_name", obj{"name": "x"})))
	for _, s := range setups {
		if err := fx.ApplyConfig(s); err != nil {
			t.Fatal(err)
		}
	}
	role, _ := fx.Org().RoleByName("worker")
	return fx, role
}

func withRoles(specs ...org.RoleSpec) runtime.OrgConfig { return runtime.OrgConfig{Roles: specs} }

func TestConfigure_CreatesRolesOnce(t *testing.T) {
	dir := fastTempDir(t)
	s := withRoles(org.RoleSpec{Name: "worker", Prompt: "work", Model: "m", Use: groupSet("artifact"), Limits: org.AgentLimits{Rounds: 3}}, org.RoleSpec{Name: "other"})
	fx, first := configuredFixture(t, dir, s, s)
	if first.CreatedBy != org.CreatorConfig || first.Revision != 1 || first.Prompt != "work" || first.Model != "m" || first.Limits.Rounds != 3 {
		t.Errorf("created %+v", first)
	}
	fx.shutdown(t)
	fx, again := configuredFixture(t, dir, s)
	if diff := cmp.Diff(string(mustJSON(first)), string(mustJSON(again))); diff != "" {
		t.Errorf("the same configuration changed its role (-first +again):\n%s", diff)
	}
	if n := len(bodiesOf[journal.RoleChanged](t, fx)); n != 2 {
		t.Errorf("%d role changes recorded, want 2", n)
	}
}

func TestConfigure_UpdatesChangedFields(t *testing.T) {
	whole := org.RoleSpec{Name: "worker", Prompt: "work", Model: "m", Use: groupSet("artifact"), Grant: groupSet(), Limits: org.AgentLimits{Rounds: 3}}
	for _, c := range []struct {
		name   string
		change func(*org.RoleSpec)
		check  func(org.Role) bool
	}{
		{"another prompt", func(s *org.RoleSpec) { s.Prompt = "rest" }, func(r org.Role) bool { return r.Prompt == "rest" }},
		{"no prompt", func(s *org.RoleSpec) { s.Prompt = "" }, func(r org.Role) bool { return r.Prompt == "" }},
		{"another model", func(s *org.RoleSpec) { s.Model = "n" }, func(r org.Role) bool { return r.Model == "n" }},
		{"the default model", func(s *org.RoleSpec) { s.Model = "" }, func(r org.Role) bool { return r.Model == "" }},
		{"another limit", func(s *org.RoleSpec) { s.Limits.Rounds = 4 }, func(r org.Role) bool { return r.Limits.Rounds == 4 }},
		{"no limit", func(s *org.RoleSpec) { s.Limits = org.AgentLimits{} }, func(r org.Role) bool { return r.Limits.Rounds == 0 }},
		{"other groups", func(s *org.RoleSpec) { s.Use = groupSet("console") }, func(r org.Role) bool { return r.Use.Equal(*groupSet("console")) }},
		{"no groups", func(s *org.RoleSpec) { s.Use = groupSet() }, func(r org.Role) bool { return r.Use.Equal(*groupSet()) }},
		{"the default groups", func(s *org.RoleSpec) { s.Use = nil }, func(r org.Role) bool { return r.Use.IsAll() }},
		{"a grant", func(s *org.RoleSpec) { s.Grant = groupSet("network") }, func(r org.Role) bool { return r.Grant.Equal(*groupSet("network")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := whole
			c.change(&next)
			_, role := configuredFixture(t, "", withRoles(whole), withRoles(next), withRoles(next))
			if !c.check(role) || role.Revision != 2 {
				t.Errorf("after the change, and the same again: revision %d, %s", role.Revision, mustJSON(role))
			}
			_, role = configuredFixture(t, "", withRoles(whole), withRoles(next), withRoles(whole))
			if !role.MatchesSpec(whole) || role.Revision != 3 {
				t.Errorf("after the change back: revision %d, %s", role.Revision, mustJSON(role))
			}
		})
	}
}

func TestConfigure_DeletesRemovedRoles(t *testing.T) {
	dir := fastTempDir(t)
	worker, other := org.RoleSpec{Name: "worker"}, org.RoleSpec{Name: "other"}
	fx, _ := configuredFixture(t, dir, withRoles(worker, other))
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "by hand"}); err != nil {
		t.Fatal(err)
	}
	fx.shutdown(t)
	fx, gone := configuredFixture(t, dir, withRoles(other))
	if gone.ID != "" {
		t.Errorf("worker still exists: %+v", gone)
	}
	var names []string
	for _, r := range fx.Org().ListRoles() {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"by hand", "other"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fx.shutdown(t)
	if _, back := configuredFixture(t, dir, withRoles(worker, other)); back.Status != org.Active {
		t.Errorf("a role that is configured again: %+v", back)
	}
}

func TestConfigure_KeepsRolesOfOtherCreators(t *testing.T) {
	fx := openFixture(t, "", answerFunc(delegateWithDenial))
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet()}); err != nil {
		t.Fatal(err)
	}
	if err := fx.ApplyConfig(withRoles(org.RoleSpec{Name: "worker"})); errcode.CodeOf(err) != errcode.RoleExists {
		t.Errorf("%v, want role_exists", err)
	}
	if err := fx.ApplyConfig(withRoles()); err != nil {
		t.Error(err)
	}
	role, ok := fx.Org().RoleByName("worker")
	if !ok || role.CreatedBy != org.CreatorOperator || !role.Use.Equal(toolgroups.SetOf()) {
		t.Errorf("the role is now %+v", role)
	}
}

func TestConfigure_RejectedChangesNothing(t *testing.T) {
	fx := openFixture(t, "", answerFunc(delegateWithDenial))
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "taken", Use: groupSet()}); err != nil {
		t.Fatal(err)
	}
	if err := fx.ApplyConfig(withRoles(org.RoleSpec{Name: "worker", Prompt: "work", Use: groupSet()}, org.RoleSpec{Name: "other"})); err != nil {
		t.Fatal(err)
	}
	before, limit := mustJSON(fx.Org().ListRoles()), fx.ToolHost().ArtifactLimit()
	for name, spec := range map[string]org.RoleSpec{
		"a name that is taken":             {Name: "taken"},
		"an unknown pattern":               {Name: "worker", Pattern: "dance"},
		"an unknown pattern of a new role": {Name: "new", Pattern: "dance"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withRoles(org.RoleSpec{Name: "first"}, spec)
			s.Storage.ArtifactBytes = limit + 1
			if fx.ApplyConfig(s) == nil {
				t.Error("it was not rejected")
			}
			if diff := cmp.Diff(string(before), string(mustJSON(fx.Org().ListRoles()))); diff != "" || fx.ToolHost().ArtifactLimit() != limit {
				t.Errorf("it changed something: limit %d\n%s", fx.ToolHost().ArtifactLimit(), diff)
			}
		})
	}
}

// A limit that a configuration leaves out has the default of the Runtime, not
// the previous value.
func TestConfigure_OmittedLimitIsRuntimeDefault(t *testing.T) {
	fx := openFixture(t, "", answerFunc(delegateWithDenial))
	own := fx.ToolHost().ArtifactLimit()
	for _, c := range []struct{ says, want int64 }{{own + 1, own + 1}, {0, own}} {
		s := withRoles()
		s.Storage.ArtifactBytes = c.says
		if err := fx.ApplyConfig(s); err != nil || fx.ToolHost().ArtifactLimit() != c.want {
			t.Errorf("a configuration of %d: limit %d, %v; want %d", c.says, fx.ToolHost().ArtifactLimit(), err, c.want)
		}
	}
}

// Configurations are replaced while agents are active. Every task completes.
func TestConfigure_ConcurrentWithActiveAgents(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) < 5 {
			return callTools("get_artifact", obj{"artifactRef": "artifact:none"})
		}
		return endWith("done")
	}))
	wide, narrow := org.RoleSpec{Name: "worker", Use: groupSet("artifact", "console")}, org.RoleSpec{Name: "worker", Use: groupSet("artifact")}
	if err := fx.ApplyConfig(withRoles(wide)); err != nil {
		t.Fatal(err)
	}
	role, _ := fx.Org().RoleByName("worker")
	stop, changed := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			s := withRoles([]org.RoleSpec{wide, narrow}[n%2], org.RoleSpec{Name: "other", Prompt: strconv.Itoa(n)})
			s.Storage.ArtifactBytes, s.RootPrompt, s.Rounds = int64(1000+n), strconv.Itoa(n), 100+n
			err := fx.ApplyConfig(s)
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
		if task := fx.run(t, org.TaskSpec{Text: "go", Role: string(role.ID)}); task.Status != org.Done {
			t.Errorf("the task is %s: %+v", task.Status, task.Error)
		}
	}
	close(stop)
	if err := <-changed; err != nil {
		t.Error(err)
	}
}

func TestConfigure_DefaultToolGroups(t *testing.T) {
	for _, c := range []struct {
		name      string
		defaults  *toolgroups.GroupSet
		use, root toolgroups.GroupSet
	}{
		{"no default", nil, toolgroups.AllGroups(), toolgroups.AllGroups()},
		{"a list", groupSet("artifact", "org_management"), *groupSet("artifact", "org_management"), *groupSet("artifact", "org_management")},
		{"none", groupSet(), *groupSet(), *groupSet()},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
				if answerCount(r) == 0 {
					return callTools("create_role", obj{"name": "made", "rolePrompt": ""})
				}
				return endWith("made")
			}))
			if err := fx.ApplyConfig(runtime.OrgConfig{Default: c.defaults, Roles: []org.RoleSpec{{Name: "worker"}, {Name: "own", Use: groupSet("console")}}}); err != nil {
				t.Fatal(err)
			}
			fx.run(t, org.TaskSpec{})
			for name, want := range map[string]toolgroups.GroupSet{"worker": c.use, "made": c.root, "own": toolgroups.SetOf("console")} {
				role, _ := fx.Org().RoleByName(name)
				grant := toolgroups.GroupSet{}
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

// What root may grant is stored with the configuration, and holds after a restart without
// one. A recorded configuration does not change it.
func TestConfigure_StoresRootGrant(t *testing.T) {
	dir := fastTempDir(t)
	fx, _ := configuredFixture(t, dir, runtime.OrgConfig{Grant: groupSet("artifact")})
	epoch := fx.Org().CurrentEpoch()
	want := func(grant toolgroups.GroupSet) {
		t.Helper()
		if got := fx.Org().RootGrant(); !got.Set.Equal(grant) || fx.Org().CurrentEpoch() < epoch {
			t.Errorf("root may grant %v in epoch %d, want %v in %d or later", got.Set, fx.Org().CurrentEpoch(), grant, epoch)
		}
	}
	want(*groupSet("artifact"))
	fx.shutdown(t)
	fx, _ = configuredFixture(t, dir)
	want(*groupSet("artifact"))
	fx.shutdown(t)
	fx, _ = configuredFixture(t, dir, runtime.OrgConfig{KeepRoles: true})
	want(*groupSet("artifact"))
	fx.shutdown(t)
	fx, _ = configuredFixture(t, dir, runtime.OrgConfig{})
	want(toolgroups.AllGroups())
	fx.shutdown(t)
	fx, _ = configuredFixture(t, dir)
	want(toolgroups.AllGroups())
}

func TestPutBlob_ReadByHash(t *testing.T) {
	fx := openFixture(t, "", answerFunc(delegateWithDenial))
	hash, err := fx.ArtifactStore().PutBlob([]byte("kind: role"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fx.ArtifactStore().ReadBlob(t.Context(), hash); err != nil || string(got) != "kind: role" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := fx.ArtifactStore().ReadBlob(t.Context(), "nothing"); errcode.CodeOf(err) != errcode.ArtifactNotFound {
		t.Errorf("unknown hash: %v", err)
	}
}

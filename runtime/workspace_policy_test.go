package runtime_test

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// policyFixture is a fixture with the configured roles reader and writer.
type policyFixture struct {
	*fixture
	cfg runtime.OrgConfig
}

func openPolicyFixture(t *testing.T, cfg fixtureConfig, p runtime.WorkspacePolicy) *policyFixture {
	t.Helper()
	use := groupSet("workspace", "org_management")
	fx := &policyFixture{cfg.open(t), runtime.OrgConfig{Roles: []org.RoleSpec{{Name: "reader", Use: use, Grant: use}, {Name: "writer", Use: use, Grant: use}}}}
	fx.apply(t, p)
	return fx
}

// apply replaces the policy.
func (fx *policyFixture) apply(t *testing.T, p runtime.WorkspacePolicy) {
	t.Helper()
	fx.cfg.Workspaces = p
	if err := fx.ApplyConfig(fx.cfg); err != nil {
		t.Fatal(err)
	}
}

// caller returns a caller in a configured role.
func (fx *policyFixture) caller(t *testing.T, user identity.UserName, role string) identity.Principal {
	t.Helper()
	r, ok := fx.Org().ConfiguredRole(role)
	if !ok {
		t.Fatalf("there is no role %s", role)
	}
	return identity.ByCaller(user, r.ID)
}

// dirOf returns the directory in which a caller works, and whether it is read-only.
func (fx *policyFixture) dirOf(t *testing.T, by identity.Principal) (string, bool) {
	t.Helper()
	ws, err := fx.ToolHost().OpenWorkspace(t.Context(), by)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Root.Close()
	return ws.Root.Name(), ws.ReadOnly
}

// newWorkspace returns a workspace in a new directory with one file that is named like it.
func newWorkspace(t *testing.T, name string) runtime.Workspace {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "of-"+name), []byte(name), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return runtime.Workspace{Name: name, Path: dir}
}

// answerWithList is a model that lists its workspace and answers with the result.
func answerWithList(r model.Request) model.Answer {
	if answerCount(r) == 0 {
		return callTools("list_files", obj{})
	}
	return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
}

// named returns workspaces by name.
func named(list ...runtime.Workspace) map[string]runtime.Workspace {
	all := map[string]runtime.Workspace{}
	for _, ws := range list {
		all[ws.Name] = ws
	}
	return all
}

// The token's workspace counts, else that of the role, else the default, else a caller has a
// private directory. Roles and tokens of the same name that are not configured do not count.
func TestWorkspacePolicy_Precedence(t *testing.T) {
	ofToken, ofRole, ofAll := newWorkspace(t, "token"), newWorkspace(t, "role"), newWorkspace(t, "all")
	ofRole.ReadOnly = true
	tokens := map[identity.UserName]runtime.TokenWorkspace{
		"ann": {Workspace: ofToken, Role: "reader"}, "root": {Workspace: ofToken}, "bob": {Role: "reader"},
	}
	roles := map[string]runtime.Workspace{"reader": ofRole, "guest": ofRole}
	fx := openPolicyFixture(t, fixtureConfig{}, runtime.WorkspacePolicy{Named: named(ofToken, ofRole, ofAll), Tokens: tokens, Roles: roles, Default: ofAll})
	guest, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "guest", Use: groupSet("workspace")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by   identity.Principal
		want runtime.Workspace
	}{
		{fx.caller(t, "ann", "reader"), ofToken},
		{fx.caller(t, "ann", "writer"), ofAll}, // the token has another role
		{fx.caller(t, "root", "writer"), ofToken},
		{fx.caller(t, "bob", "reader"), ofRole},
		{fx.caller(t, "eve", "reader"), ofRole},
		{fx.caller(t, "eve", "writer"), ofAll},
		{identity.ByCaller("eve", guest.ID), ofAll}, // not the configured role
	} {
		if dir, readOnly := fx.dirOf(t, c.by); dir != c.want.Path || readOnly != c.want.ReadOnly {
			t.Errorf("%s works in %s, read-only %v; want %+v", c.by, dir, readOnly, c.want)
		}
	}
	fx.apply(t, runtime.WorkspacePolicy{Named: named(ofAll)})
	for _, user := range []identity.UserName{"ann", "root"} {
		if dir, _ := fx.dirOf(t, fx.caller(t, user, "reader")); !strings.Contains(dir, "callers") {
			t.Errorf("%s works in %s without a policy", user, dir)
		}
	}
}

// Config.Workspace is the default, whatever the configuration says.
func TestWorkspacePolicy_ProcessDefault(t *testing.T) {
	ours, theirs := newWorkspace(t, "ours"), newWorkspace(t, "theirs")
	fx := openPolicyFixture(t, fixtureConfig{configure: func(c *runtime.Config) { c.Workspace, c.WorkspaceReadOnly = ours.Path, true }},
		runtime.WorkspacePolicy{Default: theirs, Roles: map[string]runtime.Workspace{"reader": theirs}})
	if dir, readOnly := fx.dirOf(t, fx.caller(t, "ann", "writer")); dir != ours.Path || !readOnly {
		t.Errorf("got %s, read-only %v", dir, readOnly)
	}
	if dir, _ := fx.dirOf(t, fx.caller(t, "ann", "reader")); dir != theirs.Path {
		t.Errorf("got %s, want the workspace of the role", dir)
	}
}

// The task of a caller works in the caller's workspace, with or without its name. Any other
// name causes one error, whether or not there is such a workspace. A path is denied.
func TestWorkspacePolicy_TaskOfCaller(t *testing.T) {
	own, other := newWorkspace(t, "own"), newWorkspace(t, "other")
	fx := openPolicyFixture(t, fixtureConfig{model: answerFunc(answerWithList)}, runtime.WorkspacePolicy{Named: named(own, other), Roles: map[string]runtime.Workspace{"reader": own}})
	ann := fx.caller(t, "ann", "reader")
	for _, name := range []string{"", "own"} {
		task := fx.run(t, org.TaskSpec{Text: "x", Caller: ann, Role: "reader", WorkspaceName: name})
		if got := string(task.Result); !strings.Contains(got, "of-own") {
			t.Errorf("%q: got %s", name, got)
		}
	}
	var texts []string
	for _, name := range []string{"other", "absent", "own/", "../own", "own/../own", "."} {
		_, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: ann, Role: "reader", WorkspaceName: name})
		if errcode.CodeOf(err) != errcode.WorkspaceNotBound {
			t.Errorf("%q: got %v", name, err)
			continue
		}
		texts = append(texts, strings.ReplaceAll(errcode.Message(err), name, "NAME"))
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("errors differ: %q and %q", texts[0], text)
		}
	}
	_, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: ann, Role: "reader", Workspace: own.Path})
	if errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("a caller names a path: %v", err)
	}
	eve := fx.caller(t, "eve", "writer") // has a private directory
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: eve, Role: "writer", WorkspaceName: "own"}); errcode.CodeOf(err) != errcode.WorkspaceNotBound {
		t.Errorf("got %v", err)
	}
	if task := fx.run(t, org.TaskSpec{Text: "x", Role: "reader", WorkspaceName: "other"}); !strings.Contains(string(task.Result), "of-other") {
		t.Errorf("the operator names a workspace: %s", task.Result)
	}
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: operator, WorkspaceName: "absent"}); errcode.CodeOf(err) != errcode.WorkspaceNotBound {
		t.Errorf("got %v", err)
	}
}

// The tasks of a caller whose role has tasks.as work in the workspace of that role. The
// caller's own calls do not.
func TestWorkspacePolicy_TasksAs(t *testing.T) {
	own, other := newWorkspace(t, "own"), newWorkspace(t, "other")
	fx := openPolicyFixture(t, fixtureConfig{model: answerFunc(answerWithList)}, runtime.WorkspacePolicy{Named: named(own, other), Roles: map[string]runtime.Workspace{"reader": own, "writer": other}})
	fx.cfg.Roles[0].TasksAs = new("writer")
	fx.apply(t, fx.cfg.Workspaces)
	ann := fx.caller(t, "ann", "reader")
	if dir, _ := fx.dirOf(t, ann); dir != own.Path {
		t.Errorf("the caller works in %s, want its own", dir)
	}
	for _, name := range []string{"", "other"} {
		task := fx.run(t, org.TaskSpec{Text: "x", Caller: ann, Role: "reader", WorkspaceName: name})
		if got := string(task.Result); !strings.Contains(got, "of-other") {
			t.Errorf("%q: got %s", name, got)
		}
	}
	id, err := fx.StartTask(runtime.WithSessionDir(t.Context(), own.Path), org.TaskSpec{Text: "x", Caller: ann, Role: "reader"})
	if err != nil || !strings.Contains(string(fx.wait(t, id).Result), "of-other") {
		t.Errorf("in a session in the caller's workspace: %v", err)
	}
	outside := runtime.WithSessionDir(t.Context(), filepath.Dir(own.Path))
	if _, err := fx.StartTask(outside, org.TaskSpec{Text: "x", Caller: ann, Role: "reader"}); errcode.CodeOf(err) != errcode.WorkspaceNotBound {
		t.Errorf("in a session elsewhere: %v", err)
	}
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: ann, Role: "reader", WorkspaceName: "own"}); errcode.CodeOf(err) != errcode.WorkspaceNotBound {
		t.Errorf("got %v, want workspace_not_bound", err)
	}
}

// A request that is repeated with its key finds its task, although the caller's workspace has
// changed meanwhile.
func TestWorkspacePolicy_RepeatedRequest(t *testing.T) {
	own, other := newWorkspace(t, "own"), newWorkspace(t, "other")
	fx := openPolicyFixture(t, fixtureConfig{model: answerFunc(answerWithList)}, runtime.WorkspacePolicy{Default: own})
	spec := org.TaskSpec{Text: "x", Caller: fx.caller(t, "ann", "reader"), Role: "reader", Key: "k"}
	first := fx.start(t, spec)
	fx.apply(t, runtime.WorkspacePolicy{Default: other})
	if again := fx.start(t, spec); again != first {
		t.Errorf("a second task began")
	}
}

// A request can narrow a workspace to reading, never widen it.
func TestWorkspacePolicy_ReadOnlyHolds(t *testing.T) {
	for _, c := range []struct{ configured, asked, want bool }{{false, false, false}, {true, false, true}, {false, true, true}, {true, true, true}} {
		ws := newWorkspace(t, "w")
		ws.ReadOnly = c.configured
		fx := openPolicyFixture(t, fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
			if answerCount(r) == 0 {
				return callTools("write_file", obj{"path": "f", "content": "x"})
			}
			return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
		})}, runtime.WorkspacePolicy{Named: named(ws), Default: ws})
		for _, spec := range []org.TaskSpec{{Caller: fx.caller(t, "ann", "reader")}, {WorkspaceName: "w"}} {
			spec.Text, spec.Role, spec.ReadOnly = "x", "reader", c.asked
			if got := strings.Contains(string(fx.run(t, spec).Result), string(errcode.WorkspaceReadOnly)); got != c.want {
				t.Errorf("configured %v, asked %v, by %s: read-only is %v, want %v", c.configured, c.asked, spec.Caller, got, c.want)
			}
		}
	}
}

// A change of the configuration holds for the next call. A task keeps its workspace, but is
// denied when its caller may not use it any more.
func TestWorkspacePolicy_ChangeHoldsAtOnce(t *testing.T) {
	own, other := newWorkspace(t, "own"), newWorkspace(t, "other")
	readOnly := own
	readOnly.ReadOnly = true
	for name, c := range map[string]struct {
		spec org.TaskSpec
		now  runtime.WorkspacePolicy
		want string
	}{
		"the same":            {org.TaskSpec{Caller: identity.Principal{Kind: identity.Caller}}, runtime.WorkspacePolicy{Default: own}, `"ok":true`},
		"another":             {org.TaskSpec{Caller: identity.Principal{Kind: identity.Caller}}, runtime.WorkspacePolicy{Named: named(own), Default: other}, "workspace_not_bound"},
		"none":                {org.TaskSpec{Caller: identity.Principal{Kind: identity.Caller}}, runtime.WorkspacePolicy{Named: named(own)}, "workspace_not_bound"},
		"read-only":           {org.TaskSpec{Caller: identity.Principal{Kind: identity.Caller}}, runtime.WorkspacePolicy{Default: readOnly}, "workspace_read_only"},
		"operator, kept":      {org.TaskSpec{Caller: operator, WorkspaceName: "own"}, runtime.WorkspacePolicy{Named: named(own)}, `"ok":true`},
		"operator, removed":   {org.TaskSpec{Caller: operator, WorkspaceName: "own"}, runtime.WorkspacePolicy{Named: named(other)}, "workspace_not_bound"},
		"operator, read-only": {org.TaskSpec{Caller: operator, WorkspaceName: "own"}, runtime.WorkspacePolicy{Named: named(readOnly)}, "workspace_read_only"},
		"operator, by path":   {org.TaskSpec{Caller: operator, Workspace: own.Path}, runtime.WorkspacePolicy{}, `"ok":true`},
	} {
		free := make(chan struct{})
		fx := openPolicyFixture(t, fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
			if answerCount(r) == 0 {
				<-free
				return callTools("write_file", obj{"path": "f", "content": "x"})
			}
			return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
		})}, runtime.WorkspacePolicy{Named: named(own), Default: own})
		spec := c.spec
		if spec.Caller.Kind == identity.Caller {
			spec.Caller = fx.caller(t, "ann", "reader")
		}
		spec.Text, spec.Role = "x", "reader"
		id := fx.start(t, spec)
		fx.apply(t, c.now)
		close(free)
		if got := string(fx.wait(t, id).Result); !strings.Contains(got, c.want) || strings.Contains(got, own.Path) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// The directory of a session is the workspace of its caller or below it.
func TestWorkspacePolicy_SessionDir(t *testing.T) {
	ws, outside := newWorkspace(t, "w"), newWorkspace(t, "outside")
	inner := filepath.Join(ws.Path, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	fx := openPolicyFixture(t, fixtureConfig{model: answerFunc(answerWithList)}, runtime.WorkspacePolicy{Default: ws})
	ann := fx.caller(t, "ann", "reader")
	for dir, want := range map[string]errcode.Code{
		ws.Path: "", inner: "", outside.Path: errcode.WorkspaceNotBound, filepath.Dir(ws.Path): errcode.WorkspaceNotBound,
		inner + "/../..": errcode.WorkspaceNotBound, "/": errcode.WorkspaceNotBound, "inner": errcode.WorkspaceNotBound,
		ws.Path + "2": errcode.WorkspaceNotBound, filepath.Join(ws.Path, "absent"): errcode.ToolUnavailable,
	} {
		ctx := runtime.WithSessionDir(t.Context(), dir)
		a, err := fx.InvokeTool(ctx, ann, "list_files", mustJSON(obj{}))
		if err != nil || a.Code() != want {
			t.Errorf("%s: got %q, %v; want %q", dir, a.Code(), err, want)
		}
		id, err := fx.StartTask(ctx, org.TaskSpec{Text: "x", Caller: ann, Role: "reader"})
		if got := errcode.CodeOf(err); err != nil && got != want || err == nil && want != "" {
			t.Errorf("task in %s: got %v, want %q", dir, err, want)
		}
		if err == nil {
			if got := string(fx.wait(t, id).Result); strings.Contains(got, "of-w") != (dir == ws.Path) || strings.Contains(got, "outside") {
				t.Errorf("%s: the task sees %s", dir, got)
			}
		}
	}
	if err := os.Rename(inner, inner+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside.Path, inner); err != nil {
		t.Skip(err)
	}
	if a, err := fx.InvokeTool(runtime.WithSessionDir(t.Context(), inner), ann, "list_files", mustJSON(obj{})); err != nil || a.Code() != errcode.ToolUnavailable {
		t.Errorf("a session follows a link out of the workspace: %v, %v", a.Result, err)
	}
}

// A workspace that is removed while it is in use is reported without its path, and works
// again when it is back.
func TestWorkspacePolicy_RemovedWhileInUse(t *testing.T) {
	ws := newWorkspace(t, "w")
	fx := openPolicyFixture(t, fixtureConfig{}, runtime.WorkspacePolicy{Default: ws})
	ann := fx.caller(t, "ann", "reader")
	if err := os.RemoveAll(ws.Path); err != nil {
		t.Fatal(err)
	}
	a := fx.invoke(t, ann, "list_files", obj{})
	if a.Code() != errcode.ToolUnavailable || strings.Contains(string(a.Result.JSON()), ws.Path) {
		t.Errorf("got %s", a.Result.JSON())
	}
	if err := os.Mkdir(ws.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := fx.invokeCode(t, ann, "list_files", obj{}); got != "" {
		t.Errorf("got %q", got)
	}
}

// A configured workspace that contains the data directory, or is in it, is rejected.
func TestRuntime_ResolveWorkspace(t *testing.T) {
	dir := fastTempDir(t)
	fx := fixtureConfig{dir: dir, configure: func(c *runtime.Config) { c.Data = dir }}.open(t)
	for _, path := range []string{dir, filepath.Dir(dir), "/"} {
		if _, err := fx.ResolveWorkspace(path); errcode.CodeOf(err) != errcode.InsufficientPermissions {
			t.Errorf("%s: got %v", path, err)
		}
	}
	inside := filepath.Join(dir, "callers")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{inside, link} {
		if _, err := fx.ResolveWorkspace(path); errcode.CodeOf(err) != errcode.InsufficientPermissions {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := fx.ResolveWorkspace(filepath.Join(dir, "absent")); err == nil {
		t.Error("a directory that does not exist is accepted")
	}
}

// Property: no file tool of a caller reaches a private directory of another caller, or a
// workspace that the caller may not use, whatever the path.
func TestWorkspacePolicy_NoFileToolReachesOthers(t *testing.T) {
	seed := rand.Int63()
	r := rand.New(rand.NewSource(seed))
	own, other := newWorkspace(t, "own"), newWorkspace(t, "other")
	dir := fastTempDir(t)
	fx := openPolicyFixture(t, fixtureConfig{dir: dir}, runtime.WorkspacePolicy{Named: named(own, other), Roles: map[string]runtime.Workspace{"reader": own}})
	ann, eve := fx.caller(t, "ann", "reader"), fx.caller(t, "eve", "writer")
	fx.invoke(t, eve, "write_file", obj{"path": "secret", "content": "secret"})
	private, _ := fx.dirOf(t, eve)
	for name, target := range map[string]string{"l1": private, "l2": other.Path, "l3": filepath.Join(private, "secret"), "l4": "/", "l5": "../" + filepath.Base(other.Path)} {
		if err := os.Symlink(target, filepath.Join(own.Path, name)); err != nil {
			t.Skip(err)
		}
	}
	parts := []string{"..", ".", "", "l1", "l2", "l3", "l4", "l5", "secret", "callers", private[1:], other.Path[1:], filepath.Base(other.Path), "other", "own", "\x00", "..\x2f..", "a"}
	for range short.Count(80, 300) {
		var path []string
		for range 1 + r.Intn(6) {
			path = append(path, parts[r.Intn(len(parts))])
		}
		name := strings.Join(path, "/")
		for tool, args := range map[string]obj{
			"read_file": {"path": name}, "list_files": {"path": name, "pattern": "**"}, "write_file": {"path": name, "content": "taken"}, "get_workspace_info": {},
		} {
			a, err := fx.InvokeTool(t.Context(), ann, tool, mustJSON(args))
			if err != nil {
				t.Fatal(err)
			}
			if text := string(a.Result.JSON()); !a.Result.IsError && (strings.Contains(text, "of-other") || strings.Contains(text, `"content":"secret"`) || strings.Contains(text, `"content":"other"`)) {
				t.Fatalf("seed %d: %s %q reaches others: %s", seed, tool, name, text)
			}
		}
	}
	for path, want := range map[string]string{filepath.Join(private, "secret"): "secret", filepath.Join(other.Path, "of-other"): "other"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("seed %d: %s has %q, %v", seed, path, got, err)
		}
		if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
			t.Errorf("seed %d: %s has %d entries: %v", seed, filepath.Dir(path), len(list), fmt.Sprint(list, err))
		}
	}
}

// Callers in one workspace each have a quota, also after a restart. The tasks of a caller use
// the caller's. A session in a folder of the workspace has no quota of its own.
func TestWorkspacePolicy_OneCallerDoesNotFillIt(t *testing.T) {
	ws := newWorkspace(t, "w")
	if err := os.Mkdir(filepath.Join(ws.Path, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := fixtureConfig{dir: fastTempDir(t), configure: func(c *runtime.Config) { c.Storage.WorkspaceBytes = 100 }, model: answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("write_file", obj{"path": "of the task", "content": strings.Repeat("x", 30)})
		}
		return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
	})}
	policy := runtime.WorkspacePolicy{Named: named(ws), Default: ws}
	fx := openPolicyFixture(t, cfg, policy)
	ann, bob := fx.caller(t, "ann", "reader"), fx.caller(t, "bob", "reader")
	write := func(by identity.Principal, dir, name string, size int, want errcode.Code) {
		t.Helper()
		ctx := t.Context()
		if dir != "" {
			ctx = runtime.WithSessionDir(ctx, dir)
		}
		a, err := fx.InvokeTool(ctx, by, "write_file", mustJSON(obj{"path": name, "content": strings.Repeat("x", size)}))
		if err != nil || a.Code() != want {
			t.Errorf("%s writes %d bytes: %s, %v; want %q", by, size, a.Result.JSON(), err, want)
		}
	}
	write(ann, "", "a", 80, "")
	write(ann, "", "b", 30, errcode.QuotaExceeded)
	write(ann, filepath.Join(ws.Path, "inner"), "b", 30, errcode.QuotaExceeded)
	write(bob, "", "c", 30, "")
	for _, c := range []struct {
		spec org.TaskSpec
		want string
	}{
		{org.TaskSpec{Caller: ann}, "quota_exceeded"}, {org.TaskSpec{Caller: bob}, `"ok":true`}, {org.TaskSpec{WorkspaceName: "w"}, `"ok":true`},
	} {
		c.spec.Text, c.spec.Role = "x", "reader"
		if got := string(fx.run(t, c.spec).Result); !strings.Contains(got, c.want) {
			t.Errorf("task of %s: %s, want %s", c.spec.Caller, got, c.want)
		}
	}
	fx.shutdown(t)
	fx = openPolicyFixture(t, cfg, policy)
	write(ann, "", "b", 30, errcode.QuotaExceeded)
	write(ann, "", "a", 70, "")
	write(ann, "", "b", 30, "")
	write(bob, "", "d", 40, "")
	write(bob, "", "e", 1, errcode.QuotaExceeded)
}

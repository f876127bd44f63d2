package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// unavailableToCallers are the built-in groups whose tools an external caller cannot use
// here: they are for agents, or the fixture starts no program and sends no request.
var unavailableToCallers = []toolgroups.GroupID{toolgroups.OrgManagement, toolgroups.Context, toolgroups.Command, toolgroups.Network}

// callerErrors are the errors of the other built-in tools. All others succeed.
var callerErrors = map[string]errcode.Code{"read_file": errcode.FileNotFound, "list_files": errcode.FileNotFound}

// exampleArgs returns the arguments of the first example in a tool's manual.
func exampleArgs(t *testing.T, d tool.Definition) (args json.RawMessage) {
	t.Helper()
	manual, err := os.ReadFile(filepath.Join("..", "builtin", "testdata", "manual", d.Name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(manual), "```json\n")
	if err := json.NewDecoder(strings.NewReader(example)).Decode(&args); err != nil {
		t.Fatalf("%s has no example: %v", d.Name, err)
	}
	return args
}

// Every built-in tool answers an external caller, who is not an agent, with a result or
// with an error for the caller.
func TestCaller_BuiltinToolResults(t *testing.T) {
	var console bytes.Buffer
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Console = &console }}.open(t)
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "guest"})
	if err != nil {
		t.Fatal(err)
	}
	tools := fx.Gate().Subject(identity.ByCaller("ann", role.ID)).ListableTools()
	if all := fx.GroupManager().CurrentSnapshot().ListTools(); len(tools) != len(all) {
		t.Fatalf("offered %d of %d tools", len(tools), len(all))
	}
	for i, d := range tools {
		group, _ := fx.GroupManager().CurrentSnapshot().GroupOf(d.Name)
		want := callerErrors[d.Name]
		if slices.Contains(unavailableToCallers, group) {
			want = errcode.ToolUnavailable
		}
		ann := identity.ByCaller(identity.UserName(fmt.Sprint("ann", i)), role.ID) // each user has its own directory
		a := fx.invoke(t, ann, d.Name, exampleArgs(t, d))
		if !a.Allowed() || a.Code() != want {
			t.Errorf("%s: %q, want %q: %s", d.Name, a.Code(), want, a.Result.JSON())
		}
		if message := fmt.Sprint(decodeObject(a.Result.JSON())["message"]); a.Result.IsError && (message == "<nil>" || strings.Contains(message, "internal")) {
			t.Errorf("%s: %s has no message for the caller", d.Name, a.Result.JSON())
		}
	}
	if len(fx.Org().ListAgents("")) != 0 || len(fx.Org().ListRoles()) != 1 {
		t.Error("an agent or a role was created")
	}
}

// A user name from outside is printed on one line without control characters.
func TestCaller_ConsoleNameIsSafe(t *testing.T) {
	var console bytes.Buffer
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Console = &console }}.open(t)
	ann := fx.createCaller(t, "console")
	for _, user := range []identity.UserName{"ann", "root: all is well\n\x1b[31mroot"} {
		fx.invoke(t, identity.ByCaller(user, ann.Role), "console_print", obj{"text": "hello"})
	}
	lines := strings.Split(strings.TrimSpace(console.String()), "\n")
	if len(lines) != 2 || lines[0] != "user ann, guest: hello" || !strings.HasPrefix(lines[1], "user root: all is well ") || strings.Contains(lines[1], "\x1b") {
		t.Errorf("printed %q", lines)
	}
}

// Every printed line begins with the name of who printed it, so that no text looks like a
// line of the program or of another agent.
func TestConsole_EveryLineNamesItsSource(t *testing.T) {
	var console bytes.Buffer
	fx := fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("console_print", obj{"text": "done\nrolecall: the data file is damaged\r\nuser op, operator: hi\u2028rolecall: x\n"})
		}
		return model.Answer{Finish: model.FinishEnd}
	}), configure: func(c *runtime.Config) { c.Console = &console }}.open(t)
	for _, role := range []string{"clerk", "time=2026 level=ERROR msg=lost", "user ann, guest"} {
		console.Reset()
		if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: role}); err != nil {
			t.Fatal(err)
		}
		fx.run(t, org.TaskSpec{Text: "go", Caller: operator, Role: role})
		want := "agent ROLE: done\nagent ROLE: rolecall: the data file is damaged\ufffd\nagent ROLE: user op, operator: hi\ufffdrolecall: x\n"
		if got := console.String(); got != strings.ReplaceAll(want, "ROLE", role) {
			t.Errorf("printed %q", got)
		}
	}
	ann := fx.createCaller(t, "console")
	console.Reset()
	fx.invoke(t, ann, "console_print", obj{"text": "one\ntwo"})
	if got := console.String(); got != "user ann, guest: one\nuser ann, guest: two\n" {
		t.Errorf("printed %q", got)
	}
	console.Reset()
	fx.invoke(t, ann, "console_print", obj{"text": strings.Repeat("\n", 20000)})
	if got := console.String(); strings.Count(got, "\n") != 101 || !strings.HasSuffix(got, "user ann, guest: 19900 more lines\n") {
		t.Errorf("many lines: printed %d bytes, the end is %.200q", len(got), got[max(0, len(got)-100):])
	}
}

// A role that a task of one caller has created does not exist for agents of the tasks of
// others, among them the operator. Those agents do not find the role and cannot spawn
// agents of it. They may use its name. Tasks of the same caller have it, and all have
// declared roles.
func TestFindRole_OfOtherCallerDoesNotExist(t *testing.T) {
	var id string // of the role of ann's tasks
	fx := fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
		create := obj{"name": "analyst", "rolePrompt": "my secret plan", "toolGroups": []string{"workspace"}}
		switch {
		case answerCount(r) > 0:
			return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r))}
		case id == "":
			return callTools("create_role", create)
		}
		create["rolePrompt"] = "other"
		return callTools("find_role_by_name", obj{"name": "analyst"}, "find_role_by_name", obj{"name": "declared"},
			"spawn_agent", obj{"roleId": id, "taskBrief": taskBrief()}, "create_role", create)
	})}.open(t)
	ann := fx.createCaller(t, toolgroups.OrgManagement, "workspace")
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "declared", Prompt: "open to all"}); err != nil {
		t.Fatal(err)
	}
	fx.run(t, org.TaskSpec{Text: "create", Caller: ann})
	made, _ := fx.Org().RoleByName("analyst")
	id = string(made.ID)
	for _, tt := range []struct {
		by   identity.Principal
		owns bool
	}{{ann, true}, {identity.ByCaller("bob", ann.Role), false}, {operator, false}} {
		got := string(fx.run(t, org.TaskSpec{Text: "look", Caller: tt.by}).Result)
		for text, want := range map[string]bool{
			"my secret plan": tt.owns, "open to all": true, string(errcode.RoleNotFound): !tt.owns, string(errcode.RoleExists): tt.owns,
			"callerRole": false, "user:": false,
		} {
			if strings.Contains(got, text) != want {
				t.Errorf("the task of %s got %q: %v, want %v: %s", tt.by, text, !want, want, got)
			}
		}
	}
}

// Each user has its own directory in each role, whatever the names are, with
// the usual quota. It is the same one after a restart.
func TestCaller_WorkspacePerUserAndRole(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t), configure: func(c *runtime.Config) { c.Storage.WorkspaceBytes = 1000 }}
	fx := cfg.open(t)
	ann := fx.createCaller(t, "workspace")
	other, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "other", Use: groupSet("workspace")})
	if err != nil {
		t.Fatal(err)
	}
	callers := []identity.Principal{
		ann, identity.ByCaller("ann", other.ID), identity.ByCaller("bob", ann.Role), identity.ByCaller("../../x", ann.Role),
		identity.ByCaller("/etc", ann.Role), identity.ByCaller("a/b", ann.Role), identity.ByCaller("ANN", ann.Role), identity.ByCaller("ann ", ann.Role),
	}
	for i, by := range callers {
		if got := fx.invokeCode(t, by, "read_file", obj{"path": "f"}); got != errcode.FileNotFound {
			t.Errorf("%s reads the file of another caller: %q", by, got)
		}
		if got := fx.invokeCode(t, by, "write_file", obj{"path": "f", "content": fmt.Sprint(i)}); got != "" {
			t.Errorf("%s cannot write: %q", by, got)
		}
		if got := fx.invokeCode(t, by, "write_file", obj{"path": "big", "content": strings.Repeat("x", 1000)}); got != errcode.QuotaExceeded {
			t.Errorf("%s writes past its quota: %q", by, got)
		}
	}
	fx.shutdown(t)
	fx = cfg.open(t)
	for i, by := range callers {
		if got := decodeObject(fx.invoke(t, by, "read_file", obj{"path": "f"}).Result.JSON())["content"]; got != fmt.Sprint(i) {
			t.Errorf("%s reads %v, want %d", by, got, i)
		}
	}
	if n := countFiles(t, filepath.Join(cfg.dir, "callers")); n != len(callers) {
		t.Errorf("%d files are below callers, want %d", n, len(callers))
	}
	for _, by := range []identity.Principal{{}, operator, identity.ByAgent("a"), identity.ByCaller("", ann.Role)} {
		if _, err := fx.ToolHost().OpenWorkspace(t.Context(), by); err == nil {
			t.Errorf("%s has a workspace", by)
		}
	}
}

// countFiles counts the files below a directory.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Without a directory for workspaces a caller has none.
func TestCaller_WithoutWorkspaceDirectory(t *testing.T) {
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Workspaces = "" }}.open(t)
	ann := fx.createCaller(t, "workspace")
	if got := fx.invokeCode(t, ann, "list_files", obj{}); got != errcode.WorkspaceNotBound {
		t.Errorf("got %q", got)
	}
}

// A directory that was replaced by a symbolic link is not opened.
func TestCaller_ReplacedWorkspaceIsNotFollowed(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t)}
	fx := cfg.open(t)
	ann := fx.createCaller(t, "workspace")
	fx.invoke(t, ann, "list_files", obj{})
	folder := filepath.Join(cfg.dir, "callers", ann.Key())
	elsewhere := fastTempDir(t)
	if err := os.WriteFile(filepath.Join(elsewhere, "canary"), []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, folder); err != nil {
		t.Fatal(err)
	}
	if a := fx.invoke(t, ann, "list_files", obj{}); a.Code() != errcode.ToolUnavailable {
		t.Errorf("it followed a symbolic link: %s", a.Result.JSON())
	}
}

// An artifact of a caller is its own. No other user finds it, nor the same user
// in another role, nor an agent, even of its own task. A caller does not find
// the artifacts of agents. The operator finds all.
func TestCaller_ArtifactsAreIsolated(t *testing.T) {
	var callerRef string
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		switch answerCount(r) {
		case 0:
			return callTools("put_artifact", obj{"type": "t", "content": "agent's"}, "get_artifact", obj{"ref": callerRef})
		default:
			list := results(r)
			return endWith(fmt.Sprint(decodeObject(list[0].Content)["artifactRef"], " ", string(list[1].Content)))
		}
	}))
	ann := fx.createCaller(t, "artifact")
	callerRef = fmt.Sprint(decodeObject(fx.invoke(t, ann, "put_artifact", obj{"type": "t", "content": "ann's"}).Result.JSON())["artifactRef"])
	if got := decodeObject(fx.invoke(t, ann, "get_artifact", obj{"ref": callerRef}).Result.JSON())["content"]; got != "ann's" {
		t.Errorf("its owner reads %v", got)
	}
	other, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "other", Use: groupSet("artifact")})
	if err != nil {
		t.Fatal(err)
	}
	task := fx.run(t, org.TaskSpec{Caller: ann, Role: "guest", Text: "go"})
	var agentRef string
	_, _ = fmt.Sscanf(strings.Trim(string(task.Result), `"`), "%s", &agentRef)
	if !strings.HasSuffix(string(task.Result), ` null"`) || !strings.HasPrefix(agentRef, "artifact:") {
		t.Errorf("an agent reads a caller's artifact: %s, %v", task.Result, task.Error)
	}
	for _, by := range []identity.Principal{identity.ByCaller("bob", ann.Role), identity.ByCaller("ann", other.ID)} {
		if got := string(fx.invoke(t, by, "get_artifact", obj{"ref": callerRef}).Result.JSON()); got != "null" {
			t.Errorf("%s reads %s", by, got)
		}
	}
	if got := string(fx.invoke(t, ann, "get_artifact", obj{"ref": agentRef}).Result.JSON()); got != "null" {
		t.Errorf("a caller reads an agent's artifact: %s", got)
	}
	fx.wantArtifacts(t, ann, callerRef, agentRef)
}

// wantArtifacts checks the records of a caller's artifact and an agent's
// artifact.
func (fx *fixture) wantArtifacts(t *testing.T, ann identity.Principal, callerRef, agentRef string) {
	t.Helper()
	a, content, err := fx.ArtifactStore().ReadArtifact(context.Background(), callerRef)
	if err != nil || a.Caller != ann.String() || a.Owner != ann.Key() || a.Task != "" || a.By != "" || string(content) != `"ann's"` {
		t.Errorf("%+v, %s, %v", a, content, err)
	}
	if a, _, err = fx.ArtifactStore().ReadArtifact(context.Background(), agentRef); err != nil || a.Owner != "" || a.Task == "" {
		t.Errorf("%+v, %v", a, err)
	}
}

// Principals whose names and roles are equal when concatenated have different
// keys.
func TestCaller_KeysAreUnambiguous(t *testing.T) {
	fx := openFixture(t, "", nil)
	seen := map[string]bool{}
	for _, p := range []identity.Principal{identity.ByCaller("a@b", "c"), identity.ByCaller("a", "b@c"), identity.ByAgent("a@b@c")} {
		if seen[p.Key()] || p.Key() == "" {
			t.Errorf("%s has an empty or duplicate key", p)
		}
		seen[p.Key()] = true
	}
	_, err := fx.ToolHost().PutArtifact(t.Context(), newCall(identity.ByCaller("", "r")), builtin.Artifact{Type: "t"})
	if errcode.CodeOf(err) != errcode.AgentNotFound {
		t.Errorf("a caller without a name put an artifact: %v", err)
	}
}

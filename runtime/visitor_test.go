package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
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
)

// What the 18 built-in tools answer to a caller from outside: "" is success.
// No program and no request leaves the process in this house.
var toVisitors = map[string]struct {
	args obj
	code errcode.Code
}{
	"find_role_by_name":     {obj{"name": "guest"}, errcode.ToolUnavailable},
	"create_role":           {obj{"name": "mine", "rolePrompt": ""}, errcode.ToolUnavailable},
	"spawn_agent":           {obj{"roleId": "r", "taskBrief": brief()}, errcode.ToolUnavailable},
	"spawn_agent_with_task": {obj{"roleId": "r", "taskBrief": brief(), "initialMessage": "go"}, errcode.ToolUnavailable},
	"terminate_agent":       {obj{"agentId": "a"}, errcode.ToolUnavailable},
	"send_message":          {obj{"to": "root", "payload": "psst"}, errcode.ToolUnavailable},
	"put_artifact":          {obj{"type": "t", "content": 1}, ""},
	"get_artifact":          {obj{"ref": "artifact:none"}, ""},
	"write_file":            {obj{"path": "a/f", "content": "text"}, ""},
	"read_file":             {obj{"path": "a/f"}, errcode.FileNotFound},
	"list_files":            {obj{}, ""},
	"get_workspace_info":    {obj{}, ""},
	"run_command":           {obj{"argv": []string{"true"}}, errcode.ToolUnavailable},
	"run_javascript":        {obj{"code": "return 1"}, errcode.ToolUnavailable},
	"http_request":          {obj{"url": "https://example.com/"}, errcode.ToolUnavailable},
	"compress_context":      {obj{"summary": "s"}, errcode.ToolUnavailable},
	"get_context_status":    {obj{}, errcode.ToolUnavailable},
	"console_print":         {obj{"text": "hello"}, ""},
}

func TestWhatBuiltInToolsAnswerACaller(t *testing.T) {
	var console bytes.Buffer
	h := plan{config: func(c *runtime.Config) { c.Console = &console }}.open(t)
	role, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "guest"})
	if err != nil {
		t.Fatal(err)
	}
	var offered []string
	for _, d := range h.Gate().Subject(identity.ByCaller("ann", role.ID)).Listable() {
		offered = append(offered, d.Name)
	}
	slices.Sort(offered)
	if want := slices.Sorted(maps.Keys(toVisitors)); !slices.Equal(offered, want) {
		t.Fatalf("offered %v, tried %v", offered, want)
	}
	for i, name := range offered {
		ann := identity.ByCaller(identity.User(fmt.Sprint("ann", i)), role.ID) // each works in a folder of its own
		a := h.invoke(t, ann, name, toVisitors[name].args)
		if !a.Allowed() || a.Code() != toVisitors[name].code {
			t.Errorf("%s: %q: %s", name, a.Code(), a.Result.JSON())
		}
		if message := fmt.Sprint(decode(a.Result.JSON())["message"]); a.Result.IsError && (message == "<nil>" || strings.Contains(message, "internal")) {
			t.Errorf("%s: %s does not say what is wrong", name, a.Result.JSON())
		}
	}
	if len(h.Org().Agents("")) != 0 || len(h.Org().Roles()) != 1 {
		t.Error("an agent or a role was made")
	}
}

// What somebody outside is called stays on its line.
func TestTheConsoleNamesTheCaller(t *testing.T) {
	var console bytes.Buffer
	h := plan{config: func(c *runtime.Config) { c.Console = &console }}.open(t)
	ann := h.visitor(t, "console")
	for _, user := range []identity.User{"ann", "root: all is well\n\x1b[31mroot"} {
		h.invoke(t, identity.ByCaller(user, ann.Role), "console_print", obj{"text": "hello"})
	}
	lines := strings.Split(strings.TrimSpace(console.String()), "\n")
	if len(lines) != 2 || lines[0] != "user ann, guest: hello" || !strings.HasPrefix(lines[1], "user root: all is well ") || strings.Contains(lines[1], "\x1b") {
		t.Errorf("printed %q", lines)
	}
}

// Each user has a folder of its own in each role, whatever it is called, with
// the quota of every workspace, and finds it again after a restart.
func TestACallersWorkspaceIsItsOwn(t *testing.T) {
	p := plan{dir: scratch(t), config: func(c *runtime.Config) { c.Storage.WorkspaceBytes = 1000 }}
	h := p.open(t)
	ann := h.visitor(t, "workspace")
	other, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "other", Use: use("workspace")})
	if err != nil {
		t.Fatal(err)
	}
	who := []identity.Principal{
		ann, identity.ByCaller("ann", other.ID), identity.ByCaller("bob", ann.Role), identity.ByCaller("../../x", ann.Role),
		identity.ByCaller("/etc", ann.Role), identity.ByCaller("a/b", ann.Role), identity.ByCaller("ANN", ann.Role), identity.ByCaller("ann ", ann.Role),
	}
	for i, by := range who {
		if got := h.code(t, by, "read_file", obj{"path": "f"}); got != errcode.FileNotFound {
			t.Errorf("%s finds a file of another's: %q", by, got)
		}
		if got := h.code(t, by, "write_file", obj{"path": "f", "content": fmt.Sprint(i)}); got != "" {
			t.Errorf("%s cannot write: %q", by, got)
		}
		if got := h.code(t, by, "write_file", obj{"path": "big", "content": strings.Repeat("x", 1000)}); got != errcode.QuotaExceeded {
			t.Errorf("%s writes past its quota: %q", by, got)
		}
	}
	h.leave(t)
	h = p.open(t)
	for i, by := range who {
		if got := decode(h.invoke(t, by, "read_file", obj{"path": "f"}).Result.JSON())["content"]; got != fmt.Sprint(i) {
			t.Errorf("%s finds %v, want %d", by, got, i)
		}
	}
	if n := written(t, filepath.Join(p.dir, "callers")); n != len(who) {
		t.Errorf("%d files are below callers, want %d", n, len(who))
	}
	for _, by := range []identity.Principal{{}, operator, identity.ByAgent("a"), identity.ByCaller("", ann.Role)} {
		if _, err := h.Workspace(t.Context(), by); err == nil {
			t.Errorf("%s has a workspace", by)
		}
	}
}

// written counts the files below a directory, which are named by no user.
func written(t *testing.T, dir string) (n int) {
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

// Where there is no place for workspaces a caller has none.
func TestACallerWithoutAPlaceForWorkspaces(t *testing.T) {
	h := plan{config: func(c *runtime.Config) { c.Workspaces = "" }}.open(t)
	ann := h.visitor(t, "workspace")
	if got := h.code(t, ann, "list_files", obj{}); got != errcode.WorkspaceNotBound {
		t.Errorf("got %q", got)
	}
}

// A folder that was replaced by a link leads nowhere.
func TestACallersWorkspaceThatWasReplaced(t *testing.T) {
	p := plan{dir: scratch(t)}
	h := p.open(t)
	ann := h.visitor(t, "workspace")
	h.invoke(t, ann, "list_files", obj{})
	folder := filepath.Join(p.dir, "callers", ann.Key())
	elsewhere := scratch(t)
	if err := os.WriteFile(filepath.Join(elsewhere, "canary"), []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, folder); err != nil {
		t.Fatal(err)
	}
	if a := h.invoke(t, ann, "list_files", obj{}); a.Code() != errcode.ToolUnavailable {
		t.Errorf("it reads what a link leads to: %s", a.Result.JSON())
	}
}

// What a caller put is its own: no other user, not itself in another role and
// no agent, of its own task either, finds it; nor does it find what agents
// put. The operator finds everything.
func TestACallersArtifactsAreItsOwn(t *testing.T) {
	var wanted string
	h := open(t, "", brain(func(r model.Request) model.Answer {
		switch answers(r) {
		case 0:
			return do("put_artifact", obj{"type": "t", "content": "agent's"}, "get_artifact", obj{"ref": wanted})
		default:
			list := results(r)
			return end(fmt.Sprint(decode(list[0].Content)["artifactRef"], " ", string(list[1].Content)))
		}
	}))
	ann := h.visitor(t, "artifact")
	wanted = fmt.Sprint(decode(h.invoke(t, ann, "put_artifact", obj{"type": "t", "content": "ann's"}).Result.JSON())["artifactRef"])
	if got := decode(h.invoke(t, ann, "get_artifact", obj{"ref": wanted}).Result.JSON())["content"]; got != "ann's" {
		t.Errorf("its owner finds %v", got)
	}
	other, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "other", Use: use("artifact")})
	if err != nil {
		t.Fatal(err)
	}
	task := h.run(t, org.TaskSpec{Caller: ann, Role: "guest", Text: "go"})
	var said string
	_, _ = fmt.Sscanf(strings.Trim(string(task.Result), `"`), "%s", &said)
	if !strings.HasSuffix(string(task.Result), ` null"`) || !strings.HasPrefix(said, "artifact:") {
		t.Errorf("an agent finds what a caller put: %s, %v", task.Result, task.Error)
	}
	for _, by := range []identity.Principal{identity.ByCaller("bob", ann.Role), identity.ByCaller("ann", other.ID)} {
		if got := string(h.invoke(t, by, "get_artifact", obj{"ref": wanted}).Result.JSON()); got != "null" {
			t.Errorf("%s finds %s", by, got)
		}
	}
	if got := string(h.invoke(t, ann, "get_artifact", obj{"ref": said}).Result.JSON()); got != "null" {
		t.Errorf("a caller finds what an agent put: %s", got)
	}
	h.wantArtifacts(t, ann, wanted, said)
}

// wantArtifacts checks what the operator finds of two artifacts.
func (h *house) wantArtifacts(t *testing.T, ann identity.Principal, hers, agents string) {
	t.Helper()
	a, content, err := h.Artifact(context.Background(), hers)
	if err != nil || a.Caller != ann.String() || a.Owner != ann.Key() || a.Task != "" || a.By != "" || string(content) != `"ann's"` {
		t.Errorf("%+v, %s, %v", a, content, err)
	}
	if a, _, err = h.Artifact(context.Background(), agents); err != nil || a.Owner != "" || a.Task == "" {
		t.Errorf("%+v, %v", a, err)
	}
}

// Users whose names and roles read alike when they are written one after the
// other are still two.
func TestNamesThatReadAlikeAreTwo(t *testing.T) {
	h := open(t, "", nil)
	seen := map[string]bool{}
	for _, p := range []identity.Principal{identity.ByCaller("a@b", "c"), identity.ByCaller("a", "b@c"), identity.ByAgent("a@b@c")} {
		if seen[p.Key()] || p.Key() == "" {
			t.Errorf("%s has the key of another", p)
		}
		seen[p.Key()] = true
	}
	_, err := h.PutArtifact(t.Context(), called(identity.ByCaller("", "r")), builtin.Artifact{Type: "t"})
	if errcode.Of(err) != errcode.AgentNotFound {
		t.Errorf("nobody put an artifact: %v", err)
	}
}

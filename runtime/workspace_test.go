package runtime_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// writeOwnFile tries to write a file named after the agent and ends with the
// result.
func writeOwnFile(r model.Request) model.Answer {
	if answerCount(r) == 0 {
		return callTools("write_file", obj{"path": string(r.Self.ID), "content": strings.Repeat("x", 10)})
	}
	return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
}

// The quota belongs to the directory, by whatever path it is reached: agents of
// two tasks in one directory cannot exceed it together.
func TestWorkspace_TasksShareQuotaOfDirectory(t *testing.T) {
	const tasks, limit = 6, 3
	dir := filepath.Join(t.TempDir(), "folder")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	fx := fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role == "writer" {
			return writeOwnFile(r)
		}
		return delegate(r, "writer", "workspace")
	}), configure: func(c *runtime.Config) { c.Storage.WorkspaceBytes = limit * 10 }}.open(t)
	var mu sync.Mutex
	rejected := 0
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			task := fx.run(t, org.TaskSpec{Workspace: []string{dir, link}[i%2]})
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(task.Result), string(errcode.QuotaExceeded)) {
				rejected++
			}
		})
	}
	all.Wait()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != limit || rejected != tasks-limit {
		t.Errorf("%d files, %d rejected, %v; want %d and %d", len(files), rejected, err, limit, tasks-limit)
	}
}

func TestWorkspace_ConfigureSetsQuota(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	for _, c := range []struct{ set, want runtime.StorageLimits }{
		{runtime.StorageLimits{}, runtime.StorageLimits{WorkspaceBytes: 1 << 30, WorkspaceFiles: 100_000, ArtifactBytes: 10 << 20}},
		{runtime.StorageLimits{WorkspaceBytes: 5, ArtifactBytes: 6}, runtime.StorageLimits{WorkspaceBytes: 5, WorkspaceFiles: 100_000, ArtifactBytes: 6}},
		{runtime.StorageLimits{WorkspaceFiles: 7}, runtime.StorageLimits{WorkspaceBytes: 1 << 30, WorkspaceFiles: 7, ArtifactBytes: 10 << 20}},
	} {
		if err := fx.ApplyConfig(runtime.OrgConfig{Storage: c.set}); err != nil {
			t.Fatal(err)
		}
		task := fx.start(t, org.TaskSpec{})
		agent := fx.spawnAgent(t, fx.topAgent(t, task), org.RoleSpec{Name: "w" + string(task), Use: groupSet("workspace")})
		w, err := fx.ToolHost().OpenWorkspace(t.Context(), identity.ByAgent(agent))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Root.Close()
		got := runtime.StorageLimits{WorkspaceBytes: w.QuotaLimit().Bytes, WorkspaceFiles: w.QuotaLimit().Files, ArtifactBytes: fx.ToolHost().ArtifactLimit()}
		if got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

// CheckCall returns the current decision of the gate.
func TestCheckCall_MatchesGate(t *testing.T) {
	fx := fixtureConfig{}.openWithWorker(t)
	mayCall := func(by identity.Principal, tool string) bool {
		return fx.ToolHost().CheckCall(t.Context(), by, tool, json.RawMessage(`{}`)) == nil
	}
	for tool, want := range map[string]bool{"put_artifact": true, "read_file": false, "no_such_tool": false} {
		if got := mayCall(identity.ByAgent(fx.worker), tool); got != want {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
	for _, by := range []identity.Principal{{}, identity.ByAgent("nobody"), identity.ByAgent("")} {
		if mayCall(by, "put_artifact") {
			t.Errorf("%s may call it", by)
		}
	}
	if err := fx.TerminateAgent(t.Context(), newCall(operator), fx.worker, ""); err != nil {
		t.Fatal(err)
	}
	if mayCall(identity.ByAgent(fx.worker), "put_artifact") {
		t.Error("a terminated agent may call it")
	}
}

// A tool that reads a file or an artifact as another tool does keeps to the bounds and the rules of
// approval of that tool.
func TestInvoke_KeepsToBoundsOfOtherTool(t *testing.T) {
	fx := fixtureConfig{}.open(t)
	people := approval.Approvers{Any: []approval.Quorum{{Operator: true}}}
	bound := fx.createRole(t, org.RoleSpec{Name: "bound", Use: groupSet("workspace", "artifact"), Bind: bindOf(t, `{"read_file": {"/path": {"under": "reports"}}, "get_artifact": {"/ref": {"glob": "report:*"}}}`)})
	asking := fx.createRole(t, org.RoleSpec{Name: "asking", Use: groupSet("workspace", "artifact"), Approval: []approval.Rule{{Tools: []string{"read_file", "get_artifact"}, From: people}}})
	for role, want := range map[identity.RoleID]errcode.Code{bound.ID: errcode.ArgumentNotGranted, asking.ID: errcode.ToolNotAvailable} {
		ann := identity.ByCaller("ann", role)
		for _, path := range []string{"reports/a", "secret/b"} {
			if code := fx.invokeCode(t, ann, "write_file", obj{"path": path, "content": "text"}); code != "" {
				t.Fatalf("write %s: %s", path, code)
			}
		}
		if code := fx.invokeCode(t, ann, "put_artifact", obj{"type": "t", "path": "secret/b"}); code != want {
			t.Errorf("%s: a file that it may not read is stored: %q, want %s", role, code, want)
		}
		stored := fx.invoke(t, ann, "put_artifact", obj{"type": "t", "content": "text"})
		ref := gjson.GetBytes(stored.Result.JSON(), "artifactRef").Str
		if code := fx.invokeCode(t, ann, "write_file", obj{"path": "reports/c", "artifactRef": ref}); code != want {
			t.Errorf("%s: an artifact that it may not get is written: %q, want %s", role, code, want)
		}
	}
	if code := fx.invokeCode(t, identity.ByCaller("ann", bound.ID), "put_artifact", obj{"type": "t", "path": "reports/a"}); code != "" {
		t.Errorf("a file that it may read: %s", code)
	}
}

// A task's workspace may be inside that of another task, whose agents can
// replace it by a symbolic link.
func TestWorkspace_LinkIsNotFollowed(t *testing.T) {
	outer, outside := t.TempDir(), t.TempDir()
	inner := filepath.Join(outer, "inner")
	secret := filepath.Join(outside, "secret")
	for _, err := range []error{os.Mkdir(inner, 0o755), os.WriteFile(secret, []byte("secret"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	fx := fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role != "reader" {
			return delegate(r, "reader", "workspace")
		}
		if answerCount(r) == 0 {
			if err := os.Rename(inner, inner+"2"); err != nil {
				t.Error(err)
			}
			if err := os.Symlink(outside, inner); err != nil {
				t.Error(err)
			}
			return callTools("read_file", obj{"path": "secret"})
		}
		return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
	})}.open(t)
	task := fx.run(t, org.TaskSpec{Workspace: inner})
	if got := string(task.Result); strings.Contains(got, `"secret"`) || !strings.Contains(got, string(errcode.ToolUnavailable)) {
		t.Errorf("got %s", got)
	}
}

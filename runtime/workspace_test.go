package runtime_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// writer tries to write a file of its own and says how that went.
func writer(r model.Request) model.Answer {
	if answers(r) == 0 {
		return do("write_file", obj{"path": string(r.Self.ID), "content": strings.Repeat("x", 10)})
	}
	return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
}

// The quota is of the folder, whoever writes and by whichever name it is
// reached: agents of two tasks in one folder do not exceed it together.
func TestAgentsOfOneFolderShareItsQuota(t *testing.T) {
	const teams, room = 6, 3
	dir := filepath.Join(t.TempDir(), "folder")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	h := plan{model: brain(func(r model.Request) model.Answer {
		if r.Self.Role == "writer" {
			return writer(r)
		}
		return manage(r, "writer", "workspace")
	}), config: func(c *runtime.Config) { c.Storage.WorkspaceBytes = room * 10 }}.open(t)
	var mu sync.Mutex
	refused := 0
	var all sync.WaitGroup
	for i := range teams {
		all.Go(func() {
			task := h.run(t, org.TaskSpec{Workspace: []string{dir, link}[i%2]})
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(task.Result), string(errcode.QuotaExceeded)) {
				refused++
			}
		})
	}
	all.Wait()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != room || refused != teams-room {
		t.Errorf("%d files, %d refused, %v; want %d and %d", len(files), refused, err, room, teams-room)
	}
}

func TestAConfigurationSetsTheQuota(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	for _, c := range []struct{ set, want runtime.Storage }{
		{runtime.Storage{}, runtime.Storage{WorkspaceBytes: 1 << 30, WorkspaceFiles: 100_000, ArtifactBytes: 8 << 20}},
		{runtime.Storage{WorkspaceBytes: 5, ArtifactBytes: 6}, runtime.Storage{WorkspaceBytes: 5, WorkspaceFiles: 100_000, ArtifactBytes: 6}},
		{runtime.Storage{WorkspaceFiles: 7}, runtime.Storage{WorkspaceBytes: 1 << 30, WorkspaceFiles: 7, ArtifactBytes: 8 << 20}},
	} {
		if err := h.Configure(runtime.OrgConfig{Storage: c.set}); err != nil {
			t.Fatal(err)
		}
		task := h.start(t, org.TaskSpec{})
		agent := h.hire(t, h.top(t, task), org.RoleSpec{Name: "w" + string(task), Use: use("workspace")})
		w, err := h.Workspace(t.Context(), identity.ByAgent(agent))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Root.Close()
		got := runtime.Storage{WorkspaceBytes: w.Quota().Bytes, WorkspaceFiles: w.Quota().Files, ArtifactBytes: h.ArtifactLimit()}
		if got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

// May is what the gate would say, now.
func TestMayIsTheGatesAnswer(t *testing.T) {
	a := plan{}.archive(t)
	for tool, want := range map[string]bool{"put_artifact": true, "read_file": false, "no_such_tool": false} {
		if got := a.CanCall(identity.ByAgent(a.worker), tool); got != want {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
	for _, by := range []identity.Principal{{}, identity.ByAgent("nobody"), identity.ByAgent("")} {
		if a.CanCall(by, "put_artifact") {
			t.Errorf("%s may", by)
		}
	}
	if err := a.Terminate(t.Context(), called(operator), a.worker, ""); err != nil {
		t.Fatal(err)
	}
	if a.CanCall(identity.ByAgent(a.worker), "put_artifact") {
		t.Error("the dead may")
	}
}

// A task's workspace may lie in that of another task, whose agents can put a
// link in its place.
func TestALinkInThePlaceOfAWorkspaceLeadsNowhere(t *testing.T) {
	outer, outside := t.TempDir(), t.TempDir()
	inner := filepath.Join(outer, "inner")
	secret := filepath.Join(outside, "secret")
	for _, err := range []error{os.Mkdir(inner, 0o755), os.WriteFile(secret, []byte("secret"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h := plan{model: brain(func(r model.Request) model.Answer {
		if r.Self.Role != "reader" {
			return manage(r, "reader", "workspace")
		}
		if answers(r) == 0 {
			if err := os.Rename(inner, inner+"2"); err != nil {
				t.Error(err)
			}
			if err := os.Symlink(outside, inner); err != nil {
				t.Error(err)
			}
			return do("read_file", obj{"path": "secret"})
		}
		return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
	})}.open(t)
	task := h.run(t, org.TaskSpec{Workspace: inner})
	if got := string(task.Result); strings.Contains(got, `"secret"`) || !strings.Contains(got, string(errcode.ToolUnavailable)) {
		t.Errorf("got %s", got)
	}
}

package builtin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// lockedArtifacts is memoryArtifacts for concurrent use.
type lockedArtifacts struct {
	mu sync.Mutex // guards memoryArtifacts
	memoryArtifacts
}

func (l *lockedArtifacts) PutArtifact(ctx context.Context, c tool.Call, a Artifact) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.ID = identity.CallID(fmt.Sprint(len(l.memoryArtifacts)))
	return l.memoryArtifacts.PutArtifact(ctx, c, a)
}

// swap atomically exchanges two names in a loop until stop is set.
func swap(t *testing.T, dir, a, b string, stop *atomic.Bool) {
	for !stop.Load() {
		if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE); err != nil {
			t.Error(err)
			return
		}
	}
}

// canSwapNames reports whether the file system can exchange two names atomically.
func canSwapNames(t *testing.T, dir string) bool {
	a, b := filepath.Join(dir, "try-a"), filepath.Join(dir, "try-b")
	putFile(t, a, "")
	putFile(t, b, "")
	defer os.Remove(a)
	defer os.Remove(b)
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil
}

// Meanwhile files and folders of the workspace alternate with pipes and with
// symlinks that lead out. No tool reads, lists or changes anything outside, and
// no tool blocks on a pipe.
func TestFileTools_NoSymlinkEscapesInRace(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if !canSwapNames(t, dir) {
		t.Skip("the file system cannot exchange names")
	}
	for _, name := range []string{"f", "outsider", "sub/f"} {
		putFile(t, filepath.Join(outside, name), "SECRET")
	}
	k := workspaceFixture(t, dir, map[string]string{"folder/f": "inside", "folder/sub/f": "inside", "file": "inside", "target": "inside", "plain": "inside", "real/f": "inside"})
	s := memoryArtifacts{}
	tools, err := artifactTools(&lockedArtifacts{memoryArtifacts: s}, stubWorkspaces{dir: dir}, allTools)
	for name, tl := range newFixture(t, tools, err) {
		k[name] = tl
	}
	symlink(t, outside, filepath.Join(dir, "way-out"))
	symlink(t, filepath.Join(outside, "f"), filepath.Join(dir, "file-out"))
	symlink(t, filepath.Join(outside, "f"), filepath.Join(dir, "target-out"))
	for _, pipe := range []string{"pipe", "pipe2"} {
		if err := unix.Mkfifo(filepath.Join(dir, pipe), 0o644); err != nil {
			t.Skip(err)
		}
	}
	before := tree(t, outside, "")

	var stop atomic.Bool
	var swaps sync.WaitGroup
	for _, pair := range [][2]string{{"folder", "way-out"}, {"file", "file-out"}, {"target", "target-out"}, {"plain", "pipe"}, {"real", "pipe2"}} {
		swaps.Go(func() { swap(t, dir, pair[0], pair[1], &stop) })
	}
	attempts := []struct {
		tool  string
		args  obj
		races bool // both outcomes must occur: success and path_traversal_blocked
	}{
		{"read_file", obj{"path": "folder/f"}, true},
		{"read_file", obj{"path": "folder/sub/f"}, true},
		{"read_file", obj{"path": "file"}, true},
		{"read_file", obj{"path": "plain"}, false},
		{"read_file", obj{"path": "real/f"}, false},
		{"write_file", obj{"path": "folder/f", "content": "inside"}, true},
		{"write_file", obj{"path": "folder/new/er/f", "content": "inside"}, true},
		{"write_file", obj{"path": "target", "content": "inside"}, false}, // a write may permanently replace the link itself
		{"list_files", obj{"path": "folder", "recursive": true}, true},
		{"list_files", obj{"recursive": true}, false},
		{"list_files", obj{"pattern": "**/f"}, false},
		{"list_files", obj{"path": "real"}, false},
		{"get_workspace_info", obj{}, false},
		{"put_artifact", obj{"type": "t", "path": "folder/f"}, true},
	}
	var all sync.WaitGroup
	var won, lost atomic.Int64
	for _, a := range attempts {
		all.Go(func() { race(t, k, a.tool, a.args, a.races, &won, &lost) })
	}
	all.Wait()
	if won.Load() == 0 || lost.Load() == 0 {
		t.Errorf("%d races were won and %d lost; the test proves nothing", won.Load(), lost.Load())
	}
	stop.Store(true)
	swaps.Wait()
	for _, a := range s {
		if content, _ := a.fileContent(); string(content) != "inside" {
			t.Errorf("an artifact contains %q", content)
		}
	}
	if diff := gocmp.Diff(before, tree(t, outside, "")); diff != "" {
		t.Errorf("outside changed (-before +after):\n%s", diff)
	}
}

// race calls a tool repeatedly, at least 200 times (60 with -short) and then until
// both outcomes have occurred or 5000 calls were made.
func race(t *testing.T, k fixture, tool string, args obj, races bool, allWon, allLost *atomic.Int64) {
	won, lost, least := 0, 0, 200
	if testing.Short() {
		least = 60
	}
	for n := 0; n < least || races && n < 5000 && (won == 0 || lost == 0); n++ {
		answer := k.call(t, tool, args)
		if strings.Contains(answer, "SECRET") || strings.Contains(answer, "outsider") {
			t.Errorf("%s(%v) shows files outside: %s", tool, args, answer)
			return
		}
		switch {
		case !strings.Contains(answer, `"error"`):
			won++
		case strings.Contains(answer, string(errcode.PathTraversal)):
			lost++
		}
	}
	if races {
		allWon.Add(int64(won))
		allLost.Add(int64(lost))
	}
}

package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// quotaFixture returns the file tools for a workspace with a quota.
func quotaFixture(t testing.TB, dir string, q workspace.Quota) fixture {
	t.Helper()
	tools, err := workspaceTools(stubWorkspaces{dir: dir, quota: q}, nil, allTools)
	return newFixture(t, tools, err)
}

func TestWriteFile_EnforcesQuota(t *testing.T) {
	for _, c := range []struct {
		name, path string
		length     int
		want       errcode.Code
	}{
		{"new file at the limit", "new", 40, ""},
		{"new file over the limit", "new", 41, errcode.QuotaExceeded},
		{"replacing at the limit", "old", 100, ""},
		{"replacing over the limit", "old", 101, errcode.QuotaExceeded},
		{"empty file", "new", 0, ""},
		{"new folders at the limit", "a/b/new", 1, ""},
		{"new folders over the limit", "a/b/c/new", 1, errcode.QuotaExceeded},
		{"file in an existing folder", "dir/new", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			putFile(t, filepath.Join(dir, "old"), strings.Repeat("x", 60))
			putFile(t, filepath.Join(dir, "dir", "empty"), "")
			before := tree(t, dir, "")
			k := quotaFixture(t, dir, workspace.Quota{Bytes: 100, Files: 6})
			if got := k.callCode(t, "write_file", obj{"path": c.path, "content": strings.Repeat("y", c.length)}); got != c.want {
				t.Errorf("code %q, want %q", got, c.want)
			}
			if diff := gocmp.Diff(before, tree(t, dir, "")); (diff == "") != (c.want != "") {
				t.Errorf("rejected is %v, but (-before +after):\n%s", c.want != "", diff)
			}
			if _, err := os.Stat(filepath.Join(dir, "a")); c.want != "" && err == nil {
				t.Error("a rejected write created a folder")
			}
		})
	}
}

func TestWriteFile_QuotaErrorReportsUsage(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "old"), "12345")
	answer := quotaFixture(t, dir, workspace.Quota{Bytes: 10, Files: 5}).call(t, "write_file", obj{"path": "d/f", "content": "123456"})
	for _, part := range []string{
		`"error":"quota_exceeded"`, `"ok":false`, `"used":5`, `"limit":10`, `"needed":6`, `"usedFiles":1`, `"limitFiles":5`, `"neededFiles":2`,
		"has 5 bytes in 1 files and folders; its quota is 10 bytes in 5, and this write needs 6 bytes in 2 more",
	} {
		if !strings.Contains(answer, part) {
			t.Errorf("%s is not in %s", part, answer)
		}
	}
}

func TestWriteFile_ShrinksWorkspaceOverQuota(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "big"), strings.Repeat("x", 1000))
	k := quotaFixture(t, dir, workspace.Quota{Bytes: 100, Files: 10})
	for _, c := range []struct {
		path   string
		length int
		want   errcode.Code
	}{{"big", 1001, errcode.QuotaExceeded}, {"new", 1, errcode.QuotaExceeded}, {"big", 1000, ""}, {"big", 99, ""}, {"new", 1, ""}, {"new", 2, errcode.QuotaExceeded}} {
		if got := k.callCode(t, "write_file", obj{"path": c.path, "content": strings.Repeat("x", c.length)}); got != c.want {
			t.Errorf("%d bytes to %s: code %q, want %q", c.length, c.path, got, c.want)
		}
	}
}

// Concurrent writers do not exceed the quota together, and they can use all of it.
func TestWriteFile_ConcurrentWritersShareQuota(t *testing.T) {
	const writers, each, length = 8, 10, 100
	for name, q := range map[string]workspace.Quota{
		"of bytes": {Bytes: 30*length + length/2, Files: 1000},
		"of files": {Bytes: 1 << 20, Files: 30},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k := quotaFixture(t, dir, q)
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := range each {
						k.call(t, "write_file", obj{"path": fmt.Sprintf("f%d-%d", w, i), "content": strings.Repeat("x", length)})
					}
				})
			}
			all.Wait()
			if got := len(tree(t, dir, "")); got != 30 {
				t.Errorf("%d files were written, want 30", got)
			}
		})
	}
}

// The disk is authoritative: programs change files without updating the cache.
func TestWriteFile_SeesChangesByPrograms(t *testing.T) {
	write := func(k fixture, name string, length int) errcode.Code {
		return k.callCode(t, "write_file", obj{"path": name, "content": strings.Repeat("x", length)})
	}
	t.Run("deletions at once", func(t *testing.T) {
		dir := t.TempDir()
		k := quotaFixture(t, dir, workspace.Quota{Bytes: 100, Files: 10})
		if got := write(k, "a", 90); got != "" {
			t.Fatal(got)
		}
		if err := os.Remove(filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
		if got := write(k, "b", 90); got != "" {
			t.Errorf("code %q, want success", got)
		}
	})
	t.Run("additions when measured", func(t *testing.T) {
		dir := t.TempDir()
		k := quotaFixture(t, dir, workspace.Quota{Bytes: 100, Files: 10})
		if got := write(k, "a", 10); got != "" {
			t.Fatal(got)
		}
		putFile(t, filepath.Join(dir, "program"), strings.Repeat("x", 85))
		w, err := stubWorkspaces{dir: dir, quota: workspace.Quota{Bytes: 100, Files: 10}}.OpenWorkspace(t.Context(), identity.ByAgent(callerID))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Root.Close()
		if u, err := w.DiskUsage(t.Context()); err != nil || u != (workspace.Usage{Bytes: 95, Files: 2}) {
			t.Errorf("usage %+v, %v", u, err)
		}
		if got := write(k, "b", 10); got != errcode.QuotaExceeded {
			t.Errorf("code %q, want quota_exceeded", got)
		}
	})
}

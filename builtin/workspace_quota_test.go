package builtin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// quotaFixture returns the file tools for a workspace with a quota.
func quotaFixture(t testing.TB, dir string, q Quota) fixture {
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
			k := quotaFixture(t, dir, Quota{Bytes: 100, Files: 6})
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
	answer := quotaFixture(t, dir, Quota{Bytes: 10, Files: 5}).call(t, "write_file", obj{"path": "d/f", "content": "123456"})
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
	k := quotaFixture(t, dir, Quota{Bytes: 100, Files: 10})
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

func TestWorkspace_WriteNeedsQuota(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var none QuotaManager
	for name, w := range map[string]*Workspace{"no space": {Root: root}, "no quota": {Root: root, Space: none.Of(dir, Quota{})}} {
		if err := w.write(t.Context(), "f", nil); errcode.Of(err) != errcode.QuotaExceeded {
			t.Errorf("%s: error %v, want quota_exceeded", name, err)
		}
	}
	if got := tree(t, dir, ""); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// Concurrent writers do not exceed the quota together, and they can use all of it.
func TestWriteFile_ConcurrentWritersShareQuota(t *testing.T) {
	const writers, each, length = 8, 10, 100
	for name, q := range map[string]Quota{
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
		k := quotaFixture(t, dir, Quota{Bytes: 100, Files: 10})
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
		k := quotaFixture(t, dir, Quota{Bytes: 100, Files: 10})
		if got := write(k, "a", 10); got != "" {
			t.Fatal(got)
		}
		putFile(t, filepath.Join(dir, "program"), strings.Repeat("x", 85))
		w := workspace(t, dir, Quota{Bytes: 100, Files: 10})
		if u, err := w.Usage(t.Context()); err != nil || u != (Usage{Bytes: 95, Files: 2}) {
			t.Errorf("usage %+v, %v", u, err)
		}
		if got := write(k, "b", 10); got != errcode.QuotaExceeded {
			t.Errorf("code %q, want quota_exceeded", got)
		}
	})
	t.Run("additions after the cache expires", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := workspace(t, dir, Quota{Bytes: 100, Files: 10})
			if err := w.write(t.Context(), "a", make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			putFile(t, filepath.Join(dir, "program"), strings.Repeat("x", 85))
			time.Sleep(usageTTL)
			if err := w.write(t.Context(), "b", make([]byte, 10)); errcode.Of(err) != errcode.QuotaExceeded {
				t.Errorf("error %v, want quota_exceeded", err)
			}
		})
	})
}

// workspace opens a workspace with a quota.
func workspace(t testing.TB, dir string, q Quota) *Workspace {
	t.Helper()
	w, err := stubWorkspaces{dir: dir, quota: q}.Workspace(t.Context(), identity.ByAgent(callerID))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Root.Close() })
	return w
}

func TestWorkspace_CheckQuota(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "123", "d/e/f": "45", tempPrefix + identity.NewID(): "678"} {
		putFile(t, filepath.Join(dir, name), content)
	}
	symlink(t, "a", filepath.Join(dir, "link"))
	for _, c := range []struct {
		name string
		q    Quota
		want Usage
		code errcode.Code
	}{
		{"below the quota", Quota{1000, 1000}, Usage{Bytes: 8, Files: 6}, ""},
		{"at the quota", Quota{8, 6}, Usage{Bytes: 8, Files: 6}, ""},
		{"too many bytes", Quota{7, 1000}, Usage{Partial: true}, errcode.QuotaExceeded},
		{"too many files", Quota{1000, 5}, Usage{Partial: true}, errcode.QuotaExceeded},
		{"no files allowed", Quota{1, -1}, Usage{Partial: true}, errcode.QuotaExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := workspace(t, dir, c.q)
			got, err := w.CheckQuota(t.Context())
			if c.want.Partial { // a partial count is not specified
				got = Usage{Partial: got.Partial}
			}
			if got != c.want || errcode.Of(err) != c.code {
				t.Errorf("got %+v, %v, want %+v, code %q", got, err, c.want, c.code)
			}
		})
	}
	t.Run("without a quota", func(t *testing.T) {
		if u, err := new(Workspace).CheckQuota(t.Context()); !u.Partial || errcode.Of(err) != errcode.QuotaExceeded {
			t.Errorf("got %+v, %v", u, err)
		}
	})
}

func TestWorkspace_SparseFilesCountByLength(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		putFile(t, filepath.Join(dir, name), "")
		if err := os.Truncate(filepath.Join(dir, name), math.MaxInt64/2); err != nil {
			t.Skip(err)
		}
	}
	if u, err := workspace(t, dir, Quota{math.MaxInt64 - 1, 10}).Usage(t.Context()); err != nil || u.Bytes != math.MaxInt64-1 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if got := (Usage{Bytes: math.MaxInt64}).plus(Usage{Bytes: 5}); got.Bytes != math.MaxInt64 {
		t.Errorf("sum after overflow is %d", got.Bytes)
	}
}

// Folders that are nested too deep to be counted exceed the quota.
func TestWorkspace_TooDeepExceedsQuota(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, c := range []struct {
		deep int
		want errcode.Code
	}{{maxDepth - 1, ""}, {maxDepth, errcode.QuotaExceeded}} {
		if err := root.MkdirAll(strings.Repeat("d/", c.deep), 0o755); err != nil {
			t.Fatal(err)
		}
		w := workspace(t, dir, Quota{1 << 20, 1000})
		if _, err := w.CheckQuota(t.Context()); errcode.Of(err) != c.want {
			t.Errorf("%d deep: error %v, want %q", c.deep, err, c.want)
		}
	}
}

func TestWorkspaceQuota_LockHonorsContext(t *testing.T) {
	dir := t.TempDir()
	w := workspace(t, dir, Quota{100, 100})
	_, leave, err := w.Space.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.write(ctx, "f", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("write: error %v, want canceled", err)
	}
	if _, err := w.Usage(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("usage: error %v, want canceled", err)
	}
	leave()
	if err := w.write(t.Context(), "f", nil); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// Caches of unused directories are deleted when there are many; one in use is
// not.
func TestQuotaManager_ForgetsUnusedDirectories(t *testing.T) {
	var s QuotaManager
	held := s.Of("held", Quota{})
	first, leave, err := held.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxUsageEntries {
		_, leave, err := s.Of(fmt.Sprint(i), Quota{}).lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	if n := len(s.caches); n > maxUsageEntries+1 {
		t.Errorf("%d directories are cached, want at most %d", n, maxUsageEntries+1)
	}
	if s.caches["held"] != first {
		t.Error("the cache in use was deleted")
	}
	leave()
}

// Temporary files that killed processes left are not listed, and they are removed
// once they are old.
func TestWorkspace_HidesAndRemovesStaleTempFiles(t *testing.T) {
	dir := t.TempDir()
	fresh, old := tempPrefix+identity.NewID(), "d/"+tempPrefix+identity.NewID()
	for _, name := range []string{fresh, old, "d/f", tempPrefix + "mine"} {
		putFile(t, filepath.Join(dir, name), "1234")
	}
	past := time.Now().Add(-staleTempAge - time.Minute)
	for _, name := range []string{old, "d/f", tempPrefix + "mine"} {
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	k := quotaFixture(t, dir, Quota{100, 100})
	var shown []string
	for _, e := range callResult[listing](t, k, "list_files", obj{"recursive": true}).Entries {
		shown = append(shown, e.Name)
	}
	if diff := gocmp.Diff([]string{tempPrefix + "mine", "d", "d/f"}, shown); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if got := callResult[workspaceInfo](t, k, "get_workspace_info", obj{}); got.Files != 2 || got.TotalSize != 8 {
		t.Errorf("counted %+v", got)
	}
	readOnly, _ := stubWorkspaces{dir: dir, readOnly: true}.Workspace(t.Context(), identity.ByAgent(callerID))
	defer readOnly.Root.Close()
	if u, err := readOnly.Usage(t.Context()); err != nil || u.Files != 5 {
		t.Errorf("a read-only workspace removed files: %+v, %v", u, err)
	}
	if u, err := workspace(t, dir, Quota{100, 100}).Usage(t.Context()); err != nil || u.Files != 4 {
		t.Errorf("usage %+v, %v", u, err)
	}
	want := map[string]string{fresh: "1234", "d/f": "1234", tempPrefix + "mine": "1234"}
	if diff := gocmp.Diff(want, tree(t, dir, "")); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
}

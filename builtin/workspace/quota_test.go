package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// quotas manages the quotas of all tests.
var quotas QuotaManager

// openDir opens a workspace with a quota.
func openDir(t testing.TB, dir string, q Quota) *Dir {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &Dir{Root: root, Quota: quotas.DirQuota(dir, q)}
}

func putFile(t testing.TB, name, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// fileContents returns the contents of the files below dir by name.
func fileContents(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDir_WriteFileNeedsQuota(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var none QuotaManager
	for name, w := range map[string]*Dir{"no space": {Root: root}, "no quota": {Root: root, Quota: none.DirQuota(dir, Quota{})}} {
		if err := w.WriteFile(t.Context(), "f", nil); errcode.CodeOf(err) != errcode.QuotaExceeded {
			t.Errorf("%s: error %v, want quota_exceeded", name, err)
		}
	}
	if got := fileContents(t, dir); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// The disk is authoritative: programs change files without updating the cache.
func TestDir_SeesChangesAfterCacheExpires(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := openDir(t, dir, Quota{Bytes: 100, Files: 10})
		if err := w.WriteFile(t.Context(), "a", make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		putFile(t, filepath.Join(dir, "program"), strings.Repeat("x", 85))
		time.Sleep(usageTTL)
		if err := w.WriteFile(t.Context(), "b", make([]byte, 10)); errcode.CodeOf(err) != errcode.QuotaExceeded {
			t.Errorf("error %v, want quota_exceeded", err)
		}
	})
}

func TestDir_CheckQuota(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "123", "d/e/f": "45", tempPrefix + identity.NewID(): "678"} {
		putFile(t, filepath.Join(dir, name), content)
	}
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
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
			w := openDir(t, dir, c.q)
			got, err := w.CheckQuota(t.Context())
			if c.want.Partial { // a partial count is not specified
				got = Usage{Partial: got.Partial}
			}
			if got != c.want || errcode.CodeOf(err) != c.code {
				t.Errorf("got %+v, %v, want %+v, code %q", got, err, c.want, c.code)
			}
		})
	}
	t.Run("without a quota", func(t *testing.T) {
		if u, err := new(Dir).CheckQuota(t.Context()); !u.Partial || errcode.CodeOf(err) != errcode.QuotaExceeded {
			t.Errorf("got %+v, %v", u, err)
		}
	})
}

func TestDir_SparseFilesCountByLength(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		putFile(t, filepath.Join(dir, name), "")
		if err := os.Truncate(filepath.Join(dir, name), math.MaxInt64/2); err != nil {
			t.Skip(err)
		}
	}
	if u, err := openDir(t, dir, Quota{math.MaxInt64 - 1, 10}).DiskUsage(t.Context()); err != nil || u.Bytes != math.MaxInt64-1 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if got := (Usage{Bytes: math.MaxInt64}).plus(Usage{Bytes: 5}); got.Bytes != math.MaxInt64 {
		t.Errorf("sum after overflow is %d", got.Bytes)
	}
}

// Folders that are nested too deep to be counted exceed the quota.
func TestDir_TooDeepExceedsQuota(t *testing.T) {
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
		w := openDir(t, dir, Quota{1 << 20, 1000})
		if _, err := w.CheckQuota(t.Context()); errcode.CodeOf(err) != c.want {
			t.Errorf("%d deep: error %v, want %q", c.deep, err, c.want)
		}
	}
}

func TestDirQuota_LockHonorsContext(t *testing.T) {
	dir := t.TempDir()
	w := openDir(t, dir, Quota{100, 100})
	_, leave, err := w.Quota.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.WriteFile(ctx, "f", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("write: error %v, want canceled", err)
	}
	if _, err := w.DiskUsage(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("usage: error %v, want canceled", err)
	}
	leave()
	if err := w.WriteFile(t.Context(), "f", nil); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// Caches of unused directories are deleted when there are many; one in use is
// not.
func TestQuotaManager_ForgetsUnusedDirectories(t *testing.T) {
	var s QuotaManager
	held := s.DirQuota("held", Quota{})
	first, leave, err := held.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxUsageEntries {
		_, leave, err := s.DirQuota(fmt.Sprint(i), Quota{}).lock(t.Context())
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
func TestDir_HidesAndRemovesStaleTempFiles(t *testing.T) {
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
	w := openDir(t, dir, Quota{100, 100})
	var shown []string
	all, err := w.ListFiles(t.Context(), ".", ListOptions{Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all.Entries {
		shown = append(shown, e.Name)
	}
	if diff := gocmp.Diff([]string{tempPrefix + "mine", "d", "d/f"}, shown); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if got, err := w.Info(t.Context()); err != nil || got.Files != 2 || got.TotalSize != 8 {
		t.Errorf("counted %+v, %v", got, err)
	}
	readOnly := openDir(t, dir, Quota{1 << 30, 100_000})
	readOnly.ReadOnly = true
	if u, err := readOnly.DiskUsage(t.Context()); err != nil || u.Files != 5 {
		t.Errorf("a read-only workspace removed files: %+v, %v", u, err)
	}
	if u, err := w.DiskUsage(t.Context()); err != nil || u.Files != 4 {
		t.Errorf("usage %+v, %v", u, err)
	}
	want := map[string]string{fresh: "1234", "d/f": "1234", tempPrefix + "mine": "1234"}
	if diff := gocmp.Diff(want, fileContents(t, dir)); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
}

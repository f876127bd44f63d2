package builtin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/tool"
)

// Limits that the description of list_files states.
const (
	maxDepth   = 100
	maxEntries = 10_000
)

// stubWorkspaces opens the workspace of callerID; other callers have none.
type stubWorkspaces struct {
	dir      string
	readOnly bool
	quota    workspace.Quota // the zero Quota means a large one
	disk     func() workspace.DiskSpace
}

// quotas manages the quotas of all tests.
var quotas workspace.QuotaManager

func (f stubWorkspaces) OpenWorkspace(_ context.Context, by identity.Principal) (*workspace.Dir, error) {
	if by != identity.ByAgent(callerID) {
		return nil, errcode.New(errcode.WorkspaceNotBound, "%s has no workspace", by)
	}
	root, err := os.OpenRoot(f.dir)
	return &workspace.Dir{Root: root, ReadOnly: f.readOnly, Quota: quotas.DirQuota(f.dir, cmp.Or(f.quota, workspace.Quota{Bytes: 1 << 30, Files: 100_000})), DiskSpace: f.disk}, err
}

// workspaceFixture returns the file tools for a workspace with the given files.
func workspaceFixture(t testing.TB, dir string, files map[string]string) fixture {
	t.Helper()
	for name, content := range files {
		putFile(t, filepath.Join(dir, name), content)
	}
	tools, err := workspaceTools(stubWorkspaces{dir: dir}, nil, allTools)
	return newFixture(t, tools, err)
}

func putFile(t testing.TB, name, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestReadFile_ReadsParts(t *testing.T) {
	k := workspaceFixture(t, t.TempDir(), map[string]string{
		"text":     "naïve €uro",
		"empty":    "",
		"binary":   "\x00\xff\x01",
		"long":     strings.Repeat("x", 64_001),
		"exact":    strings.Repeat("x", 64_000),
		"dir/deep": "deep",
	})
	for _, c := range []struct{ name, args, want string }{
		{"short file", `{"path":"text"}`, `{"path":"text","content":"naïve €uro","offset":0,"length":13,"size":13,"truncated":false}`},
		{"from an offset", `{"path":"text","offset":7,"length":3}`, `{"path":"text","content":"€","offset":7,"length":3,"size":13,"truncated":true,"nextOffset":10}`},
		{"up to a complete character", `{"path":"text","length":9}`, `{"path":"text","content":"naïve ","offset":0,"length":7,"size":13,"truncated":true,"nextOffset":7}`},
		{"base64 from inside a character", `{"path":"text","offset":8}`, `{"path":"text","content":"gqx1cm8=","encoding":"base64","offset":8,"length":5,"size":13,"truncated":false}`},
		{"base64 for less than a character", `{"path":"text","offset":7,"length":1}`, `{"path":"text","content":"4g==","encoding":"base64","offset":7,"length":1,"size":13,"truncated":true,"nextOffset":8}`},
		{"base64 for binary data", `{"path":"binary"}`, `{"path":"binary","content":"AP8B","encoding":"base64","offset":0,"length":3,"size":3,"truncated":false}`},
		{"empty file", `{"path":"empty"}`, `{"path":"empty","content":"","offset":0,"length":0,"size":0,"truncated":false}`},
		{"up to the exact end", `{"path":"text","offset":7,"length":6}`, `{"path":"text","content":"€uro","offset":7,"length":6,"size":13,"truncated":false}`},
		{"offset at the exact end", `{"path":"text","offset":13,"length":5}`, `{"path":"text","content":"","offset":13,"length":0,"size":13,"truncated":false}`},
		{"part of an empty file", `{"path":"empty","offset":1,"length":5}`, `{"path":"empty","content":"","offset":1,"length":0,"size":0,"truncated":false}`},
		{"offset after the end", `{"path":"text","offset":9007199254740991}`, `{"path":"text","content":"","offset":9007199254740991,"length":0,"size":13,"truncated":false}`},
		{"path that needs cleaning", `{"path":"./dir//x/../deep"}`, `{"path":"dir/deep","content":"deep","offset":0,"length":4,"size":4,"truncated":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := gocmp.Diff(c.want, k.call(t, "read_file", rawJSON(c.args))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("default length", func(t *testing.T) {
		if got := callResult[filePart](t, k, "read_file", obj{"path": "long"}); got.contentRange != (contentRange{0, 64_000, 64_001, true, 64_000}) {
			t.Errorf("got %+v", got.contentRange)
		}
		if got := callResult[filePart](t, k, "read_file", obj{"path": "exact"}); got.contentRange != (contentRange{0, 64_000, 64_000, false, 0}) {
			t.Errorf("a file of that length: %+v", got.contentRange)
		}
	})
}

// The result fits the reader's limit, whatever the file has in it and the call asks for.
func TestReadFile_FitsReader(t *testing.T) {
	const limit = 2_000
	dir := t.TempDir()
	workspaceFixture(t, dir, map[string]string{
		"plain": strings.Repeat("x", 3000), "html": strings.Repeat("<é>\n", 1000), "control": strings.Repeat("\x01", 3000), "binary": strings.Repeat("\xff", 3000),
	})
	tools, err := workspaceTools(stubWorkspaces{dir: dir}, nil, stubLimits{result: limit})
	k := newFixture(t, tools, err)
	for _, name := range []string{"plain", "html", "control", "binary"} {
		for _, args := range []obj{{"path": name}, {"path": name, "length": 1_000_000}, {"path": name, "offset": 5, "length": 2500}} {
			got := k.call(t, "read_file", args)
			if len(got) > limit || len(got) < limit-rangeBytes || !gjson.Get(got, "truncated").Bool() || gjson.Get(got, "nextOffset").Int() == 0 {
				t.Errorf("%v: %d bytes: %.200s", args, len(got), got)
			}
		}
		if got := callResult[filePart](t, k, "read_file", obj{"path": name, "length": 100}); got.Length != 100 && name != "html" {
			t.Errorf("%s: %d bytes of 100", name, got.Length)
		}
	}
}

// Reading parts until size returns the whole file, for any content and any
// length of parts.
func TestReadFile_PartsMakeWholeFile(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	alphabet := []string{"a", "ñ", "€", "😀", "\xff", "\xe2"}
	dir := t.TempDir()
	k := workspaceFixture(t, dir, nil)
	for range 30 {
		var want strings.Builder
		for range random.IntN(40) {
			want.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		putFile(t, filepath.Join(dir, "f"), want.String())
		if got := readAll(t, k, "f", 1+random.IntN(6)); got != want.String() {
			t.Fatalf("got %q, want %q", got, want.String())
		}
	}
}

func readAll(t *testing.T, k fixture, path string, length int) string {
	var all []byte
	for {
		p := callResult[filePart](t, k, "read_file", obj{"path": path, "offset": len(all), "length": length})
		data := []byte(p.Content)
		if p.Encoding == inBase64 {
			data, _ = base64.StdEncoding.DecodeString(p.Content)
		}
		if len(data) != p.Length || p.Length > length {
			t.Fatalf("%d bytes, length %d, requested %d", len(data), p.Length, length)
		}
		all = append(all, data...)
		if p.Truncated != (int64(len(all)) < p.Size) {
			t.Fatalf("truncated is %t at %d of %d", p.Truncated, len(all), p.Size)
		}
		if !p.Truncated {
			return string(all)
		}
		if p.Length == 0 || p.NextOffset != int64(len(all)) {
			t.Fatalf("nextOffset %d at %d of %d", p.NextOffset, len(all), p.Size)
		}
	}
}

func TestWriteFile(t *testing.T) {
	for _, c := range []struct{ name, args, answer, file, content string }{
		{"creates file and folders", `{"path":"a/b/c.txt","content":"hé","mimeType":"text/plain"}`, `{"ok":true,"path":"a/b/c.txt","size":3}`, "a/b/c.txt", "hé"},
		{"replaces a longer file", `{"path":"old.txt","content":"x"}`, `{"ok":true,"path":"old.txt","size":1}`, "old.txt", "x"},
		{"empties a file", `{"path":"old.txt","content":""}`, `{"ok":true,"path":"old.txt","size":0}`, "old.txt", ""},
		{"decodes base64", `{"path":"b","content":"AP8B","encoding":"base64"}`, `{"ok":true,"path":"b","size":3}`, "b", "\x00\xff\x01"},
		{"follows the symlink of a folder", `{"path":"link/f","content":"x"}`, `{"ok":true,"path":"link/f","size":1}`, "sub/f", "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			k := workspaceFixture(t, dir, map[string]string{"old.txt": "old content", "sub/x": ""})
			symlink(t, "sub", filepath.Join(dir, "link"))
			if got := k.call(t, "write_file", rawJSON(c.args)); got != c.answer {
				t.Errorf("got %s, want %s", got, c.answer)
			}
			if got, err := os.ReadFile(filepath.Join(dir, c.file)); string(got) != c.content || err != nil {
				t.Errorf("file contains %q, %v, want %q", got, err, c.content)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", ".rolecall-*")); left != nil {
				t.Errorf("temporary files remain: %s", left)
			}
		})
	}
}

func TestWriteFile_KeepsPermissions(t *testing.T) {
	dir := t.TempDir()
	k := workspaceFixture(t, dir, map[string]string{"run.sh": "old"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	k.call(t, "write_file", obj{"path": "run.sh", "content": "new"})
	info, err := os.Stat(filepath.Join(dir, "run.sh"))
	if err != nil || info.Mode() != 0o750 {
		t.Errorf("mode %v, %v, want 0750", info.Mode(), err)
	}
}

func symlink(t testing.TB, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Skip(err)
	}
}

func TestFileTools_RejectPaths(t *testing.T) {
	outside := t.TempDir()
	putFile(t, filepath.Join(outside, "canary"), "SECRET")
	dir := t.TempDir()
	k := workspaceFixture(t, dir, map[string]string{"f": "text", "dir/g": "text", "frozen": "text"})
	symlink(t, outside, filepath.Join(dir, "out"))
	symlink(t, filepath.Join(outside, "canary"), filepath.Join(dir, "outfile"))
	symlink(t, "../nothing/here", filepath.Join(dir, "dangling-out"))
	symlink(t, "f", filepath.Join(dir, "infile"))
	symlink(t, "loop", filepath.Join(dir, "loop"))
	if err := os.Chmod(filepath.Join(dir, "frozen"), 0o444); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 300)
	for _, c := range []struct {
		name, tool, path string
		want             errcode.Code
	}{
		{"missing file", "read_file", "nope", errcode.FileNotFound},
		{"file in a missing folder", "read_file", "no/pe", errcode.FileNotFound},
		{"missing folder", "list_files", "nope", errcode.FileNotFound},
		{"read a folder", "read_file", "dir", errcode.InvalidArguments},
		{"read the workspace", "read_file", ".", errcode.InvalidArguments},
		{"write a folder", "write_file", "dir", errcode.InvalidArguments},
		{"write the workspace", "write_file", "./", errcode.InvalidArguments},
		{"list a file", "list_files", "f", errcode.NotADirectory},
		{"read below a file", "read_file", "f/x", errcode.NotADirectory},
		{"write below a file", "write_file", "f/x", errcode.NotADirectory},
		{"write deeper below a file", "write_file", "f/x/y", errcode.NotADirectory},
		{"write a read-only file", "write_file", "frozen", errcode.PermissionDenied},
		{"write a symlink", "write_file", "infile", errcode.PermissionDenied},
		{"read a symlink that leads out", "read_file", "outfile", errcode.PathTraversal},
		{"write a symlink that leads out", "write_file", "outfile", errcode.PathTraversal},
		{"write a dangling symlink that leads out", "write_file", "dangling-out", errcode.PathTraversal},
		{"read through a folder outside", "read_file", "out/canary", errcode.PathTraversal},
		{"write through a folder outside", "write_file", "out/new", errcode.PathTraversal},
		{"create folders outside", "write_file", "out/a/b/new", errcode.PathTraversal},
		{"list a folder outside", "list_files", "out", errcode.PathTraversal},
		{"symlink loop", "read_file", "loop", errcode.ToolExecutionFailed},
		{"NUL byte", "read_file", "f\x00.txt", errcode.InvalidArguments},
		{"write with NUL byte", "write_file", "a\x00", errcode.InvalidArguments},
		{"long name", "read_file", long, errcode.InvalidArguments},
		{"write a long name", "write_file", long, errcode.InvalidArguments},
		{"long folder name", "write_file", long + "/f", errcode.InvalidArguments},
		{"name of a temporary file", "write_file", "dir/.rolecall-" + identity.NewID(), errcode.InvalidArguments},
		{"too many nested folders", "write_file", strings.Repeat("d/", maxDepth) + "f", errcode.InvalidArguments},
		{"parent", "list_files", "..", errcode.PathTraversal},
		{"parent through a folder", "read_file", "dir/../../x", errcode.PathTraversal},
		{"absolute path", "read_file", filepath.Join(outside, "canary"), errcode.PathTraversal},
		{"root directory", "list_files", "/", errcode.PathTraversal},
		{"parent with backslash", "read_file", `..\canary`, errcode.PathTraversal},
		{"parent with mixed slashes", "write_file", `dir\../..\x`, errcode.PathTraversal},
		{"Windows root", "read_file", `\Windows\win.ini`, errcode.PathTraversal},
		{"Windows drive", "read_file", `C:\boot.ini`, errcode.PathTraversal},
		{"relative path on a Windows drive", "write_file", `c:boot.ini`, errcode.PathTraversal},
		{"Windows share", "read_file", `\\host\share\f`, errcode.PathTraversal},
		{"Windows device", "read_file", `\\?\C:\f`, errcode.PathTraversal},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := obj{"path": c.path}
			if c.tool == "write_file" {
				args["content"] = "PWNED"
			}
			answer := k.call(t, c.tool, args)
			if got := k.callCode(t, c.tool, args); got != c.want {
				t.Errorf("code %q, want %q: %s", got, c.want, answer)
			}
			if !strings.Contains(answer, `"ok":false`) || strings.Contains(answer, "SECRET") || strings.Contains(answer, dir) {
				t.Errorf("got %s", answer)
			}
		})
	}
	if diff := gocmp.Diff(map[string]string{"canary": "SECRET"}, tree(t, outside, "")); diff != "" {
		t.Errorf("outside changed (-want +got):\n%s", diff)
	}
}

func TestWriteFile_RejectsInvalidContent(t *testing.T) {
	dir := t.TempDir()
	f := files{workspaces: stubWorkspaces{dir: dir}, limits: allTools, reads: newReadSlots()}
	for name, in := range map[string]writeFile{
		"invalid base64":               {Path: "f", Content: new("!!"), Encoding: inBase64},
		"more than 8 MiB":              {Path: "f", Content: new(strings.Repeat("a", workspace.MaxContent+1))},
		"no content":                   {Path: "f"},
		"two contents":                 {Path: "f", Content: new(""), Artifact: "artifact:a"},
		"an artifact with an encoding": {Path: "f", Artifact: "artifact:a", Encoding: inBase64},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := f.write(t.Context(), in); errcode.CodeOf(err) != errcode.InvalidArguments {
				t.Errorf("error %v, want invalid_arguments", err)
			}
		})
	}
	if got := tree(t, dir, ""); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestFileTools_ReadOnlyWorkspace(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "f"), "text")
	tools, err := workspaceTools(stubWorkspaces{dir: dir, readOnly: true}, nil, allTools)
	k := newFixture(t, tools, err)
	if got := callResult[filePart](t, k, "read_file", obj{"path": "f"}); got.Content != "text" {
		t.Errorf("read %q", got.Content)
	}
	for _, path := range []string{"f", "new", "new/folder/f"} {
		if got := k.callCode(t, "write_file", obj{"path": path, "content": "x"}); got != errcode.WorkspaceReadOnly {
			t.Errorf("%s: code %q, want workspace_read_only", path, got)
		}
	}
	if got := callResult[workspace.Info](t, k, "get_workspace_info", obj{}); !got.ReadOnly {
		t.Error("info lacks readOnly")
	}
	if diff := gocmp.Diff(map[string]string{"f": "text"}, tree(t, dir, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFileTools_RejectCallersWithoutWorkspace(t *testing.T) {
	k := workspaceFixture(t, t.TempDir(), map[string]string{"f": "text"})
	for _, by := range []identity.Principal{{}, identity.ByAgent("bob"), identity.ByAgent(""), identity.ByCaller("ann", "root"), identity.ByOperator("ann")} {
		for name, args := range map[string]obj{
			"read_file": {"path": "f"}, "write_file": {"path": "f", "content": ""}, "list_files": {}, "get_workspace_info": {},
		} {
			if got := k.callAs(t, by, name, args); !strings.Contains(string(got.JSON()), `"error":"workspace_not_bound"`) {
				t.Errorf("%s: %s returned %s", by, name, got.JSON())
			}
		}
	}
}

func TestListFiles(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	putFile(t, filepath.Join(outside, "canary"), "SECRET")
	k := workspaceFixture(t, dir, map[string]string{"b.txt": "12345", "a/x": "1", "a/z/y": "22", "a-b": "", "empty/.keep": ""})
	symlink(t, outside, filepath.Join(dir, "out"))
	symlink(t, "a", filepath.Join(dir, "in"))
	for _, c := range []struct {
		name, args, path string
		want             []string
	}{
		{"workspace", `{}`, ".", []string{"a directory 0", "a-b file 0", "b.txt file 5", "empty directory 0", "in symlink 0", "out symlink 0"}},
		{"folder", `{"path":"a/"}`, "a", []string{"x file 1", "z directory 0"}},
		{"recursive without following links", `{"recursive":true}`, ".", []string{
			"a directory 0", "a-b file 0", "a/x file 1", "a/z directory 0", "a/z/y file 2",
			"b.txt file 5", "empty directory 0", "empty/.keep file 0", "in symlink 0", "out symlink 0",
		}},
		{"names relative to the folder", `{"path":"a","recursive":true}`, "a", []string{"x file 1", "z directory 0", "z/y file 2"}},
		{"link to a folder inside", `{"path":"in"}`, "in", []string{"x file 1", "z directory 0"}},
		{"empty folder", `{"path":"void"}`, "void", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.MkdirAll(filepath.Join(dir, "void"), 0o755); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(filepath.Join(dir, "void"))
			got := callResult[workspace.Listing](t, k, "list_files", rawJSON(c.args))
			var entries []string
			for _, e := range got.Entries {
				if e.Name != "void" {
					entries = append(entries, fmt.Sprintln(e.Name, e.Type, e.Size))
				}
			}
			if diff := gocmp.Diff(strings.Join(c.want, "\n"), strings.TrimSuffix(strings.Join(entries, ""), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Path != c.path || got.Truncated {
				t.Errorf("path %q, truncated %v", got.Path, got.Truncated)
			}
		})
	}
}

func TestListFiles_Pattern(t *testing.T) {
	k := workspaceFixture(t, t.TempDir(), map[string]string{
		"a.go": "", "b.txt": "", "src/a.go": "", "src/a_test.go": "", "src/deep/er/a.go": "", "src/deep/[x]": "", "Src.GO": "", ".hidden.go": "",
	})
	for _, c := range []struct{ name, args, want string }{
		{"names in one folder", `{"pattern":"*.go"}`, ".hidden.go a.go"},
		{"names in all folders", `{"pattern":"*.go","recursive":true}`, ".hidden.go a.go src/a.go src/a_test.go src/deep/er/a.go"},
		{"names of folders", `{"pattern":"d*","recursive":true}`, "src/deep"},
		{"path", `{"pattern":"src/*.go"}`, "src/a.go src/a_test.go"},
		{"any folders", `{"pattern":"src/**/a.go"}`, "src/a.go src/deep/er/a.go"},
		{"any folders at the start", `{"pattern":"**/a.go"}`, "a.go src/a.go src/deep/er/a.go"},
		{"any folders at the end", `{"pattern":"src/deep/**"}`, "src/deep src/deep/[x] src/deep/er src/deep/er/a.go"},
		{"only any folders", `{"pattern":"**","path":"src/deep"}`, "[x] er er/a.go"},
		{"one character", `{"pattern":"?.go"}`, "a.go"},
		{"range", `{"pattern":"[a-b].*"}`, "a.go b.txt"},
		{"escaped character", `{"pattern":"\\[x]","recursive":true}`, "src/deep/[x]"},
		{"relative to the folder", `{"pattern":"er/*","path":"src/deep"}`, "er/a.go"},
		{"pattern that needs cleaning", `{"pattern":"./src//a.go"}`, "src/a.go"},
		{"no match", `{"pattern":"nope","recursive":true}`, ""},
		{"parent folder", `{"pattern":"../*"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			for _, e := range callResult[workspace.Listing](t, k, "list_files", rawJSON(c.args)).Entries {
				names = append(names, e.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, pattern := range []string{"[", "a/[", "[]a]/x", `\`} {
		if got := k.callCode(t, "list_files", obj{"pattern": pattern}); got != errcode.InvalidArguments {
			t.Errorf("%q: code %q, want invalid_arguments", pattern, got)
		}
	}
}

func TestListFiles_BoundsDepth(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, strings.Repeat("d/", maxDepth-1), "f"), "")
	k := workspaceFixture(t, dir, nil)
	if got := callResult[workspace.Listing](t, k, "list_files", obj{"recursive": true}); len(got.Entries) != maxDepth || got.Truncated {
		t.Errorf("%d entries, truncated %v; want all", len(got.Entries), got.Truncated)
	}
	putFile(t, filepath.Join(dir, strings.Repeat("d/", maxDepth), "f"), "")
	if got := callResult[workspace.Listing](t, k, "list_files", obj{"recursive": true}); len(got.Entries) != maxDepth+1 || !got.Truncated {
		t.Errorf("%d entries, truncated %v; want those of %d folders", len(got.Entries), got.Truncated, maxDepth)
	}
}

func TestListFiles_AnswerShape(t *testing.T) {
	dir := t.TempDir()
	k := workspaceFixture(t, dir, map[string]string{"f": "1"})
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.FixedZone("", 3600))
	if err := os.Chtimes(filepath.Join(dir, "f"), at, at); err != nil {
		t.Fatal(err)
	}
	want := `{"path":".","entries":[{"name":"f","type":"file","size":1,"modifiedAt":"2026-02-03T03:05:06Z"}]}`
	if diff := gocmp.Diff(want, k.call(t, "list_files", obj{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if got, want := k.call(t, "list_files", obj{}), `{"path":".","entries":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestListFiles_TruncatesAtTenThousand(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "00000"), "")
	for i := range maxEntries { // names of one file, which is quicker than files
		if err := os.Link(filepath.Join(dir, "00000"), filepath.Join(dir, fmt.Sprintf("%05d", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	k := workspaceFixture(t, dir, nil)
	got := callResult[workspace.Listing](t, k, "list_files", obj{"recursive": true})
	if len(got.Entries) != maxEntries || !got.Truncated {
		t.Fatalf("%d entries, truncated %v; want %d, truncated", len(got.Entries), got.Truncated, maxEntries)
	}
	if got.Entries[0].Name != "00000" || got.Entries[maxEntries-1].Name != "09999" {
		t.Error("not the first, or not sorted")
	}
	if err := os.Remove(filepath.Join(dir, "00000")); err != nil {
		t.Fatal(err)
	}
	if got := callResult[workspace.Listing](t, k, "list_files", obj{}); len(got.Entries) != maxEntries || got.Truncated {
		t.Errorf("%d entries, truncated %v; want all %d", len(got.Entries), got.Truncated, maxEntries)
	}
}

// Paths can be so long that 10,000 entries take hundreds of MiB as JSON.
func TestListFiles_TruncatesLongListing(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	deep := strings.Repeat(strings.Repeat("\x01", 250)+"/", 20)
	if err := root.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := root.WriteFile(fmt.Sprintf("%s%03d", deep, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := workspaceFixture(t, dir, nil).call(t, "list_files", obj{"recursive": true})
	var got workspace.Listing
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if most := 3 << 20; len(text) > most || len(text) < most/2 || !got.Truncated {
		t.Errorf("%d entries in %d bytes, truncated %v; want %d bytes at most, truncated", len(got.Entries), len(text), got.Truncated, most)
	}
}

func TestWorkspaceInfo_Counts(t *testing.T) {
	dir := t.TempDir()
	k := workspaceFixture(t, dir, map[string]string{"a": "123", "b/c": "45", "b/d/e": ""})
	symlink(t, "a", filepath.Join(dir, "link"))
	last := time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "b/c"), last, last); err != nil {
		t.Fatal(err)
	}
	want := `{"files":3,"directories":2,"totalSize":5,"modifiedAt":"2100-01-02T03:04:05Z","readOnly":false,"quota":{"bytes":1073741824,"files":100000}}`
	if diff := gocmp.Diff(want, k.call(t, "get_workspace_info", obj{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListFiles_HonorsContext(t *testing.T) {
	k := workspaceFixture(t, t.TempDir(), map[string]string{"f": ""})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := k["list_files"].Call(ctx, tool.Call{Args: rawJSON(`{}`), By: identity.ByAgent(callerID)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// A reader sees the old or the new content, never a part, while a file is
// replaced repeatedly.
func TestWriteFile_IsAtomicForReaders(t *testing.T) {
	k := workspaceFixture(t, t.TempDir(), map[string]string{"f": strings.Repeat("0", 5000)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			k.call(t, "write_file", obj{"path": "f", "content": strings.Repeat(fmt.Sprint(i%10), 5000)})
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got := callResult[filePart](t, k, "read_file", obj{"path": "f"})
		if got.Length != 5000 || strings.Trim(got.Content, got.Content[:1]) != "" {
			t.Fatalf("read %d bytes of mixed content", got.Length)
		}
	}
	<-done
}

// blockingStore is a WorkspaceOpener and an ArtifactStore that reports the owner of each
// call on opened and returns when release is closed.
type blockingStore struct {
	memoryArtifacts
	opened  chan string
	release chan struct{}
}

func (b blockingStore) OpenWorkspace(ctx context.Context, _ identity.Principal) (*workspace.Dir, error) {
	b.opened <- currentCall(ctx).Owner
	<-b.release
	return nil, errcode.New(errcode.WorkspaceNotBound, "no workspace")
}

func (b blockingStore) GetArtifact(_ context.Context, c tool.Call, _ string) (*Artifact, error) {
	b.opened <- c.Owner
	<-b.release
	return nil, nil
}

// Calls that walk through a workspace take a processor, and those that load an artifact take
// memory. One owner must not take all.
func TestReads_OwnersShareSlots(t *testing.T) {
	for name, args := range map[string]string{"list_files": `{}`, "get_workspace_info": `{}`, "get_artifact": `{"ref":"artifact:a"}`, "read_file": `{"path":"f"}`,
		"put_artifact": `{"type":"t","path":"f"}`, "write_file": `{"path":"f","artifactRef":"artifact:a"}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := blockingStore{opened: make(chan string, 100), release: make(chan struct{})}
				files, err := workspaceTools(b, b, allTools)
				artifacts, artifactErr := artifactTools(b, b, allTools)
				k := newFixture(t, slices.Concat(files, artifacts), errors.Join(err, artifactErr))
				var calls sync.WaitGroup
				call := func(owner string) {
					calls.Go(func() {
						_, _ = k[name].Call(t.Context(), tool.Call{Name: name, Args: rawJSON(args), By: identity.ByAgent(callerID), Owner: owner})
					})
				}
				for range 64 {
					call("greedy")
				}
				synctest.Wait()
				if most := max(4, 2*runtime.NumCPU()) / 2; len(b.opened) != most {
					t.Errorf("%d calls of one owner at once, want %d", len(b.opened), most)
				}
				for len(b.opened) > 0 {
					<-b.opened
				}
				call("modest")
				synctest.Wait()
				if len(b.opened) != 1 || <-b.opened != "modest" {
					t.Error("the first call of another owner waits")
				}
				close(b.release)
				calls.Wait()
			})
		})
	}
}

// escapeFixture is a workspace deep in a tree of canary files, so that a path that
// escapes reaches one.
type escapeFixture struct {
	base, workspace string
	before          map[string]string
}

func newEscapeFixture(t testing.TB) escapeFixture {
	base := t.TempDir()
	dir := base
	for range 8 {
		for _, name := range []string{"canary", "etc/passwd", "boot.ini", "outsider"} {
			putFile(t, filepath.Join(dir, name), "SECRET")
		}
		dir = filepath.Join(dir, "d")
	}
	dir = filepath.Join(dir, "workspace")
	putFile(t, filepath.Join(dir, "sub", "f"), "inside")
	symlink(t, base, filepath.Join(dir, "out"))
	symlink(t, "../canary", filepath.Join(dir, "outfile"))
	symlink(t, "sub", filepath.Join(dir, "in"))
	return escapeFixture{base, dir, tree(t, base, dir)}
}

// tree returns the contents of the files below base by name, without those below
// skip.
func tree(t testing.TB, base, skip string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == skip {
			return errors.Join(err, fs.SkipDir)
		}
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(base, path)
		found[name] = string(content)
		return err
	})
	if err != nil && !errors.Is(err, fs.SkipDir) {
		t.Fatal(err)
	}
	return found
}

// tools returns all tools that take a path.
func (m escapeFixture) tools(t testing.TB) fixture {
	k := workspaceFixture(t, m.workspace, nil)
	tools, err := artifactTools(memoryArtifacts{}, stubWorkspaces{dir: m.workspace}, allTools)
	for name, tl := range newFixture(t, tools, err) {
		k[name] = tl
	}
	return k
}

func (m escapeFixture) checkOutside(t testing.TB) {
	t.Helper()
	if diff := gocmp.Diff(m.before, tree(t, m.base, m.workspace)); diff != "" {
		t.Fatalf("outside changed (-before +after):\n%s", diff)
	}
}

// tryPath uses path with all tools and checks that no result shows files outside.
func (m escapeFixture) tryPath(t testing.TB, k fixture, path string) {
	t.Helper()
	for _, answer := range []string{
		k.call(t, "read_file", obj{"path": path}),
		k.call(t, "list_files", obj{"path": path, "recursive": true}),
		k.call(t, "list_files", obj{"pattern": path[:min(len(path), 500)]}),
		k.call(t, "put_artifact", obj{"type": "t", "path": path}),
		k.call(t, "get_artifact", obj{"ref": "artifact:call-1"}),
	} {
		if strings.Contains(answer, "SECRET") || strings.Contains(answer, `"outsider"`) || strings.Contains(answer, "root:x:0") {
			t.Fatalf("%q shows files outside: %s", path, answer)
		}
	}
	if k.callCode(t, "write_file", obj{"path": path, "content": "PWNED"}) == "" {
		if got := callResult[filePart](t, k, "read_file", obj{"path": path}); got.Content != "PWNED" {
			t.Fatalf("%q was written but reads %q", path, got.Content)
		}
	}
}

func TestFileTools_NoTraversalStringEscapes(t *testing.T) {
	passwd, _ := os.ReadFile("/etc/passwd")
	t.Run("in parts", func(t *testing.T) { // in parallel, since each write syncs to disk
		for part := range slices.Chunk(short.SampleList(t, 200, traversals(t)), 500) {
			t.Run(fmt.Sprintf("from %.20q", part[0]), func(t *testing.T) {
				t.Parallel()
				m := newEscapeFixture(t)
				k := m.tools(t)
				for _, path := range part {
					m.tryPath(t, k, strings.ReplaceAll(path, "{FILE}", "canary"))
				}
				m.checkOutside(t)
			})
		}
	})
	if now, _ := os.ReadFile("/etc/passwd"); string(now) != string(passwd) {
		t.Error("/etc/passwd changed")
	}
}

// traversals returns the paths in testdata/path_traversal.jsonl.
func traversals(t testing.TB) []string {
	t.Helper()
	file, err := os.Open("testdata/path_traversal.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var paths []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct{ V string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, row.V)
	}
	if len(paths) != 5045 {
		t.Fatalf("%d rows, want 5045", len(paths))
	}
	return paths
}

func FuzzWorkspacePath(f *testing.F) {
	for _, path := range []string{
		"a", ".", "..", "/", "", "a/../b", "../canary", "out/canary", "outfile", "in/f", "in/../../canary", `..\canary`,
		`C:\x`, "a\x00b", strings.Repeat("a/", 50), strings.Repeat("n", 300), "%2e%2e/canary", "....//canary", "a\n", "\xff",
	} {
		f.Add(path)
	}
	m := newEscapeFixture(f)
	k := m.tools(f)
	f.Fuzz(func(t *testing.T, path string) {
		m.tryPath(t, k, path)
		m.checkOutside(t)
	})
}

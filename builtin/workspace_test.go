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
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/tool"
)

// folder is ann's workspace; nobody else has one.
type folder struct {
	dir      string
	readOnly bool
	quota    Quota // zero is plenty
}

// spaces is of all folders.
var spaces QuotaManager

func (f folder) Workspace(_ context.Context, by identity.Principal) (*Workspace, error) {
	if by != identity.ByAgent(ann) {
		return nil, errcode.New(errcode.WorkspaceNotBound, "%s has no workspace", by)
	}
	root, err := os.OpenRoot(f.dir)
	return &Workspace{Root: root, ReadOnly: f.readOnly, Space: spaces.Of(f.dir, cmp.Or(f.quota, Quota{1 << 30, 100_000}))}, err
}

// workspaceKit gives the tools over a folder with the given files.
func workspaceKit(t testing.TB, dir string, files map[string]string) kit {
	t.Helper()
	for name, content := range files {
		put(t, filepath.Join(dir, name), content)
	}
	tools, err := workspaceTools(folder{dir: dir}, nil, everything)
	return newKit(t, tools, err)
}

func put(t testing.TB, name, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestReadFileReadsParts(t *testing.T) {
	k := workspaceKit(t, t.TempDir(), map[string]string{
		"text":     "naïve €uro",
		"empty":    "",
		"binary":   "\x00\xff\x01",
		"long":     strings.Repeat("x", 6000),
		"dir/deep": "deep",
	})
	for _, c := range []struct{ name, args, want string }{
		{"whole when short", `{"path":"text"}`, `{"path":"text","content":"naïve €uro","offset":0,"length":13,"size":13}`},
		{"from an offset", `{"path":"text","offset":7,"length":3}`, `{"path":"text","content":"€","offset":7,"length":3,"size":13}`},
		{"back to a whole character", `{"path":"text","length":9}`, `{"path":"text","content":"naïve ","offset":0,"length":7,"size":13}`},
		{"as base64 from inside a character", `{"path":"text","offset":8}`, `{"path":"text","content":"gqx1cm8=","encoding":"base64","offset":8,"length":5,"size":13}`},
		{"as base64 less than a character", `{"path":"text","offset":7,"length":1}`, `{"path":"text","content":"4g==","encoding":"base64","offset":7,"length":1,"size":13}`},
		{"as base64 when it is no text", `{"path":"binary"}`, `{"path":"binary","content":"AP8B","encoding":"base64","offset":0,"length":3,"size":3}`},
		{"nothing of nothing", `{"path":"empty"}`, `{"path":"empty","content":"","offset":0,"length":0,"size":0}`},
		{"nothing behind the end", `{"path":"text","offset":9007199254740991}`, `{"path":"text","content":"","offset":9007199254740991,"length":0,"size":13}`},
		{"by a cleaned path", `{"path":"./dir//x/../deep"}`, `{"path":"dir/deep","content":"deep","offset":0,"length":4,"size":4}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := gocmp.Diff(c.want, k.ask(t, "read_file", raw(c.args))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("5000 bytes unless told", func(t *testing.T) {
		if got := get[filePart](t, k, "read_file", obj{"path": "long"}); got.Length != 5000 || got.Size != 6000 {
			t.Errorf("length %d of %d, want 5000 of 6000", got.Length, got.Size)
		}
	})
}

// Reading on by length until size gives the file, whatever its bytes and
// however short the parts.
func TestPartsMakeTheWhole(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	alphabet := []string{"a", "ñ", "€", "😀", "\xff", "\xe2"}
	dir := t.TempDir()
	k := workspaceKit(t, dir, nil)
	for range 30 {
		var want strings.Builder
		for range random.IntN(40) {
			want.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		put(t, filepath.Join(dir, "f"), want.String())
		if got := readAll(t, k, "f", 1+random.IntN(6)); got != want.String() {
			t.Fatalf("got %q, want %q", got, want.String())
		}
	}
}

func readAll(t *testing.T, k kit, path string, length int) string {
	var all []byte
	for {
		p := get[filePart](t, k, "read_file", obj{"path": path, "offset": len(all), "length": length})
		data := []byte(p.Content)
		if p.Encoding == inBase64 {
			data, _ = base64.StdEncoding.DecodeString(p.Content)
		}
		if len(data) != p.Length || p.Length > length {
			t.Fatalf("%d bytes, length says %d, asked for %d", len(data), p.Length, length)
		}
		if all = append(all, data...); int64(len(all)) == p.Size {
			return string(all)
		}
		if p.Length == 0 {
			t.Fatalf("no way on at %d of %d", len(all), p.Size)
		}
	}
}

func TestWriteFile(t *testing.T) {
	for _, c := range []struct{ name, args, answer, file, content string }{
		{"makes a file and its folders", `{"path":"a/b/c.txt","content":"hé","mimeType":"text/plain"}`, `{"ok":true,"path":"a/b/c.txt","size":3}`, "a/b/c.txt", "hé"},
		{"replaces a longer one", `{"path":"old.txt","content":"x"}`, `{"ok":true,"path":"old.txt","size":1}`, "old.txt", "x"},
		{"empties a file", `{"path":"old.txt","content":""}`, `{"ok":true,"path":"old.txt","size":0}`, "old.txt", ""},
		{"takes bytes as base64", `{"path":"b","content":"AP8B","encoding":"base64"}`, `{"ok":true,"path":"b","size":3}`, "b", "\x00\xff\x01"},
		{"writes through a folder's symlink", `{"path":"link/f","content":"x"}`, `{"ok":true,"path":"link/f","size":1}`, "sub/f", "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			k := workspaceKit(t, dir, map[string]string{"old.txt": "old content", "sub/x": ""})
			symlink(t, "sub", filepath.Join(dir, "link"))
			if got := k.ask(t, "write_file", raw(c.args)); got != c.answer {
				t.Errorf("answered %s, want %s", got, c.answer)
			}
			if got, err := os.ReadFile(filepath.Join(dir, c.file)); string(got) != c.content || err != nil {
				t.Errorf("file has %q, %v, want %q", got, err, c.content)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", ".rolecall-*")); left != nil {
				t.Errorf("left behind %s", left)
			}
		})
	}
}

func TestWriteFileKeepsPermissions(t *testing.T) {
	dir := t.TempDir()
	k := workspaceKit(t, dir, map[string]string{"run.sh": "old"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	k.ask(t, "write_file", obj{"path": "run.sh", "content": "new"})
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

func TestFileToolsRefuse(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "canary"), "SECRET")
	dir := t.TempDir()
	k := workspaceKit(t, dir, map[string]string{"f": "text", "dir/g": "text", "frozen": "text"})
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
		{"a missing file", "read_file", "nope", errcode.FileNotFound},
		{"a file in a missing folder", "read_file", "no/pe", errcode.FileNotFound},
		{"a missing folder", "list_files", "nope", errcode.FileNotFound},
		{"to read a folder", "read_file", "dir", errcode.InvalidArguments},
		{"to read the workspace", "read_file", ".", errcode.InvalidArguments},
		{"to write a folder", "write_file", "dir", errcode.InvalidArguments},
		{"to write the workspace", "write_file", "./", errcode.InvalidArguments},
		{"to list a file", "list_files", "f", errcode.NotADirectory},
		{"to read below a file", "read_file", "f/x", errcode.NotADirectory},
		{"to write below a file", "write_file", "f/x", errcode.NotADirectory},
		{"to write further below a file", "write_file", "f/x/y", errcode.NotADirectory},
		{"to write a file marked read-only", "write_file", "frozen", errcode.PermissionDenied},
		{"to write a symlink", "write_file", "infile", errcode.PermissionDenied},
		{"to read a symlink that leads out", "read_file", "outfile", errcode.PathTraversal},
		{"to write a symlink that leads out", "write_file", "outfile", errcode.PathTraversal},
		{"to write a symlink that leads to nothing outside", "write_file", "dangling-out", errcode.PathTraversal},
		{"to read through a folder outside", "read_file", "out/canary", errcode.PathTraversal},
		{"to write through a folder outside", "write_file", "out/new", errcode.PathTraversal},
		{"to make folders outside", "write_file", "out/a/b/new", errcode.PathTraversal},
		{"to list a folder outside", "list_files", "out", errcode.PathTraversal},
		{"a symlink in a circle", "read_file", "loop", errcode.ToolExecutionFailed},
		{"a NUL byte", "read_file", "f\x00.txt", errcode.InvalidArguments},
		{"a NUL byte in what is written", "write_file", "a\x00", errcode.InvalidArguments},
		{"a very long name", "read_file", long, errcode.InvalidArguments},
		{"to write a very long name", "write_file", long, errcode.InvalidArguments},
		{"a very long folder", "write_file", long + "/f", errcode.InvalidArguments},
		{"to write a name that drafts have", "write_file", "dir/" + draftPrefix + identity.NewID(), errcode.InvalidArguments},
		{"to write below too many folders", "write_file", strings.Repeat("d/", maxDepth) + "f", errcode.InvalidArguments},
		{"the parent", "list_files", "..", errcode.PathTraversal},
		{"the parent, the long way", "read_file", "dir/../../x", errcode.PathTraversal},
		{"an absolute path", "read_file", filepath.Join(outside, "canary"), errcode.PathTraversal},
		{"the file system", "list_files", "/", errcode.PathTraversal},
		{"the parent as Windows writes it", "read_file", `..\canary`, errcode.PathTraversal},
		{"the parent, mixed", "write_file", `dir\../..\x`, errcode.PathTraversal},
		{"a Windows root", "read_file", `\Windows\win.ini`, errcode.PathTraversal},
		{"a Windows drive", "read_file", `C:\boot.ini`, errcode.PathTraversal},
		{"a file on a Windows drive", "write_file", `c:boot.ini`, errcode.PathTraversal},
		{"a Windows share", "read_file", `\\host\share\f`, errcode.PathTraversal},
		{"a Windows device", "read_file", `\\?\C:\f`, errcode.PathTraversal},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := obj{"path": c.path}
			if c.tool == "write_file" {
				args["content"] = "PWNED"
			}
			answer := k.ask(t, c.tool, args)
			if got := k.code(t, c.tool, args); got != c.want {
				t.Errorf("code %q, want %q: %s", got, c.want, answer)
			}
			if !strings.Contains(answer, `"ok":false`) || strings.Contains(answer, "SECRET") || strings.Contains(answer, dir) {
				t.Errorf("answered %s", answer)
			}
		})
	}
	if diff := gocmp.Diff(map[string]string{"canary": "SECRET"}, tree(t, outside, "")); diff != "" {
		t.Errorf("outside changed (-want +got):\n%s", diff)
	}
}

func TestContentThatCannotBeWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	f := files{folder{dir: dir}, nil, everything}
	for name, in := range map[string]writeFile{
		"what is not base64":           {Path: "f", Content: new("!!"), Encoding: inBase64},
		"more than 8 MiB":              {Path: "f", Content: new(strings.Repeat("a", maxContent+1))},
		"nothing at all":               {Path: "f"},
		"two contents":                 {Path: "f", Content: new(""), Artifact: "artifact:a"},
		"an artifact with an encoding": {Path: "f", Artifact: "artifact:a", Encoding: inBase64},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := f.write(t.Context(), in); errcode.Of(err) != errcode.InvalidArguments {
				t.Errorf("error %v, want invalid_arguments", err)
			}
		})
	}
	if got := tree(t, dir, ""); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestAReadOnlyWorkspaceIsReadAndNotWritten(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "text")
	tools, err := workspaceTools(folder{dir: dir, readOnly: true}, nil, everything)
	k := newKit(t, tools, err)
	if got := get[filePart](t, k, "read_file", obj{"path": "f"}); got.Content != "text" {
		t.Errorf("read %q", got.Content)
	}
	for _, path := range []string{"f", "new", "new/folder/f"} {
		if got := k.code(t, "write_file", obj{"path": path, "content": "x"}); got != errcode.WorkspaceReadOnly {
			t.Errorf("%s: code %q, want workspace_read_only", path, got)
		}
	}
	if got := get[workspaceInfo](t, k, "get_workspace_info", obj{}); !got.ReadOnly {
		t.Error("info does not say readOnly")
	}
	if diff := gocmp.Diff(map[string]string{"f": "text"}, tree(t, dir, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoeverHasNoWorkspaceReachesNone(t *testing.T) {
	k := workspaceKit(t, t.TempDir(), map[string]string{"f": "text"})
	for _, by := range []identity.Principal{{}, identity.ByAgent("bob"), identity.ByAgent(""), identity.ByCaller("ann", "root"), identity.ByOperator("ann")} {
		for name, args := range map[string]obj{
			"read_file": {"path": "f"}, "write_file": {"path": "f", "content": ""}, "list_files": {}, "get_workspace_info": {},
		} {
			if got := k.result(t, by, name, args); !strings.Contains(string(got.JSON()), `"error":"workspace_not_bound"`) {
				t.Errorf("%s: %s answered %s", by, name, got.JSON())
			}
		}
	}
}

func TestListFiles(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	put(t, filepath.Join(outside, "canary"), "SECRET")
	k := workspaceKit(t, dir, map[string]string{"b.txt": "12345", "a/x": "1", "a/z/y": "22", "a-b": "", "empty/.keep": ""})
	symlink(t, outside, filepath.Join(dir, "out"))
	symlink(t, "a", filepath.Join(dir, "in"))
	for _, c := range []struct {
		name, args, path string
		want             []string
	}{
		{"the workspace itself", `{}`, ".", []string{"a directory 0", "a-b file 0", "b.txt file 5", "empty directory 0", "in symlink 0", "out symlink 0"}},
		{"a folder", `{"path":"a/"}`, "a", []string{"x file 1", "z directory 0"}},
		{"folders in folders, following no link", `{"recursive":true}`, ".", []string{
			"a directory 0", "a-b file 0", "a/x file 1", "a/z directory 0", "a/z/y file 2",
			"b.txt file 5", "empty directory 0", "empty/.keep file 0", "in symlink 0", "out symlink 0",
		}},
		{"names relative to the folder", `{"path":"a","recursive":true}`, "a", []string{"x file 1", "z directory 0", "z/y file 2"}},
		{"a link to a folder inside", `{"path":"in"}`, "in", []string{"x file 1", "z directory 0"}},
		{"an empty folder", `{"path":"void"}`, "void", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.MkdirAll(filepath.Join(dir, "void"), 0o755); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(filepath.Join(dir, "void"))
			got := get[listing](t, k, "list_files", raw(c.args))
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

func TestListFilesByPattern(t *testing.T) {
	k := workspaceKit(t, t.TempDir(), map[string]string{
		"a.go": "", "b.txt": "", "src/a.go": "", "src/a_test.go": "", "src/deep/er/a.go": "", "src/deep/[x]": "", "Src.GO": "", ".hidden.go": "",
	})
	for _, c := range []struct{ name, args, want string }{
		{"names of the folder alone", `{"pattern":"*.go"}`, ".hidden.go a.go"},
		{"names in all folders", `{"pattern":"*.go","recursive":true}`, ".hidden.go a.go src/a.go src/a_test.go src/deep/er/a.go"},
		{"names of folders too", `{"pattern":"d*","recursive":true}`, "src/deep"},
		{"a path", `{"pattern":"src/*.go"}`, "src/a.go src/a_test.go"},
		{"any folders", `{"pattern":"src/**/a.go"}`, "src/a.go src/deep/er/a.go"},
		{"any folders first", `{"pattern":"**/a.go"}`, "a.go src/a.go src/deep/er/a.go"},
		{"any folders last", `{"pattern":"src/deep/**"}`, "src/deep src/deep/[x] src/deep/er src/deep/er/a.go"},
		{"any folders and nothing else", `{"pattern":"**","path":"src/deep"}`, "[x] er er/a.go"},
		{"one character", `{"pattern":"?.go"}`, "a.go"},
		{"a range", `{"pattern":"[a-b].*"}`, "a.go b.txt"},
		{"a character as it is", `{"pattern":"\\[x]","recursive":true}`, "src/deep/[x]"},
		{"relative to the folder", `{"pattern":"er/*","path":"src/deep"}`, "er/a.go"},
		{"with its path written otherwise", `{"pattern":"./src//a.go"}`, "src/a.go"},
		{"what is nowhere", `{"pattern":"nope","recursive":true}`, ""},
		{"never what is outside", `{"pattern":"../*"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			for _, e := range get[listing](t, k, "list_files", raw(c.args)).Entries {
				names = append(names, e.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, pattern := range []string{"[", "a/[", "[]a]/x", `\`} {
		if got := k.code(t, "list_files", obj{"pattern": pattern}); got != errcode.InvalidArguments {
			t.Errorf("%q: code %q, want invalid_arguments", pattern, got)
		}
	}
}

// A pattern made to be slow is not: what is read of it is kept name by name.
func TestAPatternCostsNoMoreThanItIsLong(t *testing.T) {
	g, err := parseGlob(strings.Repeat("**/*a*a*a*a*b/", 30) + "c")
	if err != nil {
		t.Fatal(err)
	}
	if g.matches(strings.Repeat(strings.Repeat("a", 200)+"/", 99) + "c") {
		t.Error("it matches")
	}
	if !g.matches(strings.Repeat("x/aaaab/", 30) + "c") {
		t.Error("it does not match what it stands for")
	}
}

func TestAListGoesOnlySoDeep(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, strings.Repeat("d/", maxDepth-1), "f"), "")
	k := workspaceKit(t, dir, nil)
	if got := get[listing](t, k, "list_files", obj{"recursive": true}); len(got.Entries) != maxDepth || got.Truncated {
		t.Errorf("%d entries, truncated %v; want all", len(got.Entries), got.Truncated)
	}
	put(t, filepath.Join(dir, strings.Repeat("d/", maxDepth), "f"), "")
	if got := get[listing](t, k, "list_files", obj{"recursive": true}); len(got.Entries) != maxDepth+1 || !got.Truncated {
		t.Errorf("%d entries, truncated %v; want those of %d folders", len(got.Entries), got.Truncated, maxDepth)
	}
}

func TestAWalkLooksAtNoMoreNamesThanItMay(t *testing.T) {
	dir := t.TempDir()
	k := []string{"a", "b/c", "b/d", "e"}
	for _, name := range k {
		put(t, filepath.Join(dir, name), "")
	}
	for left, want := range map[int64]string{0: "", 2: "", 3: "a b e", 4: "a b", 5: "a b b/c b/d e", 6: "a b b/c b/d e"} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		w := walker{ctx: t.Context(), root: root, left: left, visit: func(name string, _ fs.FileInfo) error {
			seen = append(seen, name)
			return nil
		}}
		if err := w.walk("."); err != nil {
			t.Error(err)
		}
		root.Close()
		if got := strings.Join(seen, " "); w.cut != (left < 5) || len(seen) > int(left) || (left == 3 || left >= 5) && got != want {
			t.Errorf("with %d names it saw %q, cut %v, want %q", left, got, w.cut, want)
		}
	}
}

func TestListFilesShape(t *testing.T) {
	dir := t.TempDir()
	k := workspaceKit(t, dir, map[string]string{"f": "1"})
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.FixedZone("", 3600))
	if err := os.Chtimes(filepath.Join(dir, "f"), at, at); err != nil {
		t.Fatal(err)
	}
	want := `{"path":".","entries":[{"name":"f","type":"file","size":1,"modifiedAt":"2026-02-03T03:05:06Z"}]}`
	if diff := gocmp.Diff(want, k.ask(t, "list_files", obj{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if got, want := k.ask(t, "list_files", obj{}), `{"path":".","entries":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAListStopsAtTenThousand(t *testing.T) {
	dir := t.TempDir()
	for i := range maxEntries + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := workspaceKit(t, dir, nil)
	got := get[listing](t, k, "list_files", obj{"recursive": true})
	if len(got.Entries) != maxEntries || !got.Truncated {
		t.Fatalf("%d entries, truncated %v; want %d and more to come", len(got.Entries), got.Truncated, maxEntries)
	}
	if got.Entries[0].Name != "00000" || got.Entries[maxEntries-1].Name != "09999" {
		t.Error("not the first, or not sorted")
	}
	if err := os.Remove(filepath.Join(dir, "00000")); err != nil {
		t.Fatal(err)
	}
	if got := get[listing](t, k, "list_files", obj{}); len(got.Entries) != maxEntries || got.Truncated {
		t.Errorf("%d entries, truncated %v; want all %d", len(got.Entries), got.Truncated, maxEntries)
	}
}

func TestWorkspaceInfoCounts(t *testing.T) {
	dir := t.TempDir()
	k := workspaceKit(t, dir, map[string]string{"a": "123", "b/c": "45", "b/d/e": ""})
	symlink(t, "a", filepath.Join(dir, "link"))
	last := time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "b/c"), last, last); err != nil {
		t.Fatal(err)
	}
	want := `{"files":3,"directories":2,"totalSize":5,"modifiedAt":"2100-01-02T03:04:05Z","readOnly":false,"quota":{"bytes":1073741824,"files":100000}}`
	if diff := gocmp.Diff(want, k.ask(t, "get_workspace_info", obj{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWalkEndsWithItsContext(t *testing.T) {
	k := workspaceKit(t, t.TempDir(), map[string]string{"f": ""})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := k["list_files"].Call(ctx, tool.Call{Args: raw(`{}`), By: identity.ByAgent(ann)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// A reader sees the old file or the new one, never a part, while it is
// replaced again and again.
func TestNobodySeesHalfAFile(t *testing.T) {
	k := workspaceKit(t, t.TempDir(), map[string]string{"f": strings.Repeat("0", 5000)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			k.ask(t, "write_file", obj{"path": "f", "content": strings.Repeat(fmt.Sprint(i%10), 5000)})
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got := get[filePart](t, k, "read_file", obj{"path": "f"})
		if got.Length != 5000 || strings.Trim(got.Content, got.Content[:1]) != "" {
			t.Fatalf("saw %d bytes, mixed", got.Length)
		}
	}
	<-done
}

// maze is a workspace deep in a tree of canaries, so that each way out meets
// one.
type maze struct {
	base, workspace string
	before          map[string]string
}

func newMaze(t testing.TB) maze {
	base := t.TempDir()
	dir := base
	for range 8 {
		for _, name := range []string{"canary", "etc/passwd", "boot.ini", "outsider"} {
			put(t, filepath.Join(dir, name), "SECRET")
		}
		dir = filepath.Join(dir, "d")
	}
	workspace := filepath.Join(dir, "workspace")
	put(t, filepath.Join(workspace, "sub", "f"), "inside")
	symlink(t, base, filepath.Join(workspace, "out"))
	symlink(t, "../canary", filepath.Join(workspace, "outfile"))
	symlink(t, "sub", filepath.Join(workspace, "in"))
	return maze{base, workspace, tree(t, base, workspace)}
}

// tree gives the files below base by name, without those below skip.
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

// kit is every tool that takes a path.
func (m maze) kit(t testing.TB) kit {
	k := workspaceKit(t, m.workspace, nil)
	tools, err := artifactTools(shelf{}, folder{dir: m.workspace}, everything)
	for name, tl := range newKit(t, tools, err) {
		k[name] = tl
	}
	return k
}

func (m maze) check(t testing.TB) {
	t.Helper()
	if diff := gocmp.Diff(m.before, tree(t, m.base, m.workspace)); diff != "" {
		t.Fatalf("outside changed (-before +after):\n%s", diff)
	}
}

// tryOut does all it can with path: nothing of outside may show.
func (m maze) tryOut(t testing.TB, k kit, path string) {
	t.Helper()
	for _, answer := range []string{
		k.ask(t, "read_file", obj{"path": path}),
		k.ask(t, "list_files", obj{"path": path, "recursive": true}),
		k.ask(t, "list_files", obj{"pattern": path[:min(len(path), 500)]}),
		k.ask(t, "put_artifact", obj{"type": "t", "path": path}),
		k.ask(t, "get_artifact", obj{"ref": "artifact:call-1"}),
	} {
		if strings.Contains(answer, "SECRET") || strings.Contains(answer, `"outsider"`) || strings.Contains(answer, "root:x:0") {
			t.Fatalf("%q shows what is outside: %s", path, answer)
		}
	}
	if k.code(t, "write_file", obj{"path": path, "content": "PWNED"}) == "" {
		if got := get[filePart](t, k, "read_file", obj{"path": path}); got.Content != "PWNED" {
			t.Fatalf("%q was written, yet reads %q", path, got.Content)
		}
	}
}

func TestNoTraversalStringLeadsOut(t *testing.T) {
	passwd, _ := os.ReadFile("/etc/passwd")
	t.Run("in parts", func(t *testing.T) { // at once, since each write waits for the disk
		for part := range slices.Chunk(short.Sample(t, 200, traversals(t)), 500) {
			t.Run(fmt.Sprintf("from %.20q", part[0]), func(t *testing.T) {
				t.Parallel()
				m := newMaze(t)
				k := m.kit(t)
				for _, path := range part {
					m.tryOut(t, k, strings.ReplaceAll(path, "{FILE}", "canary"))
				}
				m.check(t)
			})
		}
	})
	if now, _ := os.ReadFile("/etc/passwd"); string(now) != string(passwd) {
		t.Error("/etc/passwd changed")
	}
}

// traversals reads testdata/path_traversal.jsonl.
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
	m := newMaze(f)
	k := m.kit(f)
	f.Fuzz(func(t *testing.T, path string) {
		m.tryOut(t, k, path)
		m.check(t)
	})
}

package workspace

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
)

// The methods check names themselves: callers need not call CleanPath.
func TestDir_RejectsEscapingPaths(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "workspace")
	putFile(t, filepath.Join(base, "canary"), "SECRET")
	putFile(t, filepath.Join(dir, "f"), "text")
	before := fileContents(t, base)
	w := openDir(t, dir, Quota{1000, 1000})
	for _, name := range []string{"../canary", "x/../../canary", filepath.Join(base, "canary"), `..\canary`, `C:\canary`} {
		_, _, readErr := w.ReadPart(name, 0, 10)
		_, listErr := w.ListFiles(t.Context(), name, ListOptions{})
		writeErr := w.WriteFile(t.Context(), name, []byte("PWNED"))
		for method, err := range map[string]error{"ReadPart": readErr, "List": listErr, "WriteFile": writeErr} {
			if errcode.CodeOf(err) != errcode.PathTraversal {
				t.Errorf("%s %q: error %v, want path_traversal_blocked", method, name, err)
			}
		}
	}
	if diff := gocmp.Diff(before, fileContents(t, base)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}

func TestDir_ReadPart(t *testing.T) {
	dir := t.TempDir()
	putFile(t, filepath.Join(dir, "d", "f"), "0123456789")
	w := openDir(t, dir, Quota{})
	for _, c := range []struct {
		name           string
		offset, length int64
		want           string
	}{
		{"whole file", 0, 100, "0123456789"},
		{"inner part", 3, 4, "3456"},
		{"part at the end", 8, 100, "89"},
		{"offset after the end", 100, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, size, err := w.ReadPart("./d//f", c.offset, c.length)
			if string(data) != c.want || size != 10 || err != nil {
				t.Errorf("got %q, size %d, %v, want %q, size 10", data, size, err, c.want)
			}
		})
	}
	for name, want := range map[string]errcode.Code{"d": errcode.InvalidArguments, "none": errcode.FileNotFound, "d/f/g": errcode.NotADirectory} {
		if _, _, err := w.ReadPart(name, 0, 1); errcode.CodeOf(err) != want {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

// A file that becomes shorter or longer after it was opened has no more than what was
// read at its end.
func TestReadPart_FileChangesWhileRead(t *testing.T) {
	for _, c := range []struct {
		name                 string
		size, offset, length int64
		want                 string
		wantSize             int64
	}{
		{"shorter", 100, 2, 50, "234", 5},
		{"shorter than the offset", 100, 50, 10, "", 50},
		{"shorter behind the part", 100, 2, 3, "234", 100},
		{"longer", 3, 0, 50, "01234", 5},
		{"longer behind the part", 3, 0, 4, "0123", 4},
		{"the exact end", 5, 2, 3, "234", 5},
		{"after the exact end", 5, 5, 3, "", 5},
		{"emptied", 100, 0, 50, "01234", 5},
	} {
		data, size, err := readPart(strings.NewReader("01234"), c.size, c.offset, c.length)
		if string(data) != c.want || size != c.wantSize || err != nil {
			t.Errorf("%s: got %q, size %d, %v, want %q, size %d", c.name, data, size, err, c.want, c.wantSize)
		}
	}
}

func TestCheckSize(t *testing.T) {
	if err := CheckSize(MaxContent); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if err := CheckSize(MaxContent + 1); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Errorf("over the limit: error %v, want invalid_arguments", err)
	}
}

func TestFileError_KeepsContextAndCodedErrors(t *testing.T) {
	w := openDir(t, t.TempDir(), Quota{})
	for _, err := range []error{nil, context.Canceled, context.DeadlineExceeded, errcode.New(errcode.ToolUnavailable, "unavailable")} {
		if got := fileError(w.Root, "f", err); got != err {
			t.Errorf("got %v, want %v", got, err)
		}
	}
}

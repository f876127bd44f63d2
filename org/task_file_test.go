package org_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
)

func TestCheckTaskFiles(t *testing.T) {
	file := func(name string, size int) org.TaskFile {
		return org.TaskFile{Name: name, Data: []byte(strings.Repeat("x", size))}
	}
	var many []org.TaskFile
	for i := range org.MaxTaskFiles + 1 {
		many = append(many, file(fmt.Sprint(i), 1))
	}
	for _, c := range []struct {
		what  string
		files []org.TaskFile
		ok    bool
	}{
		{"none", nil, true},
		{"two", []org.TaskFile{file("a.txt", 1), file("Ärger 2.csv", 5)}, true},
		{"as much as is allowed", []org.TaskFile{file("a", org.MaxTaskFileBytes)}, true},
		{"too many", many, false},
		{"too large together", []org.TaskFile{file("a", org.MaxTaskFileBytes), file("b", 1)}, false},
		{"empty", []org.TaskFile{file("a", 0)}, false},
		{"twice", []org.TaskFile{file("a", 1), file("a", 1)}, false},
		{"no name", []org.TaskFile{file("", 1)}, false},
		{"a path", []org.TaskFile{file("../a", 1)}, false},
		{"a path of Windows", []org.TaskFile{file(`a\b`, 1)}, false},
		{"the parent", []org.TaskFile{file("..", 1)}, false},
		{"a line break", []org.TaskFile{file("a\nb", 1)}, false},
		{"invisible", []org.TaskFile{file("a\u202eb", 1)}, false},
		{"not UTF-8", []org.TaskFile{file("a\xff", 1)}, false},
		{"a long name", []org.TaskFile{file(strings.Repeat("a", 256), 1)}, false},
	} {
		err := org.CheckTaskFiles(c.files)
		if (err == nil) != c.ok || err != nil && errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestTaskFile_Kinds(t *testing.T) {
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data        string
		image, text bool
	}{
		{string(png), true, false}, {"a,b\n", false, true}, {"\x89PNG", false, false}, {"a\x00b", false, false}, {"<svg></svg>", false, true},
	} {
		f := org.TaskFile{Name: "f", Data: []byte(c.data)}
		if f.IsImage() != c.image || f.IsText() != c.text {
			t.Errorf("%q: image %v, text %v", c.data, f.IsImage(), f.IsText())
		}
	}
}

// StartTask runs under the lock of the organization and in a commit. It does not read what a
// request has attached.
func TestStartTask_DoesNotReadFiles(t *testing.T) {
	f := newFixture(t)
	file := org.TaskFile{Name: "a.txt", Data: bytes.Repeat([]byte("a"), org.MaxTaskFileBytes)}
	request := func(files ...org.TaskFile) org.PreparedTask {
		p, err := org.PrepareTask(org.TaskSpec{Caller: operator, Key: "key", Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, same, other := request(file), request(file), request()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	task, _, _, err := f.Org.StartTask("first", 0, first)
	_, _, _, again := f.Org.StartTask("second", 0, same)
	runtime.ReadMemStats(&after)
	if duplicate, ok := errors.AsType[*org.DuplicateKeyError](again); err != nil || !ok || duplicate.Task != "first" {
		t.Errorf("got %v and %v", err, again)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > org.MaxTaskFileBytes/2 {
		t.Errorf("StartTask allocates %d bytes for a file of %d", n, org.MaxTaskFileBytes)
	}
	if !same.HasStarted(&task) || other.HasStarted(&task) {
		t.Errorf("same request %t, other request %t", same.HasStarted(&task), other.HasStarted(&task))
	}
}

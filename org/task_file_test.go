package org_test

import (
	"encoding/base64"
	"fmt"
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

package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckReport_WantsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), demoReport)
	if err := checkReport(path); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no report: got %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkReport(path); err != nil {
		t.Errorf("a report: got %v", err)
	}
	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := checkReport(link); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a symbolic link: got %v", err)
	}
}

// A demo gets a directory that nothing else uses, whatever is in the place.
func TestCreateDemoData_IsNew(t *testing.T) {
	base := t.TempDir()
	in := func(name string) string { return filepath.Join(base, name) }
	putDir := func(names ...string) {
		for _, name := range names {
			if err := os.MkdirAll(in(name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	putDir("empty", "demos/demo-1", "demos/demo-3")
	for name := range map[string]bool{"used/rolecall.db": true, "file": true} {
		putDir(filepath.Dir(name))
		if err := os.WriteFile(in(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir   string
		given bool
		want  string // "" is an error
	}{
		{"empty", true, "empty"},
		{"missing/deep", true, "missing/deep"},
		{"used", true, "used/demo-1"},
		{"used", true, "used/demo-2"},
		{"demos", false, "demos/demo-2"},
		{"demos", false, "demos/demo-4"},
		{"new", false, "new/demo-1"},
		{"file", true, ""},
		{"file/below", false, ""},
	} {
		got, err := createDemoData(in(c.dir), c.given)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "use --data DIR") {
				t.Errorf("%s: got %q, %v, want an error", c.dir, got, err)
			}
			continue
		}
		if info, statErr := os.Stat(got); err != nil || got != in(c.want) || statErr != nil || !info.IsDir() {
			t.Errorf("%s: got %q, %v, want %q", c.dir, got, err, c.want)
		}
	}
	if hint := demoHint(in("demos")); !strings.Contains(hint, in("demos/demo-4")) || demoHint(in("empty")) != "" || demoHint(in("absent")) != "" {
		t.Errorf("the hint is %q", hint)
	}
}

// The commands that the demo prints find its organization, whatever the directory is called
// and the environment says.
func TestPrintNextCommands_NameDataDirectory(t *testing.T) {
	var out bytes.Buffer
	c := &common{data: "it's here/demo-1", err: &out, env: func(name string) (string, bool) {
		return map[string]string{urlVariable: "http://elsewhere"}[name], name == urlVariable
	}}
	printNextCommands(c, "report.md", true, "t")
	if want := `  ROLECALL_URL= rolecall agent tree --data 'it'\''s here/demo-1'` + "\n"; !strings.Contains(strings.ReplaceAll(out.String(), programName(), "rolecall"), want) {
		t.Errorf("got %s, want %s", &out, want)
	}
}

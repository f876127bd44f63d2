package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// installed is the version that the tests install. No release has it.
var installed = module.Version{Path: "github.com/rolecall/rolecall", Version: "v0.0.0-test.1"}

// go install cmd/rolecall@VERSION finds every package of the last commit: go.mod has no
// replace directive, and the module fits into the zip of a module proxy.
func TestInstall_OfModuleVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("it unpacks all modules")
	}
	proxy := t.TempDir()
	writeModule(t, proxy)
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	cmd := exec.Command("go", "install", "-n", installed.Path+"/cmd/rolecall@"+installed.Version)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(cmd.Dir, "mod"), "GOBIN="+cmd.Dir, "GOFLAGS=-modcacherw", "GOWORK=off", "GOSUMDB=off",
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(known)+",off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%.2000s", err, out)
	} else if !bytes.Contains(out, []byte(`mod\t`+installed.Path+`\t`+installed.Version)) {
		t.Errorf("the program is not stamped with %s", installed.Version)
	}
}

// writeModule writes the last commit of the repository as a module proxy has it.
func writeModule(t *testing.T, proxy string) {
	t.Helper()
	var archive bytes.Buffer
	source := filepath.Join(t.TempDir(), "source")
	err := cloneCommit(t.Context(), "../..", source)
	if err == nil {
		err = zip.CreateFromDir(&archive, installed, source)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(proxy, installed.Path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"list":                      []byte(installed.Version + "\n"),
		installed.Version + ".info": []byte(`{"Version":"` + installed.Version + `"}`),
		installed.Version + ".mod":  text,
		installed.Version + ".zip":  archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

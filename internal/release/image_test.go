package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const dockerfile = "../../examples/deploy/Dockerfile"

// The Dockerfile and docs/install.md name the files of a release as they are named.
func TestRelease_NamesInDocuments(t *testing.T) {
	r := &release{origin: origin{version: "${VERSION}"}}
	p := program{os: "linux", arch: "${TARGETARCH}"}
	wantText(t, dockerfile, "ADD "+r.archiveName(p)+" /\n", "/"+r.folderName(p)+"/"+p.name()+" /usr/bin/rolecall\n")
	wantText(t, "../../docs/install.md", "FILE="+r.folderName(program{os: "linux", arch: "amd64"})+"\n", "`"+checksumFile+"`", "`rolecall.rb`",
		"`rolecall_VERSION.spdx.json`", "`rolecall_VERSION.provenance.json`", "## Build a release yourself\n", "### Unsigned provenance\n")
}

func wantText(t *testing.T, path string, parts ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s does not have %q", path, part)
		}
	}
}

// The Dockerfile builds an image of a release, whose user is not root.
func TestImage_OfRelease(t *testing.T) {
	skipBuild(t)
	if _, err := exec.LookPath("podman"); err != nil || runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("it needs podman and root")
	}
	found := writeRelease(t, newRepository(t, t.TempDir()))
	context, storage := t.TempDir(), t.TempDir()
	for name, content := range found {
		if err := os.WriteFile(filepath.Join(context, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	podman := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "podman", append([]string{"--root", filepath.Join(storage, "root"), "--runroot", filepath.Join(storage, "run"), "--storage-driver", "vfs"}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("podman %v: %v\n%s", args, err, out)
		}
		return out
	}
	podman("build", "--format", "docker", "--network", "none", "--build-arg", "BASE=scratch", "--build-arg", "VERSION=v1.2.3", "--build-arg", "TARGETARCH="+runtime.GOARCH, "-t", "rolecall", "-f", dockerfile, context)
	var images []struct {
		User        string
		Healthcheck struct{ Test []string }
	}
	if err := json.Unmarshal(podman("image", "inspect", "rolecall"), &images); err != nil {
		t.Fatal(err)
	}
	if i := images[0]; i.User != "65532:65532" || len(i.Healthcheck.Test) < 2 {
		t.Errorf("user %q, health check %q", i.User, i.Healthcheck.Test)
	}
}

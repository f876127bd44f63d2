package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	statement "github.com/in-toto/attestation/go/v1"
	spdx "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"
)

// testPlatforms are two platforms: this one, and one whose archive is a zip.
var testPlatforms = []string{runtime.GOOS + "/" + runtime.GOARCH, "windows/amd64"}

// files are a small program in place of rolecall, with one module in it.
var files = map[string]string{
	"go.mod":               "module github.com/rolecall/rolecall\n\ngo 1.26.0\n\nrequire golang.org/x/mod VERSION\n",
	"cmd/rolecall/main.go": "package main\n\nimport \"golang.org/x/mod/semver\"\n\nfunc main() { println(semver.Major(\"v1.2.3\")) }\n",
	"LICENSE":              "licence\n", "README.md": "readme\n", "THIRD_PARTY_NOTICES.md": "notices\n", unitFile: "unit\n",
}

// newRepository makes a git repository with one tagged commit.
func newRepository(t *testing.T, dir string) string {
	t.Helper()
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "golang.org/x/mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(files)
	all["go.sum"] = string(sums)
	for name, text := range all {
		text = strings.ReplaceAll(text, "VERSION", strings.TrimSpace(string(version)))
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "one"}, {"tag", "v1.2.3"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_AUTHOR_DATE=2026-01-31T12:00:00Z", "GIT_COMMITTER_DATE=2026-01-31T12:00:00Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// skipBuild skips a test with -short. It compiles the standard library for two platforms.
func skipBuild(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: this test compiles releases; make check runs it")
	}
}

// writeRelease writes a release and returns its files by name.
func writeRelease(t *testing.T, repository string) map[string][]byte {
	t.Helper()
	t.Setenv("GOPROXY", "off") // what the tests import is on disk
	out := t.TempDir()
	if err := run(t.Context(), options{repository, out, testPlatforms}); err != nil {
		t.Fatal(err)
	}
	return readDir(t, out)
}

func readDir(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, e := range entries {
		if found[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Two releases of one commit have the same bytes, in whatever directory the repository is.
func TestRelease_IsReproducible(t *testing.T) {
	skipBuild(t)
	first := writeRelease(t, newRepository(t, t.TempDir()))
	second := writeRelease(t, newRepository(t, filepath.Join(t.TempDir(), "a longer", "path")))
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if len(first) != len(testPlatforms)+4 || len(second) != len(first) {
		t.Errorf("%d and %d files", len(first), len(second))
	}
}

// A release has the files that it promises, and each of them is right.
func TestRelease_Files(t *testing.T) {
	skipBuild(t)
	found := writeRelease(t, newRepository(t, t.TempDir()))
	host := "rolecall_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH
	t.Run("checksums", func(t *testing.T) { checkSums(t, found) })
	t.Run("SBOM", func(t *testing.T) { checkSBOM(t, found["rolecall_v1.2.3.spdx.json"]) })
	t.Run("provenance", func(t *testing.T) { checkProvenance(t, found) })
	t.Run("formula", func(t *testing.T) {
		line := fmt.Sprintf("url \"%s/releases/download/v1.2.3/%s.tar.gz\"\n      sha256 \"%s\"\n", repositoryURL, host, digest(found[host+".tar.gz"]))
		if text := string(found["rolecall.rb"]); !strings.Contains(text, line) || !strings.Contains(text, "version \"1.2.3\"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	})
	t.Run("archives", func(t *testing.T) {
		want := []string{host + "/LICENSE", host + "/README.md", host + "/THIRD_PARTY_NOTICES.md", host + "/rolecall"}
		if runtime.GOOS == "linux" {
			want = append(want, host+"/rolecall.service")
		}
		if got := tarNames(t, found[host+".tar.gz"]); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		const folder = "rolecall_v1.2.3_windows_amd64/"
		want = []string{folder + "LICENSE", folder + "README.md", folder + "THIRD_PARTY_NOTICES.md", folder + "rolecall.exe"}
		if got := zipNames(t, found["rolecall_v1.2.3_windows_amd64.zip"]); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// checkSums checks that SHA256SUMS has each other file with its checksum.
func checkSums(t *testing.T, found map[string][]byte) {
	lines := strings.Split(strings.TrimSpace(string(found[checksumFile])), "\n")
	if len(lines) != len(found)-1 {
		t.Errorf("%d lines for %d files", len(lines), len(found))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if content, ok := found[name]; !ok || digest(content) != sum {
			t.Errorf("wrong: %s", line)
		}
	}
}

// checkSBOM reads the document with the library of SPDX.
func checkSBOM(t *testing.T, text []byte) {
	d, err := spdx.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(d); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(d)
	if err != nil || len(described) != len(testPlatforms) || d.SPDXVersion != "SPDX-2.3" || d.CreationInfo.Created != "2026-01-31T12:00:00Z" {
		t.Errorf("%s of %s describes %q, %v", d.SPDXVersion, d.CreationInfo.Created, described, err)
	}
	var names []string
	for _, p := range d.Packages {
		names = append(names, p.PackageName)
	}
	if want := []string{"rolecall", "rolecall", "golang.org/x/mod", "stdlib"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// checkProvenance reads the statement with the library of in-toto.
func checkProvenance(t *testing.T, found map[string][]byte) {
	text := found["rolecall_v1.2.3.provenance.json"]
	s, p := new(statement.Statement), new(provenance.Provenance)
	if err := protojson.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	predicate, err := json.Marshal(s.Predicate.AsMap())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Validate(), protojson.Unmarshal(predicate, p), p.Validate()); err != nil {
		t.Fatal(err)
	}
	if note := p.BuildDefinition.InternalParameters.Fields["note"].GetStringValue(); !strings.Contains(note, "not signed") {
		t.Errorf("the note is %q", note)
	}
	if commit := p.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]; len(commit) != 40 || s.PredicateType != predicateType {
		t.Errorf("%s of commit %q", s.PredicateType, commit)
	}
	if len(s.Subject) != len(found)-2 { // all files but this one and the checksums
		t.Errorf("%d subjects for %d files", len(s.Subject), len(found))
	}
	for _, f := range s.Subject {
		if digest(found[f.Name]) != f.Digest["sha256"] {
			t.Errorf("wrong digest of %s", f.Name)
		}
	}
}

func tarNames(t *testing.T, content []byte) []string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

func zipNames(t *testing.T, content []byte) []string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// A release is made of a commit: uncommitted changes are rejected, untracked files ignored.
func TestRelease_RejectsUncommittedChanges(t *testing.T) {
	dir := newRepository(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), options{dir, t.TempDir(), testPlatforms})
	if err == nil || !strings.Contains(err.Error(), "commit these changes first, or undo them:\nM README.md") {
		t.Errorf("got %v", err)
	}
}

// An earlier release in the directory is removed, and nothing else.
func TestEmptyDir(t *testing.T) {
	dir := t.TempDir()
	kept := []string{"notes.txt", "rolecall", "rolecall.go", "rolecall_test.go"}
	for _, name := range append(kept, "rolecall_v1.2.2_linux_amd64.tar.gz", "rolecall.rb", checksumFile) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := prepareDir(dir); err != nil {
		t.Fatal(err)
	}
	if left := slices.Sorted(maps.Keys(readDir(t, dir))); !slices.Equal(left, kept) {
		t.Errorf("left: %q", left)
	}
}

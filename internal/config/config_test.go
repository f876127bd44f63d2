package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/configtest"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

var update = flag.Bool("update", false, "write the want sections of testdata")

// TestReadFiles_RejectedCases compares the complete error text of each case.
func TestReadFiles_RejectedCases(t *testing.T) {
	golden(t, "testdata/refused", func(t *testing.T, cfg *config.Config, err error) string {
		if err == nil {
			t.Fatalf("read %+v, want an error", cfg)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Error("a secret is shown")
		}
		if got := errcode.CodeOf(err); got != errcode.InvalidConfig {
			t.Errorf("errcode.Of = %s, want %s", got, errcode.InvalidConfig)
		}
		return err.Error() + "\n"
	})
}

// TestReadFiles_AcceptedCases compares the configuration that is read from each case.
func TestReadFiles_AcceptedCases(t *testing.T) {
	golden(t, "testdata/accepted", func(t *testing.T, cfg *config.Config, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.ReadFiles(cfg.Files, testEnv)
		if diff := cmp.Diff(cfg, again, sameConfig()); err != nil || diff != "" {
			t.Errorf("Read(cfg.Files) differs, error %v (-first +again):\n%s", err, diff)
		}
		cfg.Files = nil
		text, err := json.MarshalIndent(cfg, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	})
}

// golden reads each txtar case of dir and compares what show returns for the
// result with the section want.
func golden(t *testing.T, dir string, show func(*testing.T, *config.Config, error) string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			a := parseArchive(data)
			files, want := caseFiles(a)
			cfg, err := config.ReadFiles(files, testEnv)
			got := show(t, cfg, err)
			if *update {
				save(t, path, a, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// caseFiles returns the files of a case and its expected result.
func caseFiles(a archive) (files []yamldoc.File, want string) {
	for _, f := range a.files {
		if f.Path == "want" {
			want = string(f.Data)
			continue
		}
		f.Named = filepath.Ext(f.Path) != ".yaml"
		files = append(files, f)
	}
	return files, want
}

// save writes a case with a new expected result.
func save(t *testing.T, path string, a archive, want string) {
	a.files = slices.DeleteFunc(a.files, func(f yamldoc.File) bool { return f.Path == "want" })
	a.files = append(a.files, yamldoc.File{Path: "want", Data: []byte(want)})
	if err := os.WriteFile(path, a.format(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// testEnv is the environment of all tests.
func testEnv(name string) (string, bool) {
	value, ok := map[string]string{
		"NAME":   "analyst",
		"ROUNDS": "7",
		"NUMBER": "42",
		"HEAT":   "0.5",
		"MY_KEY": "sk-canary",
		"ODD":    "sk-cän\u200bary",
		"EMPTY":  "",
		"YAML":   "x\nkind: model",
		"NESTED": "${NAME}",
		"SECRET": "s3cret", "LONG_SECRET": "a-l0ng-s3cret-of-32-bytes-abcdef",
		"SIGNING": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "SHORT_SIGNING": "whsec_MfKQ9r8G", "CHAT_URL": "https://hooks.slack.com/services/T0/B0/s3cret",
		"GROUP": "workspace",
	}[name]
	return value, ok
}

// read reads text as the only file, org.yaml, with the variables of testEnv.
func read(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	return config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(text)}}, testEnv)
}

// White space around a key in its variable is not part of the key.
func TestModel_TrimsKey(t *testing.T) {
	for _, held := range []string{"sk-1", " sk-1", "sk-1\r\n", "\t\u00a0sk-1\n\n"} {
		for _, text := range []string{"apiKey: ${K}", "baseURL: https://example.com\napiKey: ${OPENAI_API_KEY}", ""} {
			file := yamldoc.File{Path: "org.yaml", Data: []byte("kind: model\nname: m\ntype: openai\nmodel: gpt\n" + text)}
			cfg, err := config.ReadFiles([]yamldoc.File{file}, func(string) (string, bool) { return held, true })
			if err != nil || cfg.Models[0].Key != "sk-1" {
				t.Errorf("%q with %q: key %q, error %v", text, held, string(cfg.Models[0].Key), err)
			}
		}
	}
}

// wantRejected returns the errors of a text that must be rejected.
func wantRejected(t *testing.T, text string) yamldoc.Errors {
	t.Helper()
	_, err := read(t, text)
	return configtest.WantRejected(t, text, err)
}

// TestReadFiles_ChecksNames checks names with characters that a text file cannot show.
func TestReadFiles_ChecksNames(t *testing.T) {
	names := map[string]bool{
		"analyst": true, "Ärztin 1": true, "会计": true, "a/b.c-d_e": true, "rooted": true,
		strings.Repeat("é", 128): true, strings.Repeat("é", 129): false,
		"": false, " a": false, "a ": false, "a\u00a0": false, "a\tb": false, "a\nb": false,
		"a\u200bb": false, "a\u202eb": false, "a\ufeffb": false, "a\u00adb": false, "a\u2028b": false,
		"a\u034fb": false, "a\ufe0f": false, "\u3164": false, "a\ufffd": false,
		"root": false, "Root": false, "ROOT": false,
	}
	for name, want := range names {
		quoted, _ := json.Marshal(name)
		_, err := read(t, "{kind: role, name: "+string(quoted)+"}")
		if got := err == nil; got != want {
			t.Errorf("name %q accepted = %v, want %v: %v", name, got, want, err)
		}
	}
}

// TestGroups_Pos adds an error about a group to the list, as a caller does that
// knows which groups exist.
func TestGroups_Pos(t *testing.T) {
	cfg, err := read(t, "kind: role\nname: a\ntoolGroups:\n  - workspace\n  - artefact\nlimit: 1\n")
	groups := cfg.Roles[0].ToolGroups
	if diff := cmp.Diff([]string{"workspace", "artefact"}, groups.IDs); diff != "" {
		t.Fatal(diff)
	}
	err = yamldoc.JoinErrors(err, cfg.ErrorAt(groups.Pos(1), "toolGroups[1]", "unknown group", textutil.SuggestName("artefact", []string{"artifact"})))
	want := `org.yaml:5:5: toolGroups[1]: unknown group (did you mean "artifact"?)
    - artefact
      ^
org.yaml:6:1: limit: unknown field (did you mean "limits"?)
  limit: 1
  ^`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := errcode.Message(err); got != want {
		t.Errorf("errcode.Message = %q", got)
	}
}

// TestGroups_Forms distinguishes an absent field, an empty list, all and a list.
func TestGroups_Forms(t *testing.T) {
	for text, want := range map[string]config.Groups{
		"":                         {},
		"toolGroups: []":           {Given: true},
		"toolGroups: all":          {Given: true, All: true},
		`toolGroups: "*"`:          {Given: true, All: true},
		`toolGroups: ["*"]`:        {Given: true, All: true},
		"toolGroups: [all]":        {Given: true, IDs: []string{"all"}},
		"toolGroups: [a, b/c]":     {Given: true, IDs: []string{"a", "b/c"}},
		`toolGroups: ["${GROUP}"]`: {Given: true, IDs: []string{"workspace"}},
	} {
		cfg, err := read(t, "kind: role\nname: r\n"+text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, cfg.Roles[0].ToolGroups, cmpopts.IgnoreUnexported(config.Groups{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestReadFiles_BoundsErrorList checks that the number of errors is bounded, also for
// what is not a configuration at all.
func TestReadFiles_BoundsErrorList(t *testing.T) {
	for name, text := range map[string]string{
		"one long line":   "{kind: role, name: a, toolGroups: [" + strings.Repeat("1,", 50_000) + "]}",
		"many documents":  strings.Repeat("---\nrole: a\n", 5_000),
		"many references": strings.Repeat("---\n{kind: role, name: a, model: b}\n", 3_000),
		"many names":      "{kind: role, name: a, prompt: '" + strings.Repeat("${A}${B}${é}", 200_000) + "'}",
		"many groups":     "{kind: role, name: a, bogus: 1, toolGroups: [" + manyGroups(20_000) + "]}",
	} {
		t.Run(name, func(t *testing.T) {
			if n := len(wantRejected(t, text)); n > 1001 {
				t.Errorf("got %d errors", n)
			}
		})
	}
}

// manyGroups returns a list of n groups.
func manyGroups(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "g%d,", i)
	}
	return b.String()
}

// sameConfig compares configurations. Sets of parameters are equal if their schemas
// and manifests are.
func sameConfig() cmp.Options {
	return cmp.Options{
		cmp.AllowUnexported(config.Groups{}),
		cmpopts.IgnoreUnexported(toolboxfile.DeclaredTool{}), // whether it is reused, which TestReloadFiles_EqualsLoad checks
		cmpopts.EquateComparable(netip.Prefix{}),
		cmp.Comparer(func(a, b *parameter.Set) bool {
			return a == b || a != nil && b != nil && bytes.Equal(a.Schema(), b.Schema()) && bytes.Equal(a.Manifest(), b.Manifest())
		}),
	}
}

package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
)

var update = flag.Bool("update", false, "write the want sections of testdata")

// TestRead_RejectedCases compares the complete error text of each case.
func TestRead_RejectedCases(t *testing.T) {
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

// TestRead_AcceptedCases compares the configuration that is read from each case.
func TestRead_AcceptedCases(t *testing.T) {
	golden(t, "testdata/accepted", func(t *testing.T, cfg *config.Config, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.Read(cfg.Files, testEnv)
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
			cfg, err := config.Read(files, testEnv)
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
func caseFiles(a archive) (files []config.File, want string) {
	for _, f := range a.files {
		if f.Path == "want" {
			want = string(f.Data)
			continue
		}
		f.Included = filepath.Ext(f.Path) != ".yaml"
		files = append(files, f)
	}
	return files, want
}

// save writes a case with a new expected result.
func save(t *testing.T, path string, a archive, want string) {
	a.files = slices.DeleteFunc(a.files, func(f config.File) bool { return f.Path == "want" })
	a.files = append(a.files, config.File{Path: "want", Data: []byte(want)})
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
		"SECRET": "s3cret",
		"GROUP":  "workspace",
	}[name]
	return value, ok
}

// read reads text as the only file, org.yaml, with the variables of testEnv.
func read(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	return config.Read([]config.File{{Path: "org.yaml", Data: []byte(text)}}, testEnv)
}

// White space around a key in its variable is not part of the key.
func TestModel_TrimsKey(t *testing.T) {
	for _, held := range []string{"sk-1", " sk-1", "sk-1\r\n", "\t\u00a0sk-1\n\n"} {
		for _, text := range []string{"apiKey: ${K}", "baseURL: https://example.com\napiKey: ${OPENAI_API_KEY}", ""} {
			file := config.File{Path: "org.yaml", Data: []byte("kind: model\nname: m\ntype: openai\nmodel: gpt\n" + text)}
			cfg, err := config.Read([]config.File{file}, func(string) (string, bool) { return held, true })
			if err != nil || cfg.Models[0].Key != "sk-1" {
				t.Errorf("%q with %q: key %q, error %v", text, held, string(cfg.Models[0].Key), err)
			}
		}
	}
}

// wantRejected returns the errors of a text that must be rejected.
func wantRejected(t *testing.T, text string) config.Errors {
	t.Helper()
	_, err := read(t, text)
	list, ok := errors.AsType[config.Errors](err)
	if !ok {
		t.Fatalf("%.80q was not rejected: error %v", text, err)
	}
	return list
}

// TestRead_ChecksNames checks names with characters that a text file cannot show.
func TestRead_ChecksNames(t *testing.T) {
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
	err = config.Join(err, cfg.Fault(groups.Pos(1), "toolGroups[1]", "unknown group", config.Suggest("artefact", []string{"artifact"})))
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

// TestJoin_KeepsOtherErrors checks that Join returns other errors unchanged.
func TestJoin_KeepsOtherErrors(t *testing.T) {
	if err := config.Join(nil); err != nil {
		t.Errorf("Join(nil) = %v", err)
	}
	if err := config.Join(os.ErrClosed, &config.Error{Message: "x"}); err != os.ErrClosed {
		t.Errorf("Join(other) = %v", err)
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

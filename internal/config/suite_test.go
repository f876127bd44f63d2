package config_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/configtest"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// TestReadFiles_YAMLTestSuite reads the cases of yaml-test-suite (testdata/README.md).
// None of them is a configuration: ReadFiles must reject all except empty streams, and
// must not panic.
func TestReadFiles_YAMLTestSuite(t *testing.T) {
	mustFail := 0
	for name, c := range yamlSuite(t) {
		t.Run(name, func(t *testing.T) {
			cfg, err := read(t, c.text)
			if c.fail && err == nil {
				t.Errorf("%q was accepted: %+v", c.text, cfg)
			}
			if err == nil && len(cfg.Roles)+len(cfg.Models) > 0 {
				t.Errorf("%q became %+v", c.text, cfg)
			}
		})
		if c.fail {
			mustFail++
		}
	}
	if mustFail < 82 {
		t.Errorf("only %d must-fail cases were found", mustFail)
	}
}

// suiteCase is one case of the suite; fail means it is not valid YAML.
type suiteCase struct {
	text string
	fail bool
}

// yamlSuite reads the cases of the suite. A row may contain several.
func yamlSuite(t testing.TB) map[string]suiteCase {
	f, err := os.Open("testdata/yaml_test_suite.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := make(map[string]suiteCase)
	for rows := json.NewDecoder(bufio.NewReader(f)); rows.More(); {
		var row struct{ ID, Src string }
		if err := rows.Decode(&row); err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			YAML string
			Fail bool
		}
		if err := yaml.Load([]byte(row.Src), &cases); err != nil {
			t.Fatal(row.ID, err)
		}
		for i, c := range cases {
			all[row.ID+"/"+string(rune('a'+i))] = suiteCase{replaceMarks(c.YAML), c.Fail}
		}
	}
	return all
}

// replaceMarks replaces the suite's marks by the invisible characters they mean.
func replaceMarks(text string) string {
	return strings.NewReplacer(
		"∎\n", "", "␣", " ", "————»", "\t", "———»", "\t", "——»", "\t", "—»", "\t", "»", "\t",
		"↵", "", "←", "\r", "⇔", "\ufeff",
	).Replace(text)
}

func FuzzRead(f *testing.F) {
	for _, c := range yamlSuite(f) {
		f.Add([]byte(c.text))
	}
	f.Add([]byte("kind: role\nname: ${NAME}\ntoolGroups: [a, '*']\nlimits: {rounds: ${ROUNDS}}\n---\nkind: organization\nname: o\n"))
	f.Add([]byte("{kind: model, name: m, type: script, file: m.js}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := []yamldoc.File{{Path: "org.yaml", Data: data}, {Path: "m.js", Named: true}}
		cfg, err := config.ReadFiles(files, testEnv)
		if cfg == nil {
			t.Fatal("no Config")
		}
		if err != nil {
			configtest.WantPositions(t, err)
			return
		}
		again, err := config.ReadFiles(cfg.Files, testEnv)
		if diff := cmp.Diff(cfg, again, sameConfig()); err != nil || diff != "" {
			t.Errorf("the recorded files are another configuration, error %v (-first +again):\n%s", err, diff)
		}
		for _, r := range cfg.Roles {
			if r.Name == "" || strings.EqualFold(r.Name, "root") {
				t.Errorf("role %q was accepted", r.Name)
			}
		}
	})
}

// Any scalar is rejected with its position or read as it is written: a string never
// becomes a number, a list or nothing.
func TestReadFiles_KeepsNaughtyStrings(t *testing.T) {
	accepted := 0
	for _, s := range corpus.NaughtyStrings() {
		if strings.Contains(s, "$") { // variables: testdata/refused/variables.txtar
			continue
		}
		quoted, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		quoted = bytes.ReplaceAll(quoted, []byte("\u0085"), []byte(`\u0085`)) // unescaped, it is a line break in YAML
		cfg, err := read(t, fmt.Sprintf("kind: role\nname: a\nprompt: %s\n---\nkind: organization\nname: o\nrootPrompt: %s\n", quoted, quoted))
		if err != nil {
			configtest.WantPositions(t, err)
			continue
		}
		accepted++
		if got := cfg.Roles[0].Prompt; got != s || cfg.Organization.RootPrompt != s {
			t.Errorf("%q became %q and %q", s, got, cfg.Organization.RootPrompt)
		}
		for _, field := range []string{"name", "model", "toolGroups", "grant", "limits", "colour"} {
			if cfg, err := read(t, fmt.Sprintf("kind: role\nname: b\n%s: %s\n", field, quoted)); err != nil {
				configtest.WantPositions(t, err)
			} else if len(cfg.Roles) != 1 || field != "name" && cfg.Roles[0].Name != "b" {
				t.Errorf("%s: %q became %+v", field, s, cfg.Roles)
			}
		}
	}
	if accepted < 400 {
		t.Errorf("only %d strings were accepted as prompts", accepted)
	}
}

// MigrateFile rejects what is not a configuration of Toolbox, or returns it unchanged.
func TestMigrateFile_KeepsYAMLTestSuite(t *testing.T) {
	for name, c := range yamlSuite(t) {
		out, err := toolboxfile.MigrateFile([]byte(c.text))
		if err == nil && !bytes.Equal(out, []byte(c.text)) {
			t.Errorf("%s: %q became %q", name, c.text, out)
		}
	}
}

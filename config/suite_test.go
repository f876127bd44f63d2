package config_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/config"
)

// TestYAMLTestSuite reads the cases of yaml-test-suite (testdata/README.md).
// None is a configuration, so none panics, and all but the empty streams are
// refused, those that are no YAML among them.
func TestYAMLTestSuite(t *testing.T) {
	mustFail := 0
	for name, c := range suite(t) {
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

type suiteCase struct {
	text string
	fail bool
}

// suite reads the cases; one row may hold several.
func suite(t testing.TB) map[string]suiteCase {
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
			all[row.ID+"/"+string(rune('a'+i))] = suiteCase{plain(c.YAML), c.Fail}
		}
	}
	return all
}

// plain turns the suite's marks for invisible characters into them.
func plain(text string) string {
	return strings.NewReplacer(
		"∎\n", "", "␣", " ", "————»", "\t", "———»", "\t", "——»", "\t", "—»", "\t", "»", "\t",
		"↵", "", "←", "\r", "⇔", "\ufeff",
	).Replace(text)
}

func FuzzRead(f *testing.F) {
	for _, c := range suite(f) {
		f.Add([]byte(c.text))
	}
	f.Add([]byte("kind: role\nname: ${NAME}\ntoolGroups: [a, '*']\nlimits: {rounds: ${ROUNDS}}\n---\nkind: organization\nname: o\n"))
	f.Add([]byte("{kind: model, name: m, type: script, file: m.js}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := []config.File{{Path: "org.yaml", Data: data}, {Path: "m.js", Named: true}}
		cfg, err := config.Read(files, testEnv)
		if cfg == nil {
			t.Fatal("no Config")
		}
		if err != nil {
			_ = err.Error()
			return
		}
		for _, r := range cfg.Roles {
			if r.Name == "" || strings.EqualFold(r.Name, "root") {
				t.Errorf("role %q was accepted", r.Name)
			}
		}
	})
}

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// configCase is a case of testdata/toolbox/toolbox_config.json: a file, and whether it is
// accepted.
type configCase struct {
	Name, YAML string
	Plural     bool
	Upstream   struct{ Outcome string } `json:"v1_12_0"`
	Ours       string
	Must       *struct {
		Tool, Description string
		AuthRequired      []string
	}
}

// accepted reports whether the file must be accepted.
func (c configCase) accepted() bool {
	return c.Ours == "ok" || c.Ours == "same" && c.Upstream.Outcome == "ok"
}

// spellings returns the forms of the file, which have the same outcome.
func (c configCase) spellings() map[string]string {
	all := map[string]string{"singular": c.YAML}
	if c.Plural {
		kinds := regexp.MustCompile(`(?m)^kind: (source|tool|toolset|authService|prompt|embeddingModel)$`)
		all["plural"] = kinds.ReplaceAllString(c.YAML, "${0}s")
	}
	return all
}

func configurationCases(t *testing.T) (cases []configCase, env map[string]string) {
	data, err := os.ReadFile("testdata/toolbox/toolbox_config.json")
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("__DB__"), []byte(filepath.Join(t.TempDir(), "flights.db")))
	data = bytes.ReplaceAll(data, []byte("__IDP__"), []byte("http://127.0.0.1:5/issuer"))
	var all struct {
		Env   map[string]string
		Cases []configCase
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all.Cases, all.Env
}

// check accepts or rejects every file in each of its forms, without starting anything. Each
// error has a position. The launcher starts no jobs: probes of the sandbox have their own tests.
func TestCheck_ConfigurationCases(t *testing.T) {
	cases, env := configurationCases(t)
	for _, c := range cases {
		for spelling, text := range c.spellings() {
			t.Run(c.Name+"/"+spelling, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "tools.yaml")
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				var out, log bytes.Buffer
				c.check(t, path, &common{launcher: new(sandbox.Launcher), in: strings.NewReader(""), out: &out, err: &log, env: lookup(env)}, &out)
			})
		}
	}
	if len(cases) < 60 {
		t.Errorf("only %d cases were found", len(cases))
	}
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func (c configCase) check(t *testing.T, path string, with *common, out *bytes.Buffer) {
	status := run(t.Context(), with, []string{"check", "--json", "-f", path})
	if got := status == 0; got != c.accepted() {
		t.Fatalf("status %d, want accepted %v: %s", status, c.accepted(), out)
	}
	var report struct{ Errors []yamldoc.Error }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if !c.accepted() && len(report.Errors) == 0 {
		t.Errorf("rejected without an error: %s", out)
	}
	for _, e := range report.Errors {
		if e.File != path || e.Line == 0 || e.Column == 0 || e.Field == "" {
			t.Errorf("error without position or field: %+v", e)
		}
	}
	if c.Must != nil {
		c.loaded(t, path, with.env)
	}
}

// loaded checks what an accepted file declares.
func (c configCase) loaded(t *testing.T, path string, env yamldoc.Env) {
	cfg, err := config.LoadFiles([]string{path}, env)
	i := slices.IndexFunc(cfg.Tools, func(tool toolboxfile.DeclaredTool) bool { return tool.Name == c.Must.Tool })
	if err != nil || i < 0 {
		t.Fatalf("no tool %q: %v", c.Must.Tool, errors.Join(err))
	}
	if got := cfg.Tools[i]; got.Description != c.Must.Description || !slices.Equal(got.AuthRequired, c.Must.AuthRequired) {
		t.Errorf("got %q %v, want %q %v", got.Description, got.AuthRequired, c.Must.Description, c.Must.AuthRequired)
	}
}

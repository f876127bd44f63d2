package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// Migration does not change what a file declares, for every case in each of its three forms
// and for the examples of Toolbox. A migrated file is not changed again.
func TestMigrate_KeepsMeaning(t *testing.T) {
	cases, env := configurationCases(t)
	texts := map[string]string{}
	for _, c := range cases {
		for spelling, text := range c.spellings() {
			texts[c.Name+"/"+spelling] = text
		}
		if text, ok := nestedForm(c.YAML); ok {
			texts[c.Name+"/nested"] = text
		}
	}
	paths, err := filepath.Glob("testdata/toolbox/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(data)
	}
	migrated := 0
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			if wantMigrated(t, text, lookup(env)) {
				migrated++
			}
		})
	}
	if migrated < 40 {
		t.Errorf("only %d files were migrated and accepted", migrated)
	}
}

// wantMigrated checks the migration of one file and reports whether the file is accepted.
func wantMigrated(t *testing.T, text string, env yamldoc.Env) (accepted bool) {
	before, rejected := config.ReadFiles([]yamldoc.File{{Path: "tools.yaml", Data: []byte(text)}}, env)
	out, err := toolboxfile.MigrateFile([]byte(text))
	if err != nil {
		if rejected == nil {
			t.Errorf("an accepted file cannot be migrated: %v", err)
		}
		return false
	}
	if again, err := toolboxfile.MigrateFile(out); err != nil || !bytes.Equal(again, out) {
		t.Errorf("second migration:\n%s\n%v", again, err)
	}
	if regexp.MustCompile(`(?m)^(\s*- )?kind: "?(sources|tools|toolsets|authServices)\b|^(sources|toolsets|authServices|authSources):`).Match(out) {
		t.Errorf("an older form remains:\n%s", out)
	}
	after, err := config.ReadFiles([]yamldoc.File{{Path: "tools.yaml", Data: out}}, env)
	if (err == nil) != (rejected == nil) {
		t.Fatalf("error before: %v\nafter: %v\n%s", rejected, err, out)
	}
	if diff := cmp.Diff(meaning(t, before), meaning(t, after)); rejected == nil && diff != "" {
		t.Errorf("%s\nbecame\n%s\nwhich differs:\n%s", text, out, diff)
	}
	return rejected == nil
}

// meaning returns what a configuration declares, sorted and without positions.
func meaning(t *testing.T, cfg *config.Config) (list []string) {
	t.Helper()
	show := func(kind string, v any, more ...any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(kind, string(text), more))
	}
	for _, s := range cfg.Sources {
		s.Pos = yamldoc.Pos{}
		show("source", s, s.Fingerprint, string(s.Password))
	}
	for _, s := range cfg.AuthServices {
		s.Pos = yamldoc.Pos{}
		show("authService", s, s.Fingerprint)
	}
	for _, tool := range cfg.Tools {
		tool.Pos = yamldoc.Pos{}
		if tool.Parameters != nil {
			show("parameters", tool.Parameters.Schema(), string(tool.Parameters.Manifest()))
		}
		show("tool", tool, tool.Fingerprint)
	}
	for _, set := range cfg.Toolsets {
		set.Pos = yamldoc.Pos{}
		show("toolset", set)
	}
	slices.Sort(list)
	return list
}

// nestedForm converts documents to the v1 form of Toolbox. It returns false if that form
// cannot express them.
func nestedForm(text string) (string, bool) {
	var out strings.Builder
	sections := map[string]*strings.Builder{}
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		var fields yaml.Node
		if yaml.Load([]byte(doc), &fields) != nil || len(fields.Content) == 0 {
			continue
		}
		kind, name, body := entryOf(fields.Content[0])
		if kind == "" || name == "" {
			return "", false
		}
		if sections[kind] == nil {
			sections[kind] = new(strings.Builder)
		}
		fmt.Fprintf(sections[kind], "  # about %s\n  %q:\n%s", name, name, body)
	}
	for _, kind := range []string{"toolset", "tool", "authService", "source"} {
		if s := sections[kind]; s != nil {
			fmt.Fprintf(&out, "%ss: # %s\n%s\n", kind, kind, s)
			delete(sections, kind)
		}
	}
	return out.String(), len(sections) == 0
}

// entryOf returns the kind and name of a document, and its other fields as lines.
func entryOf(doc *yaml.Node) (kind, name, body string) {
	if doc.Kind != yaml.MappingNode {
		return "", "", ""
	}
	rest := &yaml.Node{Kind: yaml.MappingNode}
	for pair := range slices.Chunk(doc.Content, 2) {
		switch key := pair[0].Value; key {
		case "kind":
			kind = pair[1].Value
		case "name":
			name = pair[1].Value
		case "type":
			pair[0].Value = "kind"
			fallthrough
		default:
			rest.Content = append(rest.Content, pair...)
		}
	}
	text, err := yaml.Dump(rest)
	if err != nil {
		return "", "", ""
	}
	for line := range strings.Lines(string(text)) {
		body += "    " + line
	}
	return kind, name, body
}

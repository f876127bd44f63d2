package toolboxfile_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/internal/test/configtest"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// The same documents in the three spellings of Toolbox.
const (
	singular = `
kind: tool
name: search
type: sqlite-sql
source: db
description: Find a flight.
statement: SELECT * FROM flights WHERE num = ?1
parameters: [{name: num, type: string, description: Its number, authServices: [{name: my-auth, field: sub}]}]
---
{kind: source, name: db, type: sqlite, database: flights.db}
---
{kind: authService, name: my-auth, type: google, clientId: x}
---
{kind: toolset, name: reading, tools: [search]}
`
	plural = `
kind: sources
name: db
type: sqlite
database: flights.db
---
kind: authServices
name: my-auth
type: google
clientId: x
---
kind: tools
name: search
type: sqlite-sql
source: db
description: Find a flight.
statement: SELECT * FROM flights WHERE num = ?1
parameters: [{name: num, type: string, description: Its number, authServices: [{name: my-auth, field: sub}]}]
---
kind: toolsets
name: reading
tools: [search, search]
`
	nested = `
authSources: {my-auth: {kind: google, clientId: x}}
sources:
  db:
    type: sqlite
    database: flights.db
tools:
  search:
    kind: sqlite-sql
    source: db
    description: Find a flight.
    statement: SELECT * FROM flights WHERE num = ?1
    parameters: [{name: num, type: string, description: Its number, authServices: [{name: my-auth, field: sub}]}]
toolsets:
  reading: [search]
`
)

// The three spellings have the same meaning and the same fingerprints.
func TestReader_AcceptsToolboxSpellings(t *testing.T) {
	want, err := read(t, singular)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"plural": plural, "nested": nested} {
		got, err := read(t, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, sameDeclarations(), cmpopts.IgnoreTypes(yamldoc.Pos{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// One file may use a different spelling for each document.
func TestReader_MixesToolboxSpellings(t *testing.T) {
	mixed := "kind: tools\n" + strings.Split(singular, "---\n")[0][len("\nkind: tool\n"):] +
		"---\nauthSources: {my-auth: {kind: google, clientId: x}}\n---\nsources: {db: {kind: sqlite, database: flights.db}}\ntoolsets: {reading: [search]}\n"
	cfg, err := read(t, mixed)
	if err != nil || len(cfg.Tools) != 1 || len(cfg.Sources) != 1 || len(cfg.AuthServices) != 1 || len(cfg.Toolsets) != 1 {
		t.Errorf("got %+v, %v", cfg, err)
	}
	_, err = read(t, singular+"---\nsources: {db: {kind: sqlite, database: other.db}}\n---\n{kind: toolsets, name: reading}\n---\n{kind: group, name: reading}\n")
	if text := fmt.Sprint(err); strings.Count(text, "declared twice") != 3 {
		t.Errorf("names that two spellings declare: %v", err)
	}
}

// A fingerprint changes with every field of the tool, and with nothing else.
func TestFingerprint_ChangesWithTool(t *testing.T) {
	fingerprint := func(text string, env map[string]string) string {
		t.Helper()
		cfg, err := readFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(text)}}, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Tools[0].Fingerprint
	}
	const tool = "{kind: source, name: db, type: sqlite, database: x.db}\n---\nkind: tool\nname: a\ntype: sqlite-sql\nsource: db\ndescription: d ${X:1}\nstatement: SELECT 1\n"
	first := fingerprint(tool, nil)
	for _, same := range []string{"# comment\n" + tool, strings.ReplaceAll(tool, "${X:1}", "1"), strings.ReplaceAll(tool, "x.db", "y.db"), strings.ReplaceAll(tool, "SELECT 1", `"SELECT 1"`)} {
		if fingerprint(same, nil) != first {
			t.Errorf("another fingerprint for\n%s", same)
		}
	}
	seen := []string{first}
	for _, other := range []string{
		strings.ReplaceAll(tool, "SELECT 1", "SELECT 2"), strings.ReplaceAll(tool, "name: a", "name: b"), tool + "maxRows: 1", tool + "timeout: 1s",
		tool + "parameters: [{name: x, type: string, description: d}]", tool + "parameters: [{name: x, type: string, description: d, default: 5}]",
		tool + `parameters: [{name: x, type: string, description: d, default: "5"}]`, tool + "effect: readOnly", tool + "group: [a]", tool + "annotations: {readOnlyHint: true}",
	} {
		seen = append(seen, fingerprint(other, nil))
	}
	seen = append(seen, fingerprint(tool, map[string]string{"X": "2"}))
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 12 {
		t.Error("two different tools have the same fingerprint")
	}
}

// The path of a SQLite file is relative to its document.
func TestSource_DatabaseIsRelativeToFile(t *testing.T) {
	files := []yamldoc.File{
		{Path: "a/one.yaml", Data: []byte("{kind: source, name: a, type: sqlite, database: x.db}\n---\n{kind: source, name: m, type: sqlite, database: ':memory:'}")},
		{Path: "b/two.yaml", Data: []byte("{kind: source, name: b, type: sqlite, database: x.db}\n---\n{kind: source, name: c, type: sqlite, database: /x.db}")},
	}
	cfg, err := readFiles(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range cfg.Sources {
		got = append(got, s.Database)
	}
	if diff := cmp.Diff([]string{"a/x.db", ":memory:", "b/x.db", "/x.db"}, got); diff != "" {
		t.Error(diff)
	}
}

// A password may be written in clear text or as a variable, and is never printed.
func TestSource_HidesPassword(t *testing.T) {
	const source = "kind: source\nname: pg\ntype: postgres\nhost: h\nport: 5432\nuser: u\ndatabase: d\npassword: %s\n"
	for written, want := range map[string]string{"hunter2": "hunter2", "0123": "0123", "${SECRET}": "s3cret", `"a b"`: "a b"} {
		cfg, err := read(t, fmt.Sprintf(source, written))
		if err != nil || string(cfg.Sources[0].Password) != want {
			t.Errorf("%s: %v, %v", written, cfg.Sources, err)
		}
		if text := fmt.Sprintf("%v %+v %#v", cfg.Sources, cfg.Sources, cfg.Sources); strings.Contains(text, want) {
			t.Errorf("the password is shown: %s", text)
		}
	}
	for _, bad := range []string{"password: [canary]", "password: {a: canary}", "password:", "pasword: canary"} {
		if list := wantRejected(t, fmt.Sprintf(source, "x")[:strings.Index(source, "password")]+bad+"\n"); strings.Contains(list.Error(), "canary") {
			t.Errorf("a secret is shown: %v", list)
		}
	}
}

// Values are read as they are written: no digit is lost and no text becomes a number.
func TestParameter_KeepsDefaultExactly(t *testing.T) {
	for _, c := range []struct{ parameter, want string }{
		{"type: integer, default: 9007199254740993", "9007199254740993"},
		{"type: integer, default: '${NUMBER}'", "42"},
		{"type: string, default: '${NUMBER}'", `"42"`},
		{"type: string, default: 007", `"007"`},
		{"type: string, default: 1.50", `"1.50"`},
		{"type: string, default: true", `"true"`},
		{"type: string, default: 2024-01-02", `"2024-01-02"`},
		{"type: string, default: ''", `""`},
		{"type: float, default: 0.1", "0.1"},
		{"type: boolean, default: false", "false"},
		{"type: map, default: {kind: cat, n: 1.0, deep: [a, {b: null}]}", `{"kind":"cat","n":1.0,"deep":["a",{"b":null}]}`},
		{"type: array, items: {name: i, type: integer, description: d}, default: [1, 9007199254740993]", "[1,9007199254740993]"},
		{"type: array, items: {name: i, type: string, description: d}, default: [1, '${NAME}', 007]", `["1","analyst","007"]`},
	} {
		cfg, err := read(t, configtest.DeclaredTool+"parameters: [{name: p, description: d, "+c.parameter+"}]\n")
		if err != nil {
			t.Errorf("%s: %v", c.parameter, err)
			continue
		}
		if schema := string(cfg.Tools[0].Parameters.Schema()); !strings.Contains(schema, `"default":`+c.want+"}") {
			t.Errorf("%s: want %s in %s", c.parameter, c.want, schema)
		}
	}
}

func FuzzDeclared(f *testing.F) {
	for _, text := range []string{singular, plural, nested, `{"sources":{"a":{"kind":"sqlite","database":"x"}},"toolsets":{"s":null}}`, configtest.DeclaredTool + "parameters: [{name: p, type: array, description: d, items: {name: i, type: string, description: d, allowedValues: [a, /b/]}, default: [a]}]\n",
		configtest.DeclaredTool + "templateParameters: [{name: p, type: string, description: d, escape: backticks}]\nauthRequired: [x]\nscopesRequired: [y]\nstate: s\navailable_in_states: [s]\ngroup: [g]\n",
		"{kind: source, name: s, type: http, baseUrl: 'https://x.example', headers: {A: b}}\n---\n{kind: tool, name: h, type: http, source: s, description: d, method: get, path: '/{{.p}}', pathParams: [{name: p, type: string, description: d}]}\n",
		"prompts:\n  p: {kind: custom, messages: [{role: assistant, content: 'To {{.a}}{{range .b}} by {{.}}{{end}}'}], arguments: [{name: a, description: d}, {name: b, type: array, description: d, items: {name: i, type: integer, description: d}}]}\n---\n{kind: prompts, name: q}\n---\n{kind: group, name: g, prompts: [p, q]}\n",
		"{kind: group, description: d}\n---\n{kind: authService, name: a, type: generic, audience: x, authorizationServer: 'http://x', mcpEnabled: true}\n",
	} {
		f.Add([]byte(text))
	}
	for _, name := range []string{"awkward.yaml", "anchors.yaml", "plural.yaml"} {
		data, err := os.ReadFile("../../../cmd/testdata/toolbox/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := []yamldoc.File{{Path: "org.yaml", Data: data}}
		cfg, err := readFiles(files, testEnv)
		if err != nil {
			configtest.WantPositions(t, err)
		} else {
			wantResolved(t, cfg)
		}
		out, failed := toolboxfile.MigrateFile(data)
		if failed != nil || err != nil {
			return
		}
		again, err := readFiles([]yamldoc.File{{Path: "org.yaml", Data: out}}, testEnv)
		if diff := cmp.Diff(fingerprints(cfg), fingerprints(again)); err != nil || diff != "" {
			t.Errorf("%q became %q, error %v:\n%s", data, out, err, diff)
		}
		if twice, err := toolboxfile.MigrateFile(out); err != nil || !bytes.Equal(twice, out) {
			t.Errorf("%q migrated again is %q, error %v", out, twice, err)
		}
	})
}

// wantResolved checks that every reference has its target and that no required
// field is empty.
func wantResolved(t *testing.T, cfg *toolboxfile.Declarations) {
	t.Helper()
	sources, tools := map[string]bool{}, map[string]bool{}
	for _, s := range cfg.Sources {
		sources[s.Name] = true
	}
	for _, tool := range cfg.Tools {
		tools[tool.Name] = true
		if !sources[tool.Source] || tool.Parameters == nil || tool.Description == "" || tool.Fingerprint == "" {
			t.Errorf("accepted %+v", tool)
		}
	}
	for _, set := range cfg.Toolsets {
		for _, name := range set.Tools {
			if !tools[name] {
				t.Errorf("toolset %s has no tool %s", set.Name, name)
			}
		}
	}
	for _, p := range cfg.Prompts {
		if p.Arguments == nil || p.Name == "" || p.Fingerprint == "" {
			t.Errorf("accepted %+v", p)
		}
	}
}

// fingerprints returns the content of the declared parts of a configuration, sorted.
func fingerprints(cfg *toolboxfile.Declarations) (list []string) {
	for _, s := range cfg.Sources {
		list = append(list, s.Fingerprint)
	}
	for _, s := range cfg.AuthServices {
		list = append(list, s.Fingerprint)
	}
	for _, tool := range cfg.Tools {
		list = append(list, tool.Fingerprint)
	}
	for _, set := range cfg.Toolsets {
		list = append(list, fmt.Sprint(set.Name, set.Description, set.Tools, set.Prompts))
	}
	for _, p := range cfg.Prompts {
		list = append(list, p.Fingerprint)
	}
	slices.Sort(list)
	return list
}

// A configuration in the current form is returned unchanged.
func TestMigrateFile_KeepsCurrentForm(t *testing.T) {
	for _, text := range []string{"", "# hi\n", "kind: role\nname: sources # tools\n", "{kind: group, name: g}\n---\n{kind: widgets, name: w}", singular} {
		if out, err := toolboxfile.MigrateFile([]byte(text)); err != nil || string(out) != text {
			t.Errorf("%q became %q, error %v", text, out, err)
		}
	}
}

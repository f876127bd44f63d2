package toolboxfile_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// The meaning is kept for every YAML style, JSON among them.
func TestMigrateFile_KeepsMeaning(t *testing.T) {
	for _, text := range []string{
		`{"sources":{"a":{"kind":"sqlite","database":"x"}}}`,
		`{"sources":{"a":{"kind":"sqlite","database":"x"}},"tools":{"t":{"kind":"sqlite-sql","source":"a","description":"d","statement":"SELECT 1","parameters":[{"name":"p","type":"string","description":"d","authSources":[{"name":"g","field":"sub"}]}]}},"authSources":{"g":{"kind":"google","clientId":"c"}},"toolsets":{"s":["t"]}}`,
		"sources: {a: {'kind':sqlite , 'database': x}}\n",
		`{"sources" :{"a":{"kind" :"sqlite","database":"x"}}}`,
		`{"kind":"sources","name":"a","type":"sqlite","database":"x"}`,
		"toolsets:\n  a:\n  b: []\n",
		"tools:\ntoolsets: {}\n",
	} {
		before, err := read(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		out, err := toolboxfile.MigrateFile([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		after, err := read(t, string(out))
		if err != nil {
			t.Errorf("%s became\n%s: %v", text, out, err)
			continue
		}
		// authSources has another fingerprint than authServices
		of := cmp.Options{sameDeclarations(), cmpopts.IgnoreTypes(yamldoc.Pos{}), cmpopts.IgnoreFields(toolboxfile.DeclaredTool{}, "Fingerprint")}
		if diff := cmp.Diff(before, after, of); diff != "" {
			t.Errorf("%s became\n%s\n%s", text, out, diff)
		}
	}
}

// A comment is kept wherever it is: the test puts one at the end of every line
// and on a line of its own before every line, at two depths.
func TestMigrateFile_KeepsComments(t *testing.T) {
	const mark = "# injected"
	for _, name := range []string{"awkward.yaml", "anchors.yaml", "plural.yaml"} {
		data, err := os.ReadFile("../../../cmd/testdata/toolbox/" + name)
		if err != nil {
			t.Fatal(err)
		}
		before, err := read(t, string(data))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		for i, line := range lines {
			for _, with := range []string{strings.TrimSuffix(line, "\n") + " " + mark + "\n", mark + "\n" + line, "\n   " + mark + "\n\n" + line} {
				text := strings.Join(slices.Concat(lines[:i], []string{with}, lines[i+1:]), "")
				cfg, err := read(t, text)
				if err != nil || !slices.Equal(fingerprints(before), fingerprints(cfg)) {
					continue // it became part of a scalar
				}
				if out, err := toolboxfile.MigrateFile([]byte(text)); err != nil || !strings.Contains(string(out), mark) {
					t.Errorf("%s:%d: %q: error %v, migrated to\n%s", name, i+1, with, err, out)
				}
			}
		}
	}
}

// A field with the name of an older one is renamed where it is a field, and
// kept where the same anchor is a default.
func TestMigrateFile_KeepsAliasedDefault(t *testing.T) {
	const text = `kind: tools
name: t
type: sqlite-sql
source: db
description: d
statement: SELECT 1
parameters:
  - &p {name: p, type: string, description: d, authSources: [{name: g, field: sub}]}
  - {name: m, type: map, description: d, default: *p}
---
{kind: sources, name: db, type: sqlite, database: x.db}
---
{kind: authServices, name: g, type: google, clientId: c}
`
	out, err := toolboxfile.MigrateFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- {name: p, type: string, description: d, authServices: [",
		"default: {name: p, type: string, description: d, authSources: [",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// An entry that is not a mapping has its position in the error.
func TestMigrateFile_RejectsScalarEntry(t *testing.T) {
	_, err := toolboxfile.MigrateFile([]byte("tools:\n  a: text\n"))
	if err == nil || !strings.Contains(err.Error(), ":2:6: tools.a: must be a mapping") {
		t.Errorf("got %v", err)
	}
}

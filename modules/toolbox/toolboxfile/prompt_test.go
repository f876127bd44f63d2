package toolboxfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/configtest"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

const tripFields = "description: Plans a trip.\nmessages: [{content: 'To {{.city}}.'}]\narguments: [{name: city, description: Where to.}]\n"

// A prompt is the same in all spellings, and MigrateFile rewrites them in one.
func TestPrompt_AcceptsToolboxSpellings(t *testing.T) {
	var first string
	for name, text := range map[string]string{
		"singular": "kind: prompt\nname: trip\ntype: custom\n" + tripFields,
		"plural":   "kind: prompts\nname: trip # a comment\ntype: custom\n" + tripFields,
		"nested":   "# a comment\nprompts:\n  trip:\n    kind: custom\n" + indented(tripFields),
		"braces":   `{"prompts": {"trip": {"kind": "custom", "description": "Plans a trip.", "messages": [{"content": "To {{.city}}."}], "arguments": [{"name": "city", "description": "Where to."}]}}}`,
	} {
		text += "\n---\n{kind: group, name: travel, prompts: [trip]}\n"
		cfg, err := read(t, text)
		if err != nil || len(cfg.Prompts) != 1 {
			t.Fatalf("%s: %v, %v", name, cfg.Prompts, err)
		}
		if first == "" {
			first = cfg.Prompts[0].Fingerprint
		}
		if cfg.Prompts[0].Fingerprint != first {
			t.Errorf("%s: the prompt differs", name)
		}
		out, err := toolboxfile.MigrateFile([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.Contains(string(out), "prompts:\n") || strings.Contains(string(out), "kind: prompts") || strings.Contains(text, "#") != strings.Contains(string(out), "# a comment") {
			t.Errorf("%s: migrated to\n%s", name, out)
		}
		again, err := read(t, string(out))
		if diff := cmp.Diff(fingerprints(cfg), fingerprints(again)); err != nil || diff != "" {
			t.Errorf("%s: migrated to\n%s, which differs: %v\n%s", name, out, err, diff)
		}
	}
}

// indented returns text as the value of an entry in the v1 form.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ")
}

// Sections without entries are accepted, even of kinds that are not supported.
func TestReader_AcceptsEmptySections(t *testing.T) {
	const text = "prompts: {}\nembeddingModels:\ntoolsets: {}\n"
	for _, text := range []string{text, "embeddingModels: {}\n", "prompts:\n", configtest.DeclaredTool + "---\n" + text} {
		if _, err := read(t, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := toolboxfile.MigrateFile([]byte(text)); err != nil {
			t.Errorf("%q is not migrated: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"embeddingModels: {m: {kind: gemini}}\n": "embedding models of Toolbox are not supported",
		"embeddingModels: []\n":                  "embedding models of Toolbox are not supported",
		"prompts: []\n":                          "must be a mapping of names",
		"prompts: !!str {}\n":                    "org.yaml:1:",
		"kind: resource\nname: r\n":              "type: is missing",
	} {
		if list := wantRejected(t, text); !strings.Contains(list.Error(), want) {
			t.Errorf("%q: %v", text, list)
		}
	}
}

func TestListWarnings_UnlistedPrompt(t *testing.T) {
	cfg, err := read(t, "{kind: prompt, name: a}\n---\n{kind: prompt, name: b}\n---\n{kind: group, name: g, prompts: [b]}\n")
	want := []string{`org.yaml:1:1: prompt "a" is in no group, so no client can get it: list it under prompts of a document of kind group`}
	if diff := cmp.Diff(want, cfg.ListWarnings()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

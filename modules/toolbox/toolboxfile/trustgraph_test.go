package toolboxfile_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// The map form of TrustGraph becomes documents. The title of an entry becomes a comment.
func TestMigrateFile_TrustGraphMap(t *testing.T) {
	const text = "# seed\ntool:\n  # asks\n  ask:\n    type: mcp-tool\n    name: \"Ask it\" # title\n    description: d\n    group: [a]\n    mcp_tool_id: fs\n"
	out, err := toolboxfile.MigrateFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: tool\nname: ask\ntype: mcp-tool\ndescription: d\ngroup: [a]\nmcp_tool_id: fs\n", "# seed\n", "# asks\n", "# Ask it\n", "# title\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	again, err := toolboxfile.MigrateFile(out)
	if err != nil || string(again) != string(out) {
		t.Errorf("again: %v\n%s", err, again)
	}
}

// Setting labels changes one document, and keeps comments and other fields.
func TestSetLabels_ChangesOneDocument(t *testing.T) {
	const text = "# top\nkind: role\nname: a   # kept as it is\n---\n# one\nkind: tools\nname: a # name\napplicable-states: [x] # states\nstatement: |\n  SELECT 1 -- # text\n---\n{kind: tool, of: fs/a, group: [b]}\n"
	state := "it's ${X}"
	out, found, err := toolboxfile.SetLabels([]byte(text), "a", toolboxfile.Labels{Groups: []string{}, State: &state, States: []string{"*", "y"}, Effect: "readOnly"})
	want := "# top\nkind: role\nname: a   # kept as it is\n---\n# one\nkind: tools\nname: a # name\navailable_in_states: ['*', y] # states\nstatement: |\n  SELECT 1 -- # text\ngroup: []\nstate: it's $${X}\neffect: readOnly\n---\n{kind: tool, of: fs/a, group: [b]}\n"
	want = strings.Replace(want, "available_in_states", "applicable-states", 1) // its name is kept
	if string(out) != want || !found || err != nil {
		t.Errorf("%v, %v\n%s\nwant\n%s", found, err, out, want)
	}
	out, found, err = toolboxfile.SetLabels([]byte(text), "fs/a", toolboxfile.Labels{Groups: []string{"c"}})
	if want := strings.Replace(text, "[b]", "[c]", 1); string(out) != want || !found || err != nil {
		t.Errorf("%v, %v\n%s", found, err, out)
	}
	if out, found, err := toolboxfile.SetLabels([]byte(text), "none", toolboxfile.Labels{Groups: []string{"c"}}); string(out) != text || found || err != nil {
		t.Errorf("an unknown tool: %v, %v\n%s", found, err, out)
	}
}

// A document is added for a tool of a server that has none.
func TestAppendLabels(t *testing.T) {
	id := toolboxfile.ToolID{Server: "fs", Tool: "a"}
	for text, want := range map[string]string{"": "", "kind: role": "kind: role\n---\n", "kind: role\n": "kind: role\n---\n"} {
		out, err := toolboxfile.AppendLabels([]byte(text), id, toolboxfile.Labels{Groups: []string{"g"}, States: []string{}})
		if want += "kind: tool\nof: fs/a\ngroup: [g]\navailable_in_states: []\n"; string(out) != want || err != nil {
			t.Errorf("%q: %v\n%s", text, err, out)
		}
	}
}

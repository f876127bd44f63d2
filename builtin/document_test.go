package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// docs/tools.md is what this test makes of the tools.
func TestTheDocumentOfToolsIsCurrent(t *testing.T) {
	got := document(t, everyGroup(t))
	path := filepath.Join("..", "docs", "tools.md")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/tools.md is not what the tools are; go test ./builtin -run Document -update writes it anew (-want +got):\n%s", diff)
	}
}

const documentHead = `# The built-in tools

<!-- Made by go test ./builtin -run Document -update; do not edit. -->

Seven groups, 18 tools. A role names the groups its agents may use; what an agent does not see it may not call, and the same view answers both.

Every call passes the gate. Its arguments are one JSON object, read strictly: no unknown or repeated names, at most 64 deep and 8 MiB. What a
schema refuses comes back as ` + "`invalid_arguments`" + ` with the field and what was expected. Errors are results the model reads, never exceptions:
` + "`{\"error\":\"<code>\",\"toolName\":\"<tool>\",\"message\":\"what was attempted, on what, what to do\"}`" + `, with further fields where a tool names them.

**Effect** says what calling again does. *readOnly* changes nothing, and such calls of one answer run side by side. *idempotent*: the same call
after a crash has no further effect. *mutating*: a call that ended without an answer is reported as ` + "`tool_interrupted`" + `, outcome unknown, and never repeated.
`

// document renders groups as docs/tools.md.
func document(t *testing.T, groups []toolgroups.Group) string {
	var b strings.Builder
	b.WriteString(documentHead + "\n| group | what for | tools |\n|---|---|---|\n")
	for _, g := range groups {
		var names []string
		for _, tl := range g.Tools {
			name := tl.Definition().Name
			names = append(names, "[`"+name+"`](#"+name+")")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", g.ID, g.Description, strings.Join(names, " "))
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", g.ID, g.Description)
		for _, tl := range g.Tools {
			documentTool(t, &b, tl.Definition())
		}
	}
	return b.String()
}

func documentTool(t *testing.T, b *strings.Builder, d tool.Definition) {
	text, _, _ := strings.Cut(d.Description, "Example: ")
	fmt.Fprintf(b, "\n### %s\n\nEffect: %s.\n\n%s\n", d.Name, d.Effect, markdown(strings.TrimSpace(text)))
	list, answer := examples(t, d.Description)
	for _, args := range list {
		fmt.Fprintf(b, "\n```json\n%s\n```\n", pretty(t, args))
	}
	if answer != "" {
		fmt.Fprintf(b, "\nThis%s.\n", markdown(answer))
	}
	var schema obj
	if err := json.Unmarshal(d.Input, &schema); err != nil {
		t.Fatal(err)
	}
	rows := parameters("", schema)
	if len(rows) > 0 {
		b.WriteString("\n| parameter | type | bounds | |\n|---|---|---|---|\n" + strings.Join(rows, ""))
	}
	fmt.Fprintf(b, "\n<details><summary>Schema</summary>\n\n```json\n%s\n```\n\n</details>\n", pretty(t, d.Input))
}

func pretty(t *testing.T, doc json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Indent(&out, doc, "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// parameters gives the table rows of an object's properties: the required ones
// first, then by name, each before those inside it.
func parameters(prefix string, schema obj) []string {
	properties, _ := schema["properties"].(obj)
	required, _ := schema["required"].([]any)
	var first, then []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		s, _ := properties[name].(obj)
		needed := slices.Contains(required, any(name))
		text, _ := s["description"].(string)
		rows := append([]string{row(prefix+name, needed, s, text)}, parameters(prefix+name+".", s)...)
		if items, ok := s["items"].(obj); ok {
			rows = append(rows, parameters(prefix+name+"[].", items)...)
		}
		if needed {
			first = append(first, rows...)
		} else {
			then = append(then, rows...)
		}
	}
	return append(first, then...)
}

func row(path string, needed bool, s obj, text string) string {
	name := "`" + path + "`"
	if needed {
		name = "**" + name + "**"
	}
	kind := strings.Join(typesOf(s), " or ")
	if kind == "" {
		kind = "any"
	}
	return strings.ReplaceAll(fmt.Sprintf("| %s | %s | %s | %s |\n", name, kind, markdown(bounds(s)), markdown(text)), "  ", " ")
}

// bounds says in words what a schema limits.
func bounds(s obj) string {
	var list []string
	for _, b := range []struct{ key, words string }{
		{"enum", "one of %v"}, {"const", "only %v"}, {"minLength", "at least %v characters"}, {"maxLength", "at most %v characters"},
		{"pattern", "like `%v`"}, {"minItems", "at least %v entries"}, {"maxItems", "at most %v entries"}, {"maxProperties", "at most %v fields"},
		{"minimum", "from %v"}, {"maximum", "to %v"}, {"default", "default %v"},
	} {
		value, ok := s[b.key]
		if !ok {
			continue
		}
		if n, ok := value.(float64); ok {
			value = fmt.Sprintf("%.0f", n)
		}
		list = append(list, strings.Replace(fmt.Sprintf(b.words, value), "at least 1 characters", "not empty", 1))
	}
	return strings.Join(list, ", ")
}

// escaped keeps Markdown from taking text for a table's border or a tag.
func markdown(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }

package toolboxfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListWarnings_UnreachableStates(t *testing.T) {
	const head = "{kind: source, name: db, type: sqlite, database: x.db}\n"
	tool := func(name, fields string) string {
		return "---\n{kind: tool, name: " + name + ", type: sqlite-sql, source: db, description: d, statement: SELECT 1" + fields + "}\n"
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"none":  {head + tool("a", ""), nil},
		"cycle": {head + tool("a", ", state: x, available_in_states: [y]") + tool("b", ", state: y, available_in_states: [x]"), nil},
		"unreachable state": {head + tool("a", ", available_in_states: [start, x]") + tool("b", ", state: x"), []string{
			`org.yaml:3:1: tool a can be called in the state "start", which no tool leads to: a task must begin in it`}},
		"state without tools": {head + tool("a", ", state: x, applicable-states: [y]") + tool("b", ", state: y, available_in_states: [y]"), []string{
			`org.yaml:3:1: tool a leads to the state "x", in which no tool can be called`}},
		"tool for all states": {head + tool("a", ", state: x, available_in_states: ['*']"), nil},
	} {
		cfg, err := read(t, c.text)
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(c.want, cfg.ListWarnings()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

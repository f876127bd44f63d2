package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A change tells by name what roles and groups gain and lose.
func TestReconfigure_TellsChangesByName(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read(readerRole, moduleA, moduleB), nil); err != nil {
		t.Fatal(err)
	}
	f.takeChanges()
	console := strings.ReplaceAll(f.groupTools("console"), " ", ", ")
	for _, step := range []struct {
		name string
		docs []string
		want []string
	}{
		{"same", []string{moduleB, readerRole, moduleA}, nil},
		{"tool changed", []string{readerRole, "{kind: module, name: a, type: fake, settings: {tool: a2}}", moduleB}, []string{"group a is changed and gains a2 and loses a"}},
		{"group removed, role changed", []string{"{kind: role, name: reader, toolGroups: [b]}", moduleB},
			[]string{"group a is removed and loses a2", "role reader is updated and gains b and loses a2, " + console}},
		{"rejected", []string{"{kind: role, name: reader, toolGroups: [nonesuch]}", moduleB}, nil},
		{"group added, role added", []string{"{kind: role, name: reader, toolGroups: [b]}", "{kind: role, name: clerk, toolGroups: [a]}", moduleA, moduleB},
			[]string{"group a is added and gains a", "role clerk is created"}},
		{"bounding role changed", []string{"{kind: role, name: reader, toolGroups: [a]}", "{kind: role, name: clerk, toolGroups: [a], tasks: {as: reader}}", moduleA, moduleB},
			[]string{"role reader is updated and gains a and loses b", "the bound of the tasks of role clerk, as reader, is changed and gains a", "role clerk is updated"}},
		{"bounding role removed", []string{"{kind: role, name: reader, toolGroups: [b]}", "{kind: role, name: clerk, toolGroups: [a]}", moduleA, moduleB},
			[]string{"role reader is updated and gains b and loses a", "the bound of the tasks of role clerk is changed and loses a", "role clerk is updated"}},
		{"roles removed", []string{moduleA, moduleB}, []string{"role clerk is deleted and loses a", "role reader is deleted and loses b"}},
	} {
		_, err := f.reconfigure(t.Context(), f.read(step.docs...))
		if diff := cmp.Diff(step.want, f.takeChanges()); diff != "" || (err != nil) != (step.name == "rejected") {
			t.Errorf("%s: %v (-want +got):\n%s", step.name, err, diff)
		}
	}
}

// A change of many roles is told in a bounded number of entries, and a change of many tools
// with a bounded number of names.
func TestReconfigure_ChangesAreBounded(t *testing.T) {
	f := newFixture(t)
	docs := []string{moduleA}
	for n := range 60 {
		docs = append(docs, fmt.Sprintf("{kind: role, name: r%d, toolGroups: [a]}", n))
	}
	for _, step := range []struct {
		docs  []string
		first string
	}{{docs[:1], "group a is added and gains a"}, {docs, "role r0 is created"}, {docs[:1], "role r0 is deleted and loses a"}} {
		if _, err := f.reconfigure(t.Context(), f.read(step.docs...)); err != nil {
			t.Fatal(err)
		}
		got := f.takeChanges()
		if got[0] != step.first || len(got) > 1 && (len(got) != 51 || got[50] != "10 more changes of roles and groups") {
			t.Errorf("%d entries: %q", len(got), got)
		}
	}
	names := strings.Split(strings.Repeat("x,", 24)+"x", ",")
	if got := describeTools(names, nil); got != " and gains "+strings.Repeat("x, ", 19)+"x and 5 more" {
		t.Errorf("got %q", got)
	}
}

package app

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A rule of a role that names what does not exist protects nothing. The operator is told.
func TestListNotes_NamesOfRulesThatNothingHas(t *testing.T) {
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 12, 0, 0, 0, berlin(t)))
	docs := f.config(officeHours)[1:]
	f.apply(append(docs, "{kind: role, name: clerk, toolGroups: [console], bind: {console_print: {/text: {equal: x}}, consoleprint: {/text: {equal: x}}},"+
		" approval: [{tools: [console_prnt, console_print], from: {any: [{operator: true}]}}, {groups: [consol, console], from: {any: [{operator: true}]}}]}"))
	var got []string
	for _, note := range f.ListNotes() {
		if _, text, ok := strings.Cut(note, "role clerk: "); ok {
			got = append(got, text)
		}
	}
	want := []string{
		`bind: there is no tool consoleprint (did you mean "console_print"?); until it exists, the rule does nothing`,
		`approval: there is no tool console_prnt (did you mean "console_print"?); until it exists, the rule does nothing`,
		`approval: there is no tool group consol (did you mean "console"?); until it exists, the rule does nothing`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the notes are %q", got)
	}
}

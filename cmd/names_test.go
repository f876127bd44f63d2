package cmd

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/journal"
)

// Views of a task name an agent by its role, and further agents of the role by their names in
// the task.
func TestAgentNames_OfSeveralAgents(t *testing.T) {
	v := newLineView(&terminal{})
	var lines []string
	for _, e := range []journal.Event{
		{Agent: "a", Role: "clerk", Body: journal.AgentSpawned{Name: "clerk-1"}},
		{Agent: "b", Role: "clerk", Body: journal.AgentSpawned{Name: "clerk-2"}},
		{Agent: "c", Role: "clerk", Body: journal.AgentSpawned{}}, // of an old version
		{Agent: "b", Role: "clerk", Body: journal.AgentTerminated{}},
	} {
		lines = append(lines, strings.Fields(v.format(e))[1])
	}
	if got, want := strings.Join(lines, " "), "clerk clerk-2 clerk#3 clerk-2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	v.complete = true
	line := v.format(journal.Event{Agent: "01a1fded-ba9c-76b0-b2c8-51f0fecce8df", Role: "clerk", Body: journal.AgentSpawned{Name: "clerk-2"}})
	if want := "+ clerk/cce8df  clerk-2  may call nothing"; line != want {
		t.Errorf("got %s, want %s", line, want)
	}
}

package metrics_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestMetrics_CountRunningOrganization(t *testing.T) {
	f := newFixture(t, metrics.Load{})
	rt := f.newRuntime(t, memory.New())
	door := toolgroups.SetOf("door")
	runTask(t, rt, org.TaskSpec{State: "shut", Groups: &door})
	runTask(t, rt, org.TaskSpec{State: "an unknown state"})
	want := `agent_filtered_tools_count{} 12 of 18
agent_group_access_denied_total{} 2
agent_invalid_state_transition_total{} 4
agent_privilege_escalation_attempts_total{} 0
agent_state_transitions_total{from="shut",to="open",tool="open"} 1
agent_tool_group_requests_total{group="*"} 1
agent_tool_group_requests_total{group="door"} 1
rolecall_agents_total{status="spawned"} 2
rolecall_decisions_total{code="",decision="allowed"} 2
rolecall_decisions_total{code="tool_not_available",decision="denied"} 6
rolecall_decisions_total{code="unknown_tool",decision="denied"} 2
rolecall_tasks_total{status="done"} 2
rolecall_tasks_total{status="started"} 2
rolecall_tokens_total{kind="input",role="guide"} 100
rolecall_tokens_total{kind="output",role="guide"} 10
`
	if diff := cmp.Diff(want, f.text(t, familiesIn(want)...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if load := rt.CurrentLoad(); load.RunningTasks+load.WaitingTasks != 0 || load.Delayed != 0 || load.Commits < 16 {
		t.Errorf("load afterwards: %+v", load)
	}
}

func TestMetrics_SameForAllPatterns(t *testing.T) {
	for pattern, answers := range map[org.CollaborationPattern]int{org.React: 3, org.Plan: 4} {
		t.Run(string(pattern), func(t *testing.T) {
			f := newFixture(t, metrics.Load{})
			rt := f.newRuntimeWith(t, memory.New(), languageModel{twoStepModel}, pattern)
			runTask(t, rt, org.TaskSpec{State: "shut"})
			want := fmt.Sprintf(`agent_filtered_tools_count{} %d of %d
agent_invalid_state_transition_total{} 0
agent_state_transitions_total{from="shut",to="open",tool="open"} 1
rolecall_decisions_total{code="",decision="allowed"} 2
rolecall_tasks_total{status="done"} 1
rolecall_tasks_total{status="started"} 1
`, answers, 2*answers)
			if diff := cmp.Diff(want, f.text(t, familiesIn(want)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, once := range []string{`rolecall_turn_duration_seconds{outcome="ended"} 1 of`, `agent_workflow_duration_seconds{state="shut"} 1 of`} {
				if text := f.text(t); !strings.Contains(text, once) {
					t.Errorf("no %s in\n%s", once, text)
				}
			}
		})
	}
}

// Replaying the journal produces the same metrics as observing live, because events
// are the only source.
func TestMetrics_SameFromJournal(t *testing.T) {
	live, store := newFixture(t, metrics.Load{}), memory.New()
	rt := live.newRuntime(t, store)
	runTask(t, rt, org.TaskSpec{State: "shut"})
	runTask(t, rt, org.TaskSpec{})
	again := newFixture(t, metrics.Load{})
	again.register(t, "vault", newTool(t, "secret", tool.Options{}))
	for e, err := range store.FollowEvents(t.Context(), 0, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var stored journal.Event
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		again.ObserveEvent(stored)
	}
	if diff := cmp.Diff(live.text(t), again.text(t)); diff != "" {
		t.Errorf("(-live +replayed):\n%s", diff)
	}
}

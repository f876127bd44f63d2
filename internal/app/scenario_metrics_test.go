package app

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// measuredMetrics have values that a test does not know: durations, bytes and commits. They are
// more than 0.
var measuredMetrics = []string{
	"agent_workflow_duration_seconds_sum", "rolecall_turn_duration_seconds_sum", "rolecall_tool_call_duration_seconds_sum",
	"rolecall_commits_total", "rolecall_recorded_bytes", "rolecall_disk_bytes",
}

// scenarioMetrics are the samples after all requests that do not depend on the pattern. B is the
// number of built-in tools.
const scenarioMetrics = `
agent_privilege_escalation_attempts_total 2
agent_state_availability{state="analysis"} B+6
agent_state_availability{state="modification"} B+4
agent_state_availability{state="research"} B+4
agent_state_availability{state="results"} B+4
agent_state_availability{state="undefined"} B+4
agent_state_transitions_total{from="analysis",to="results",tool="complex-analysis"} 4
agent_state_transitions_total{from="analysis",to="undefined",tool="text-completion"} 1
agent_state_transitions_total{from="results",to="undefined",tool="reset-workflow"} 4
agent_state_transitions_total{from="undefined",to="analysis",tool="knowledge-query"} 5
agent_tool_group_availability{group="admin"} 1
agent_tool_group_availability{group="advanced"} 1
agent_tool_group_availability{group="analysis-server"} 2
agent_tool_group_availability{group="basic"} 2
agent_tool_group_availability{group="compute"} 1
agent_tool_group_availability{group="expensive"} 1
agent_tool_group_availability{group="knowledge"} 1
agent_tool_group_availability{group="mcp-tool/analysis-server"} 2
agent_tool_group_availability{group="read-only"} 2
agent_tool_group_availability{group="source/trustgraph"} 3
agent_tool_group_availability{group="text"} 1
agent_tool_group_availability{group="write"} 1
agent_tool_group_requests_total{group="*"} 4
agent_tool_group_requests_total{group="admin"} 3
agent_tool_group_requests_total{group="compute"} 3
agent_tool_group_requests_total{group="default"} 1
agent_tool_group_requests_total{group="knowledge"} 3
agent_tool_group_requests_total{group="read-only"} 4
agent_tool_group_requests_total{group="write"} 3
agent_workflow_duration_seconds_count{state="analysis"} 7
agent_workflow_duration_seconds_count{state="results"} 5
agent_workflow_duration_seconds_count{state="undefined"} 15
rolecall_agents_total{status="spawned"} 13
rolecall_agents{status="calling"} 0
rolecall_agents{status="starting"} 0
rolecall_agents{status="thinking"} 0
rolecall_agents{status="waiting"} 0
rolecall_approvals_oldest_seconds 0
rolecall_approvals_waiting 0
rolecall_decisions_total{code="",decision="allowed"} 17
rolecall_mailbox_depth{status="delayed"} 0
rolecall_mailbox_depth{status="unread"} 0
rolecall_not_ready{reason="starting"} 1
rolecall_tasks_total{status="done"} 13
rolecall_tasks_total{status="started"} 13
rolecall_tasks{status="paused"} 0
rolecall_tasks{status="running"} 0
rolecall_tasks{status="waiting"} 0
rolecall_tool_call_duration_seconds_count{outcome="error",tool="knowledge-query"} 2
rolecall_tool_call_duration_seconds_count{outcome="ok",tool="complex-analysis"} 4
rolecall_tool_call_duration_seconds_count{outcome="ok",tool="entity-create"} 1
rolecall_tool_call_duration_seconds_count{outcome="ok",tool="knowledge-query"} 5
rolecall_tool_call_duration_seconds_count{outcome="ok",tool="reset-workflow"} 4
rolecall_tool_call_duration_seconds_count{outcome="ok",tool="text-completion"} 1
rolecall_turn_duration_seconds_count{outcome="ended"} 13
`

// patternMetrics are the other samples. An agent that plans asks its model more often, and makes
// no call that its plan may not have.
var patternMetrics = map[org.CollaborationPattern]string{
	org.React: `
agent_filtered_tools_count_count 31
agent_filtered_tools_count_sum 35
agent_group_access_denied_total 1
agent_invalid_state_transition_total 3
rolecall_cost_total{role="analysts"} 23
rolecall_cost_total{role="readers"} 6
rolecall_cost_total{role="writers"} 2
rolecall_decisions_total{code="tool_not_available",decision="denied"} 4
rolecall_tokens_total{kind="input",role="analysts"} 230
rolecall_tokens_total{kind="input",role="readers"} 60
rolecall_tokens_total{kind="input",role="writers"} 20
rolecall_tokens_total{kind="output",role="analysts"} 46
rolecall_tokens_total{kind="output",role="readers"} 12
rolecall_tokens_total{kind="output",role="writers"} 4
`,
	org.Plan: `
agent_filtered_tools_count_count 45
agent_filtered_tools_count_sum 52
agent_group_access_denied_total 0
agent_invalid_state_transition_total 1
rolecall_cost_total{role="analysts"} 33
rolecall_cost_total{role="readers"} 9
rolecall_cost_total{role="writers"} 3
rolecall_decisions_total{code="tool_not_available",decision="denied"} 1
rolecall_tokens_total{kind="input",role="analysts"} 330
rolecall_tokens_total{kind="input",role="readers"} 90
rolecall_tokens_total{kind="input",role="writers"} 30
rolecall_tokens_total{kind="output",role="analysts"} 66
rolecall_tokens_total{kind="output",role="readers"} 18
rolecall_tokens_total{kind="output",role="writers"} 6
`,
}

// atWork are samples while an agent asks its model about its first message and has another. A
// message is read when the model has answered.
const atWork = `
rolecall_agents{status="calling"} 0
rolecall_agents{status="starting"} 0
rolecall_agents{status="thinking"} 1
rolecall_agents{status="waiting"} 0
rolecall_mailbox_depth{status="delayed"} 0
rolecall_mailbox_depth{status="unread"} 2
rolecall_tasks{status="paused"} 0
rolecall_tasks{status="running"} 1
rolecall_tasks{status="waiting"} 0
`

// sampleLines returns the lines of a text, sorted.
func sampleLines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// checkAtWork compares the samples that change while an agent works.
func (s *scenario) checkAtWork(moved map[string]bool) {
	s.t.Helper()
	goOn, ended := s.askHeld("readers", `{"question":"steps[text-completion]"}`, 1)
	tasks := s.Runtime.Org().ListTasks()
	if _, err := s.Runtime.SendMessage(s.t.Context(), tool.Call{By: identity.ByOperator("op")}, string(tasks[len(tasks)-1].Top), json.RawMessage(`"more"`), 0); err != nil {
		s.t.Error(err)
	}
	var got []string
	for _, sample := range s.scrape() {
		if name := metricName(sample); slices.Contains([]string{"rolecall_agents", "rolecall_tasks", "rolecall_mailbox_depth"}, name) {
			got = append(got, sample)
			moved[name] = moved[name] || !strings.HasSuffix(sample, " 0")
		}
	}
	close(goOn)
	if diff := cmp.Diff(sampleLines(atWork), got); diff != "" {
		s.t.Errorf("while an agent works (-want +got):\n%s", diff)
	}
	if err := <-ended; err != nil {
		s.t.Error(err)
	}
}

// checkMetrics compares all samples, and adds the names of metrics that are not 0 to moved.
func (s *scenario) checkMetrics(pattern org.CollaborationPattern, moved map[string]bool) {
	s.t.Helper()
	builtIn := map[string]bool{}
	tools := 0
	for _, id := range toolgroups.ReservedIDs() {
		info, _ := s.groups.CurrentSnapshot().LookupGroup(id)
		builtIn[fmt.Sprintf("agent_tool_group_availability{group=%q}", id)] = true
		tools += info.Count
	}
	var got []string
	for _, sample := range s.scrape() {
		name, value, _ := strings.Cut(sample, " ")
		if value != "0" {
			moved[metricName(name)] = true
		}
		switch {
		case isMeasured(name):
			if n, err := strconv.ParseFloat(value, 64); err != nil || n <= 0 {
				s.t.Errorf("%s is not more than 0", sample)
			}
		case !builtIn[name]:
			got = append(got, sample)
		}
	}
	want := builtInCount.ReplaceAllStringFunc(scenarioMetrics+patternMetrics[pattern], func(sum string) string {
		more, _ := strconv.Atoi(sum[2:])
		return strconv.Itoa(tools + more)
	})
	if diff := cmp.Diff(sampleLines(want), got); diff != "" {
		s.t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// builtInCount is a number of tools beyond those that are built in.
var builtInCount = regexp.MustCompile(`B\+\d+`)

// isMeasured reports whether the value of a sample is not known to the test.
func isMeasured(sample string) bool {
	name, _, _ := strings.Cut(sample, "{")
	return slices.Contains(measuredMetrics, name)
}

// metricName returns the name of the metric of a sample.
func metricName(sample string) string {
	name, _, _ := strings.Cut(sample, "{")
	return strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
}

// documentedMetrics lists the metrics in the table of docs/metrics.md.
func documentedMetrics(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:agent|rolecall)_[a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		names = append(names, row[1])
	}
	if len(names) < 20 {
		t.Fatalf("the table has %d metrics", len(names))
	}
	return names
}

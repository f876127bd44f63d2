package metrics

import "github.com/prometheus/client_golang/prometheus"

// Buckets of the histograms, in seconds except for toolBuckets.
var (
	toolBuckets   = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	turnBuckets   = []float64{.01, .05, .1, .5, 1, 2, 5, 10, 30, 60, 300, 1800}
	callBuckets   = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	periodBuckets = []float64{.1, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
)

// newCollectors creates the metrics that events change and returns them. The
// help texts are repeated in docs/metrics.md; a test compares them.
func (m *Metrics) newCollectors() []prometheus.Collector {
	m.requests = newCounter("agent_tool_group_requests_total",
		"Requests for the tool group, started or rejected: groups that a request named, or has by default; * for all groups, - for no group, other for unregistered groups.", "group")
	m.filtered = newHistogram("agent_filtered_tools_count",
		"Tools available to an agent after filtering by group and workflow state, at each answer of its model.", toolBuckets)
	m.transitions = newCounter("agent_state_transitions_total",
		"Workflow state transitions of agents, each after a successful call of the tool.", "tool", "from", "to")
	m.stateTime = newHistogram("agent_workflow_duration_seconds",
		"Time an agent spent in a workflow state, until the next state or the end of the agent or its task. An agent that another process created is measured from its next transition.", periodBuckets, "state")
	m.denied = newCounter("agent_group_access_denied_total",
		"Calls denied because none of the agent's groups has the tool.")
	m.wrongState = newCounter("agent_invalid_state_transition_total",
		"Calls denied because the tool is not available in the agent's workflow state.")
	m.escalations = newCounter("agent_privilege_escalation_attempts_total",
		"Calls, turns and requests rejected with insufficient_permissions: the caller asked for more permissions than it has or may grant.")

	m.tasks = newCounter("rolecall_tasks_total",
		"Tasks by event: started, done, failed, cancelled.", "status")
	m.agents = newCounter("rolecall_agents_total",
		"Agents by event: spawned, terminated. The result of the first agent of a task terminates the agents below it; another end of a task terminates none.", "status")
	m.turns = newHistogram("rolecall_turn_duration_seconds",
		"Time from receiving a message to the answer that ended the turn (ended) or started to wait (waiting), or to the turn's failure (failed).", turnBuckets, "outcome")
	m.calls = newHistogram("rolecall_tool_call_duration_seconds",
		"Time from the decision on a tool call to its outcome (ok or error), including the commit of the decision. Calls that run in parallel end together.", callBuckets, "tool", "outcome")
	m.tokens = newCounter("rolecall_tokens_total",
		"Tokens of answers and summaries: input, output, and cached, which is part of input. Estimated if the provider reports none.", "role", "kind")
	m.cost = newCounter("rolecall_cost_total",
		"Cost of answers, in the currency of the configured prices.", "role")
	m.decisions = newCounter("rolecall_decisions_total",
		"Calls decided by the gate, by decision and error code; the code of allowed calls is empty.", "decision", "code")
	m.approvals = newCounter("rolecall_approvals_total",
		"Decisions about calls that wait for people: vote, approved, denied, expired, void; override is an approval by an operator in place of the approvers.", "outcome")
	m.approvalTime = newHistogram("rolecall_approval_duration_seconds",
		"Time from a request for approval to its end, by outcome. Votes that end no request are not counted.", periodBuckets, "outcome")
	return []prometheus.Collector{
		m.requests, m.filtered, m.transitions, m.stateTime, m.denied, m.wrongState, m.escalations,
		m.tasks, m.agents, m.turns, m.calls, m.tokens, m.cost, m.decisions, m.approvals, m.approvalTime,
	}
}

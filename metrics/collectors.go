package metrics

import "github.com/prometheus/client_golang/prometheus"

// Buckets of the histograms.
var (
	toolBuckets   = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	turnBuckets   = []float64{.01, .05, .1, .5, 1, 2, 5, 10, 30, 60, 300, 1800}
	callBuckets   = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	periodBuckets = []float64{.1, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
)

// register makes everything that events move and lists it. The words are those of
// docs/metrics.md.
func (m *Metrics) register() []prometheus.Collector {
	m.requests = counters("agent_tool_group_requests_total",
		"Tasks that named the tool group when they were started; * for tasks that named none, - for tasks that may use none, other for groups nobody registered.", "group")
	m.filtered = histograms("agent_filtered_tools_count",
		"Tools that the groups and the workflow state of an agent left it, at each answer of its model.", toolBuckets)
	m.transitions = counters("agent_state_transitions_total",
		"Workflow states that agents left for another after a successful call of the tool.", "tool", "from", "to")
	m.stateTime = histograms("agent_workflow_duration_seconds",
		"Time that an agent was in a workflow state, from entering it to the next state, the agent's end or its task's. An agent that another process made is counted from its next transition.", periodBuckets, "state")
	m.denied = counters("agent_group_access_denied_total",
		"Calls denied because no group that the agent may use has the tool.")
	m.wrongState = counters("agent_invalid_state_transition_total",
		"Calls denied because the tool is not available in the agent's workflow state.")
	m.escalations = counters("agent_privilege_escalation_attempts_total",
		"Calls, turns and requests refused with insufficient_permissions: somebody asked for more than it may have or give.")

	m.ended = counters("rolecall_tasks_total",
		"Tasks by what became of them: started, done, failed, cancelled.", "status")
	m.agentLifetimes = counters("rolecall_agents_total",
		"Agents by what became of them: spawned, terminated. The agents of a task that ended are not terminated.", "status")
	m.turns = histograms("rolecall_turn_duration_seconds",
		"Time from taking a message to the answer that ended the turn (ended), began to wait (waiting), or to its failure (failed).", turnBuckets, "outcome")
	m.calls = histograms("rolecall_tool_call_duration_seconds",
		"Time from the decision to call the tool to its outcome, the commit of the decision included; calls that ran side by side end together. The outcome is ok or error.", callBuckets, "tool", "outcome")
	m.tokens = counters("rolecall_tokens_total",
		"Tokens of answers and summaries: input, output, and cached, which is a part of input; estimated where a provider reports none.", "role", "kind")
	m.cost = counters("rolecall_cost_total",
		"What answers cost, in the currency prices are written in.", "role")
	m.decisions = counters("rolecall_decisions_total",
		"Calls decided by the gate, by the code of the denial; the code of what was allowed is empty.", "decision", "code")
	return []prometheus.Collector{
		m.requests, m.filtered, m.transitions, m.stateTime, m.denied, m.wrongState, m.escalations,
		m.ended, m.agentLifetimes, m.turns, m.calls, m.tokens, m.cost, m.decisions,
	}
}

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/toolgroups"
)

// registry shows what the registry of tool groups holds at a scrape.
type registry struct {
	names          *labelValues
	groups, states *prometheus.Desc
}

func newRegistry(n *labelValues) *registry {
	return &registry{n,
		prometheus.NewDesc("agent_tool_group_availability", "Tools in the tool group now.", []string{"group"}, nil),
		prometheus.NewDesc("agent_state_availability",
			"Registered tools that the workflow state offers now, to an agent that may use all groups.", []string{"state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (r *registry) Describe(to chan<- *prometheus.Desc) { to <- r.groups; to <- r.states }

// Collect implements prometheus.Collector.
func (r *registry) Collect(to chan<- prometheus.Metric) {
	for group, tools := range sizes(r.names.groups.Snapshot().Groups()) {
		to <- gauge(r.groups, tools, group)
	}
	for state, tools := range r.names.offers() {
		to <- gauge(r.states, tools, state)
	}
}

// sizes counts the tools of groups; groups past the bound are one.
func sizes(groups []toolgroups.Info) map[string]int {
	tools := map[string]int{}
	for _, g := range groups {
		name := string(g.ID)
		if len(tools) >= maxSeries {
			name = otherLabel
		}
		tools[name] += g.Count
	}
	return tools
}

// loads shows what there is to do at a scrape.
type loads struct {
	m    *Metrics
	load func() Load

	agents, tasks, mail, commits *prometheus.Desc
}

func newLoads(m *Metrics, load func() Load) *loads {
	return &loads{m, load,
		prometheus.NewDesc("rolecall_agents",
			"Agents now: working, or resting, which counts those of running tasks that did something in this process.", []string{"status"}, nil),
		prometheus.NewDesc("rolecall_tasks", "Tasks now: running counts those that this process works on.", []string{"status"}, nil),
		prometheus.NewDesc("rolecall_mailbox_depth",
			"Messages that wait now: unread in the mailboxes of agents that this process made, or delayed until they are due.", []string{"status"}, nil),
		prometheus.NewDesc("rolecall_commits_total", "Commits to the journal since the process began.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (l *loads) Describe(to chan<- *prometheus.Desc) {
	to <- l.agents
	to <- l.tasks
	to <- l.mail
	to <- l.commits
}

// Collect implements prometheus.Collector.
func (l *loads) Collect(to chan<- prometheus.Metric) {
	now := l.load()
	l.m.mu.Lock()
	known, unread := l.m.crowd.size, l.m.crowd.unread
	l.m.mu.Unlock()
	to <- gauge(l.agents, now.Working, "working")
	to <- gauge(l.agents, max(0, known-now.Working), "resting")
	to <- gauge(l.tasks, now.Tasks, "running")
	to <- gauge(l.mail, max(0, unread-now.Delayed), "unread") // what is delayed was sent too
	to <- gauge(l.mail, now.Delayed, "delayed")
	to <- prometheus.MustNewConstMetric(l.commits, prometheus.CounterValue, float64(now.Commits))
}

func gauge(d *prometheus.Desc, n int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
}

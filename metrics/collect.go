package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/toolgroups"
)

// registryCollector reports the current content of the tool group registry at
// each scrape.
type registryCollector struct {
	labels         *labelValues
	groups, states *prometheus.Desc
}

// newRegistryCollector returns a collector for the registry behind l.
func newRegistryCollector(l *labelValues) *registryCollector {
	return &registryCollector{l,
		prometheus.NewDesc("agent_tool_group_availability", "Tools in the tool group now.", []string{"group"}, nil),
		prometheus.NewDesc("agent_state_availability",
			"Registered tools available in the workflow state now, to an agent that may use all groups.", []string{"state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (r *registryCollector) Describe(to chan<- *prometheus.Desc) { to <- r.groups; to <- r.states }

// Collect implements prometheus.Collector.
func (r *registryCollector) Collect(to chan<- prometheus.Metric) {
	for group, tools := range toolsPerGroup(r.labels.groups.CurrentSnapshot().ListGroups()) {
		to <- gauge(r.groups, tools, group)
	}
	for state, tools := range r.labels.toolsPerState() {
		to <- gauge(r.states, tools, state)
	}
}

// toolsPerGroup returns the number of tools of each group. Groups beyond
// maxSeries are counted together as other.
func toolsPerGroup(groups []toolgroups.GroupInfo) map[string]int {
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

// loadCollector reports the current load at each scrape.
type loadCollector struct {
	m              *Metrics
	load           func() Load
	unreadyReasons func() []string                  // may be nil
	servicesUp     func() map[string]bool           // may be nil
	deliveries     func() map[string]DeliveryCounts // may be nil

	agents, tasks, messages, commits, disk, recorded, unready, services *prometheus.Desc

	approvals, oldest, notifications, delay *prometheus.Desc
}

// newLoadCollector returns a collector that calls the functions of c at each scrape.
func newLoadCollector(m *Metrics, c Config) *loadCollector {
	return &loadCollector{m, c.Load, c.Unready, c.Services, c.Notifications,
		prometheus.NewDesc("rolecall_agents",
			"Agents now: starting, thinking or calling in a turn, or waiting for a message. Waiting counts only agents that were in a turn of this process before.", []string{"status"}, nil),
		prometheus.NewDesc("rolecall_tasks", "Tasks now: running, or waiting for a delayed message, in this process; or paused until the operator retries them, at most 1,000 of these.", []string{"status"}, nil),
		prometheus.NewDesc("rolecall_mailbox_depth",
			"Messages waiting now: unread in the mailboxes of agents that this process created, or delayed until they are due.", []string{"status"}, nil),
		prometheus.NewDesc("rolecall_commits_total", "Commits to the journal since the process started.", nil, nil),
		prometheus.NewDesc("rolecall_disk_bytes",
			"Space of the disk of the data directory now: free, and reserve, below which no new work begins. Absent if the system does not report it.", []string{"kind"}, nil),
		prometheus.NewDesc("rolecall_recorded_bytes", "Bytes that the organization has recorded: events, artifacts and recordings.", nil, nil),
		prometheus.NewDesc("rolecall_not_ready", "1 for each reason of /readyz why the process should not be sent work now, by its code.", []string{"reason"}, nil),
		prometheus.NewDesc("rolecall_tool_service_up",
			"1 for each tool service that is there now, 0 for one that is not: it is connected to the broker in this process, or announces itself. Absent for services of other brokers.", []string{"service"}, nil),
		prometheus.NewDesc("rolecall_approvals_waiting", "Calls that wait for people now.", nil, nil),
		prometheus.NewDesc("rolecall_approvals_oldest_seconds", "How long the first of the calls that wait for people has waited; 0 if none waits.", nil, nil),
		prometheus.NewDesc("rolecall_notifications_total",
			"Attempts to send notifications since the process started: delivered, retried, or dropped for good.", []string{"notification", "outcome"}, nil),
		prometheus.NewDesc("rolecall_notification_delay_seconds",
			"Age of the notification that is being sent to a receiver; 0 if all were sent.", []string{"notification"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (l *loadCollector) Describe(to chan<- *prometheus.Desc) {
	to <- l.agents
	to <- l.tasks
	to <- l.messages
	to <- l.commits
	to <- l.disk
	to <- l.recorded
	to <- l.unready
	to <- l.services
	to <- l.approvals
	to <- l.oldest
	to <- l.notifications
	to <- l.delay
}

// Collect implements prometheus.Collector.
func (l *loadCollector) Collect(to chan<- prometheus.Metric) {
	now := l.load()
	l.m.mu.Lock()
	known, unread := l.m.tracker.size, l.m.tracker.unread
	l.m.mu.Unlock()
	to <- gauge(l.agents, now.Starting, "starting")
	to <- gauge(l.agents, now.Thinking, "thinking")
	to <- gauge(l.agents, now.Calling, "calling")
	to <- gauge(l.agents, max(0, known-now.Starting-now.Thinking-now.Calling), "waiting")
	to <- gauge(l.tasks, now.RunningTasks, "running")
	to <- gauge(l.tasks, now.WaitingTasks, "waiting")
	to <- gauge(l.tasks, now.PausedTasks, "paused")
	to <- gauge(l.messages, max(0, unread-now.Delayed), "unread") // delayed messages are counted in unread when they are sent
	to <- gauge(l.messages, now.Delayed, "delayed")
	to <- prometheus.MustNewConstMetric(l.commits, prometheus.CounterValue, float64(now.Commits))
	to <- prometheus.MustNewConstMetric(l.recorded, prometheus.GaugeValue, float64(now.Recorded))
	if l.unreadyReasons != nil {
		for _, reason := range l.unreadyReasons() {
			to <- gauge(l.unready, 1, reason)
		}
	}
	if l.servicesUp != nil {
		for service, up := range l.servicesUp() {
			to <- gauge(l.services, map[bool]int{true: 1}[up], service)
		}
	}
	to <- gauge(l.approvals, now.WaitingApprovals)
	to <- prometheus.MustNewConstMetric(l.oldest, prometheus.GaugeValue, now.OldestApproval.Seconds())
	l.collectNotifications(to)
	if now.DiskReserve > 0 {
		to <- prometheus.MustNewConstMetric(l.disk, prometheus.GaugeValue, float64(now.DiskFree), "free")
		to <- prometheus.MustNewConstMetric(l.disk, prometheus.GaugeValue, float64(now.DiskReserve), "reserve")
	}
}

// collectNotifications sends what was sent to each receiver of notifications.
func (l *loadCollector) collectNotifications(to chan<- prometheus.Metric) {
	if l.deliveries == nil {
		return
	}
	for name, d := range l.deliveries() {
		for outcome, n := range map[string]uint64{"delivered": d.Delivered, "retried": d.Retried, "dropped": d.Dropped} {
			to <- prometheus.MustNewConstMetric(l.notifications, prometheus.CounterValue, float64(n), name, outcome)
		}
		to <- prometheus.MustNewConstMetric(l.delay, prometheus.GaugeValue, d.Delay.Seconds(), name)
	}
}

// gauge returns one sample of a gauge.
func gauge(d *prometheus.Desc, n int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
}

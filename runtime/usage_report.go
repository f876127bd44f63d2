package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// UsageKey is what the rows of a usage report are grouped by.
type UsageKey string

// The keys.
const (
	UsageByCaller UsageKey = "caller" // who started the task, or called from outside
	UsageByRole   UsageKey = "role"   // of the agent or the caller, by name
	UsageByServer UsageKey = "server" // the owner of the tool, while it is registered
	UsageByTool   UsageKey = "tool"
)

// UsageQuery selects what a usage report counts.
type UsageQuery struct {
	By       []UsageKey         // "" in the rows for other keys; nil makes one row
	From, To time.Time          // the times of the events, from From to before To; zero is no bound
	Caller   identity.Principal // only what this external caller has used; zero is everything

	// ServerOf returns the server of a tool for UsageByServer; "" if it is not shown. nil returns
	// the owner of each registered tool.
	ServerOf func(tool string) string
}

// UsageRow is what calls and answers with the same keys have used. Answers of models belong to
// no tool and no server: their usage is in the rows in which both are "".
type UsageRow struct {
	Caller, Role, Server, Tool string
	AgentTally
}

// maxUsageRows limits the rows of a report. What exceeds it is counted in UsageReport.Rest.
const maxUsageRows = 10_000

// UsageReport is what the organization has used, as it is recorded.
type UsageReport struct {
	Rows  []UsageRow // sorted by their keys
	Rest  AgentTally // of rows beyond the limit
	Total AgentTally
}

// ReportUsage counts calls, tokens and costs in the recorded events. It reads all events since
// q.From. Requests to models that failed are not counted: only the provider knows what they
// used. Errors: the errors of the store and of ctx.
func (rt *Runtime) ReportUsage(ctx context.Context, q UsageQuery) (UsageReport, error) {
	after := uint64(0)
	if !q.From.IsZero() {
		var err error
		if after, err = rt.store.SeqBefore(ctx, q.From.Add(-usageSlack)); err != nil {
			return UsageReport{}, err
		}
	}
	sum := usageSum{rt: rt, query: q, rows: map[usageKeys]*AgentTally{}, callers: map[identity.TaskID]string{}}
	for e, err := range rt.store.FollowMatching(ctx, q.matches, after, journal.StoredOnly) {
		if err != nil {
			return UsageReport{}, err
		}
		if e.Body != nil {
			sum.add(e)
		}
	}
	return sum.report(), nil
}

// usageSlack is how far the times of events may be from the order of their numbers.
const usageSlack = time.Minute

// matches reports whether an event counts, as far as its head says.
func (q UsageQuery) matches(h journal.EventHead) bool {
	switch h.Type() {
	case journal.ToolCall{}.EventType(), journal.ModelAnswered{}.EventType(), journal.ContextCompressed{}.EventType():
		at := h.At()
		return !at.Before(q.From) && (q.To.IsZero() || at.Before(q.To))
	}
	return false
}

// usageKeys are the keys of a row.
type usageKeys struct{ caller, role, server, tool string }

// usageSum adds up events.
type usageSum struct {
	rt      *Runtime
	query   UsageQuery
	rows    map[usageKeys]*AgentTally
	callers map[identity.TaskID]string
	rest    AgentTally
	total   AgentTally
}

// add counts an event.
func (s *usageSum) add(e journal.Event) {
	caller := s.callerOf(e)
	if s.query.Caller != (identity.Principal{}) && caller != s.query.Caller.String() {
		return
	}
	one := tallyOf(e.Body)
	s.total = s.total.plus(one)
	key := s.keysOf(e, caller)
	row := s.rows[key]
	if row == nil && len(s.rows) >= maxUsageRows {
		s.rest = s.rest.plus(one)
		return
	}
	if row == nil {
		row = new(AgentTally)
		s.rows[key] = row
	}
	*row = row.plus(one)
}

// callerOf returns the caller of an event: of its task, or of a call from outside.
func (s *usageSum) callerOf(e journal.Event) string {
	if e.Task == "" {
		call, _ := e.Body.(journal.ToolCall)
		return call.Caller
	}
	caller, known := s.callers[e.Task]
	if !known {
		task, _ := s.rt.org.TaskByID(e.Task)
		caller = task.Caller
		s.callers[e.Task] = caller
	}
	return caller
}

// keysOf returns the keys of the row of an event.
func (s *usageSum) keysOf(e journal.Event, caller string) (k usageKeys) {
	call, _ := e.Body.(journal.ToolCall)
	for _, by := range s.query.By {
		switch by {
		case UsageByCaller:
			k.caller = caller
		case UsageByRole:
			k.role = e.Role
		case UsageByTool:
			k.tool = call.Tool
		case UsageByServer:
			k.server = s.serverOf(call.Tool)
		}
	}
	return k
}

// serverOf returns the server of a tool; "" if there is none, or it is not shown.
func (s *usageSum) serverOf(name string) string {
	if s.query.ServerOf != nil {
		return s.query.ServerOf(name)
	}
	h, ok := s.rt.config.Groups.CurrentSnapshot().LookupTool(name)
	if !ok {
		return ""
	}
	return string(h.Owner)
}

// report returns the rows, sorted.
func (s *usageSum) report() UsageReport {
	out := UsageReport{Rest: s.rest, Total: s.total}
	for k, t := range s.rows {
		out.Rows = append(out.Rows, UsageRow{k.caller, k.role, k.server, k.tool, *t})
	}
	slices.SortFunc(out.Rows, func(a, b UsageRow) int {
		return cmp.Or(cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

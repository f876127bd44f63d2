package runtime

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// The request log has one record "agent request" of level Info per request. A
// request is a turn of an agent. It begins with the messages that the agent
// receives. It ends with the answer that ends or suspends the turn, or with a
// failure. The record is built from the events that the turn commits, so all
// working patterns are logged alike. Nothing is collected if the level is
// disabled.

// Limits of a record.
const (
	maxListed = 100 // per list; the rest is counted
	maxName   = 128 // bytes of a name
)

// turnRecord collects the log record of a turn.
type turnRecord struct {
	began       time.Time
	toolsSet    bool // the fields up to byState are set
	state       string
	tools       countedList[string] // offered with the first answer
	byGroup     countedList[string]
	byState     countedList[string]
	transitions countedList[transition]
	denied      countedList[denial]
}

// transition is a change of an agent's workflow state in the log.
type transition struct {
	Tool      string    `json:"tool"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Timestamp time.Time `json:"timestamp"`
}

// denial is a denied call in the log.
type denial struct {
	Tool string       `json:"tool"`
	Code errcode.Code `json:"code"`
}

// logRequest collects committed events and writes the record when they end the
// request. If messages are left unread, the next request begins at once.
func (a *actor) logRequest(events []journal.Event) {
	if !a.rt.log.Enabled(a.rt.uncancelled, slog.LevelInfo) {
		return
	}
	for _, e := range events {
		if a.turnLog == nil {
			a.turnLog = &turnRecord{began: e.At}
		}
		ends, code := a.turnLog.observe(a, e)
		if !ends {
			continue
		}
		a.writeRequest(e.At, code)
		a.turnLog = nil
		if a.state.hasUnseen {
			a.turnLog = &turnRecord{began: e.At}
		}
	}
}

// observe collects one event. It reports whether the event ends the request,
// with the code of a failure.
func (r *turnRecord) observe(a *actor, e journal.Event) (ends bool, code errcode.Code) {
	switch b := e.Body.(type) {
	case journal.ModelAnswered:
		r.setTools(a, b.Answer.State, a.state.tools)
		return b.Answer.Finish.EndsTurn() || b.Answer.Finish == model.FinishWait, ""
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			r.denied.add(denial{logName(b.Tool), b.Code})
		}
	case journal.StateTransition:
		r.transitions.add(transition{logName(b.Tool), logName(toolgroups.StateName(b.From)), logName(toolgroups.StateName(b.To)), e.At})
	case journal.TurnFailed: // possibly before any answer
		subject := a.subject()
		r.setTools(a, subject.State, subject.ToolNames())
		return true, b.Code
	}
	return false, ""
}

// setTools sets, once, the tools that the agent may call in this request, and
// those filtered by group or by state. A tool that is filtered by both counts
// as filtered by group.
func (r *turnRecord) setTools(a *actor, state string, tools []string) {
	if r.toolsSet {
		return
	}
	r.toolsSet, r.state = true, logName(toolgroups.StateName(state))
	for _, name := range tools {
		r.tools.add(name)
	}
	subject := a.subject()
	for _, name := range a.rt.toolNames.namesOf(a.rt.config.Groups.CurrentSnapshot()) {
		switch subject.AuthorizeTool(name).Rule() {
		case toolgroups.NotGranted:
			r.byGroup.add(name)
		case toolgroups.WrongState:
			r.byState.add(name)
		}
	}
}

// subject returns the agent's current permissions.
func (a *actor) subject() *gate.Subject { return a.rt.gate.Subject(identity.ByAgent(a.agent.ID)) }

// writeRequest writes the record of the current request. The request id has the
// number of the turn's last answer, so ids are unique across restarts.
func (a *actor) writeRequest(ended time.Time, code errcode.Code) {
	r := a.turnLog
	task, _ := a.rt.org.TaskByID(a.task)
	attrs := []slog.Attr{
		slog.String("request_id", fmt.Sprintf("%s/%s/%d", a.task, a.agent.ID, a.state.answers)),
		slog.String("task", string(a.task)), slog.String("agent", string(a.agent.ID)), slog.String("role", logName(a.role)),
		slog.String("caller", callerName(task)),
	}
	attrs = append(attrs, listGroups(cmp.Or(task.Requested, &task.Groups.Set)).attrs("requested_groups")...)
	attrs = append(attrs, listGroups(&task.Groups.Set).attrs("granted_groups")...)
	attrs = append(attrs, slog.String("initial_state", r.state))
	attrs = append(attrs, r.transitions.attrs("state_transitions")...)
	attrs = append(attrs, r.tools.attrs("available_tools")...)
	attrs = append(attrs, r.byGroup.attrs("filtered_by_group")...)
	attrs = append(attrs, r.byState.attrs("filtered_by_state")...)
	attrs = append(attrs, r.denied.attrs("denied")...)
	attrs = append(attrs, slog.String("execution_time", ended.Sub(r.began).String()))
	if code != "" {
		attrs = append(attrs, slog.String("code", string(code)))
	}
	a.rt.log.LogAttrs(a.rt.uncancelled, slog.LevelInfo, "agent request", attrs...)
}

// callerName returns the user that started a task, or the kind of another principal.
func callerName(task org.Task) string {
	if caller, external := task.ExternalCaller(); external {
		return logName(string(caller.User))
	}
	return logName(task.Caller)
}

// listGroups lists the names of a set for the log.
func listGroups(set *toolgroups.GroupSet) (groups countedList[string]) {
	for _, name := range set.Names() {
		groups.add(logName(name))
	}
	return groups
}

// logName returns a name for the log: shortened, and without characters that control a
// terminal.
func logName(name string) string { return textutil.Sanitize(textutil.Truncate(name, maxName)) }

// countedList holds the first values added and counts all.
type countedList[T any] struct {
	first []T
	count int
}

func (l *countedList[T]) add(v T) {
	if l.count++; len(l.first) < maxListed {
		l.first = append(l.first, v)
	}
}

// attrs returns the list as an attribute, and the number of omitted values as
// another.
func (l countedList[T]) attrs(name string) []slog.Attr {
	if l.first == nil {
		l.first = []T{} // logs [] instead of null
	}
	attrs := []slog.Attr{slog.Any(name, l.first)}
	if more := l.count - len(l.first); more > 0 {
		attrs = append(attrs, slog.Int(name+"_more", more))
	}
	return attrs
}

// toolNameCache caches the sorted names of all tools of the last snapshot.
type toolNameCache struct{ latest atomic.Pointer[snapshotTools] }

// snapshotTools are the tool names of one snapshot.
type snapshotTools struct {
	snapshot *toolgroups.Snapshot
	names    []string
}

// namesOf returns the names of all tools of a snapshot.
func (c *toolNameCache) namesOf(snapshot *toolgroups.Snapshot) []string {
	if known := c.latest.Load(); known != nil && known.snapshot == snapshot {
		return known.names
	}
	known := &snapshotTools{snapshot: snapshot}
	for _, h := range snapshot.ListTools() {
		known.names = append(known.names, h.Definition.Name)
	}
	c.latest.Store(known)
	return known.names
}

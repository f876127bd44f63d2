package runtime

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/toolgroups"
)

// The request log of seed 000 §8.2. A request is a turn of an agent: it begins
// with the mail the agent takes and ends with the answer that ends the turn or
// waits, or with its failure. It is gathered from what the turn commits, so
// that every working pattern is logged the same way, and written as one record
// "agent request" of level Info. Where that level is off nothing is gathered.

// What bounds a record.
const (
	maxListed = 100 // of each list; what is left out is counted
	maxName   = 128 // bytes of a name that somebody made up
)

// turnRecord is a turn that has not ended.
type turnRecord struct {
	began       time.Time
	opened      bool // what follows up to byState is known
	state       string
	tools       countedList[string] // seen with the first answer
	byGroup     countedList[string]
	byState     countedList[string]
	transitions countedList[transition]
	denied      countedList[denial]
}

// transition is a change of an agent's workflow state, as the log has it.
type transition struct {
	Tool      string    `json:"tool"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Timestamp time.Time `json:"timestamp"`
}

// denial is a call that was denied, as the log has it.
type denial struct {
	Tool string       `json:"tool"`
	Code errcode.Code `json:"code"`
}

// logRequest gathers what the agent has committed, and writes the record of a
// request that this ends. Mail that was left unread begins the next at once.
func (a *actor) logRequest(events []journal.Event) {
	if !a.rt.log.Enabled(a.rt.uncancelled, slog.LevelInfo) {
		return
	}
	for _, e := range events {
		if a.current == nil {
			a.current = &turnRecord{began: e.At}
		}
		ends, code := a.current.note(a, e)
		if !ends {
			continue
		}
		a.writeRequest(e.At, code)
		a.current = nil
		if a.state.unseen {
			a.current = &turnRecord{began: e.At}
		}
	}
}

// note gathers what one event says, and says whether it ends the request, and
// with which code if that is a failure.
func (r *turnRecord) note(a *actor, e journal.Event) (ends bool, code errcode.Code) {
	switch b := e.Body.(type) {
	case journal.ModelAnswered:
		r.open(a, b.Answer.State, a.state.tools)
		return b.Answer.Finish == model.FinishEnd || b.Answer.Finish == model.FinishWait, ""
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			r.denied.add(denial{short(b.Tool, maxName), b.Code})
		}
	case journal.StateTransition:
		r.transitions.add(transition{b.Tool, stateName(b.From), stateName(b.To), e.At})
	case journal.Failed: // perhaps before any answer
		seat := a.seat()
		r.open(a, seat.State, seat.ToolNames())
		return true, b.Code
	}
	return false, ""
}

// open notes, once, what the agent may call in this request, and why it may
// not call the rest. A tool that its groups do not let through is filtered by
// group, whatever the state.
func (r *turnRecord) open(a *actor, state string, tools []string) {
	if r.opened {
		return
	}
	r.opened, r.state = true, stateName(state)
	for _, name := range tools {
		r.tools.add(name)
	}
	seat := a.seat()
	for _, name := range a.rt.requests.tools(a.rt.config.Groups.Snapshot()) {
		switch seat.Authorize(name).Rule() {
		case toolgroups.NotGranted:
			r.byGroup.add(name)
		case toolgroups.WrongState:
			r.byState.add(name)
		}
	}
}

func (a *actor) seat() *gate.Subject { return a.rt.gate.Subject(identity.ByAgent(a.agent.ID)) }

// writeRequest writes the record of the current request. Its id is the place
// of its end in the agent's journal, so that a restart repeats none.
func (a *actor) writeRequest(ended time.Time, code errcode.Code) {
	r := a.current
	attrs := []slog.Attr{
		slog.String("request_id", fmt.Sprintf("%s/%s/%d", a.task, a.agent.ID, a.state.answers)),
		slog.String("task", string(a.task)), slog.String("agent", string(a.agent.ID)), slog.String("role", a.role),
	}
	attrs = append(attrs, a.rt.requestedGroups(a.task).attrs("requested_groups")...)
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

// requestedGroups lists the groups a task was narrowed to; * when it was not.
func (rt *Runtime) requestedGroups(id identity.TaskID) (groups countedList[string]) {
	task, _ := rt.org.Task(id)
	if task.Groups.Set.IsAll() {
		groups.add("*")
	}
	for _, g := range task.Groups.Set.IDs() {
		groups.add(short(string(g), maxName))
	}
	return groups
}

// stateName gives the name of a workflow state as the seed has it.
func stateName(state string) string {
	if state == "" {
		return toolgroups.Undefined
	}
	return state
}

// countedList is the first of some, and how many there were.
type countedList[T any] struct {
	first []T
	count int
}

func (l *countedList[T]) add(v T) {
	if l.count++; len(l.first) < maxListed {
		l.first = append(l.first, v)
	}
}

// attrs gives the list under a name, and beside it how many are left out.
func (l countedList[T]) attrs(name string) []slog.Attr {
	if l.first == nil {
		l.first = []T{} // [] and not null
	}
	attrs := []slog.Attr{slog.Any(name, l.first)}
	if more := l.count - len(l.first); more > 0 {
		attrs = append(attrs, slog.Int(name+"_more", more))
	}
	return attrs
}

// requestLog keeps the names of all tools, sorted, for one snapshot.
type requestLog struct{ known atomic.Pointer[toolNames] }

type toolNames struct {
	of    *toolgroups.Snapshot
	names []string
}

func (l *requestLog) tools(of *toolgroups.Snapshot) []string {
	if known := l.known.Load(); known != nil && known.of == of {
		return known.names
	}
	known := &toolNames{of: of}
	for _, h := range of.Tools() {
		known.names = append(known.names, h.Definition.Name)
	}
	l.known.Store(known)
	return known.names
}

package gateway

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// clockSlack is how far the times of events may be from the order of their numbers.
const clockSlack = time.Minute

// eventQuery selects events of the organization. The zero value of a field selects all.
type eventQuery struct {
	sender       identity.Principal // who sees the events
	task         identity.TaskID
	agent        identity.AgentID
	role         string // a name
	caller, tool string
	types        []journal.EventType
	denied       bool
	since        time.Time
	after        uint64 // the events have higher numbers
	fromStart    bool   // after or since was given
}

// parseEventQuery reads the parameters of a request that select events. Tasks and agents
// that the sender does not see are answered as unknown ones.
func (a *api) parseEventQuery(r *http.Request) (q eventQuery, err error) {
	params := r.URL.Query()
	q = eventQuery{
		sender: auth.SenderOf(r), role: params.Get("role"), caller: params.Get("caller"), tool: params.Get("tool"),
		fromStart: params.Has("after") || params.Has("since"),
	}
	if role, ok := a.org().RoleByID(identity.RoleID(q.role)); ok {
		q.role = role.Name
	}
	if q.denied, err = boolParam(r, "denied"); err != nil {
		return q, err
	}
	if q.types, err = parseEventTypes(params["type"]); err != nil {
		return q, err
	}
	if q.after, err = parseSeq(params.Get("after"), "after"); err != nil {
		return q, err
	}
	if err := a.startAtTime(r.Context(), &q, params.Get("since")); err != nil {
		return q, err
	}
	if err := a.selectTask(&q, identity.TaskID(params.Get("task"))); err != nil {
		return q, err
	}
	return q, a.selectAgent(r.Context(), &q, params.Get("agent"))
}

// parseEventTypes parses types of events. Each of the texts is a list, separated by commas.
func parseEventTypes(texts []string) (list []journal.EventType, err error) {
	known := journal.EventTypes()
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			t := journal.EventType(strings.TrimSpace(name))
			if t == "" {
				continue
			}
			if !slices.Contains(known, t) {
				return nil, errcode.New(errcode.InvalidArguments, "query parameter \"type\" has %.100q; want some of %s", t, joinTypes(known)).With("field", "type")
			}
			if !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list, nil
}

// joinTypes joins types of events for a message.
func joinTypes(list []journal.EventType) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// startAtTime makes a query begin at a time; "" does not.
func (a *api) startAtTime(ctx context.Context, q *eventQuery, since string) (err error) {
	if since == "" {
		return nil
	}
	if q.since, err = wire.ParseSince(since, time.Now()); err != nil {
		return err
	}
	first, err := a.rt.JournalStore().SeqBefore(ctx, q.since.Add(-clockSlack))
	q.after = max(q.after, first)
	return err
}

// selectTask restricts a query to a task; "" does not.
func (a *api) selectTask(q *eventQuery, id identity.TaskID) error {
	if id == "" {
		return nil
	}
	task, ok := a.org().TaskByID(id)
	if !ok || !q.seesTask(task) {
		return errcode.New(errcode.TaskNotFound, "there is no task %.200q", id)
	}
	q.task, q.after = id, max(q.after, task.FirstSeq)
	return nil
}

// selectAgent restricts a query to an agent; "" does not. The operator may name it by its
// role.
func (a *api) selectAgent(ctx context.Context, q *eventQuery, ref string) error {
	if ref == "" {
		return nil
	}
	agent, err := a.visibleAgent(ctx, q.sender, ref)
	if err != nil {
		return err
	}
	q.agent = agent.ID
	if task, ok := a.org().TaskByID(agent.Task); ok {
		q.after = max(q.after, task.FirstSeq)
	}
	return nil
}

// seesTask reports whether the sender sees the events of a task.
func (q *eventQuery) seesTask(task org.Task) bool {
	return q.sender.Kind == identity.Operator || task.StartedBy(q.sender)
}

// filter returns the filter of the events that the query selects and its sender sees.
func (a *api) filter(q eventQuery) journal.EventFilter {
	own := q.sender.String() // once: a stream asks this for every event of the organization
	return func(h journal.EventHead) bool {
		return a.seesEvent(q.sender, own, h) && q.matches(h) && (q.caller == "" || a.isOfCaller(q.caller, h))
	}
}

// seesEvent reports whether a sender sees an event. The operator sees all public events. A caller
// sees the events of its tasks and of its own calls. own is the sender as text.
func (a *api) seesEvent(sender identity.Principal, own string, h journal.EventHead) bool {
	switch sender.Kind {
	case identity.Operator:
		return !h.IsType(journal.MessageReceived{}.EventType())
	case identity.Caller:
		if id := h.Task(); id != "" {
			task, ok := a.org().TaskByID(id)
			return ok && task.StartedBy(sender) && !h.IsType(journal.MessageReceived{}.EventType())
		}
		return isCallBy(sender, own, h)
	}
	return false
}

// isCallBy reports whether the caller of an event is the caller p, which is own as text. The name
// of a role has no "@" in it, but the name of a user may have one.
func isCallBy(p identity.Principal, own string, h journal.EventHead) bool {
	at := strings.LastIndexByte(own, '@')
	return at >= 0 && own[at+1:] == string(p.Role) && h.IsCaller(own)
}

// matches reports whether an event has what the query asks for, apart from its caller.
func (q eventQuery) matches(h journal.EventHead) bool {
	switch {
	case q.task != "" && h.Task() != q.task,
		q.agent != "" && h.Agent() != q.agent && h.Stream() != q.agent,
		q.role != "" && h.Role() != q.role,
		q.types != nil && !slices.Contains(q.types, h.Type()),
		q.tool != "" && h.Tool() != q.tool,
		q.denied && !h.IsDenied(),
		!q.since.IsZero() && h.At().Before(q.since):
		return false
	}
	return true
}

// isOfCaller reports whether an event is of a call of a caller, or of a task that it has
// started. The caller is given as it is recorded, or as the name of the user.
func (a *api) isOfCaller(caller string, h journal.EventHead) bool {
	recorded := h.Caller()
	if id := h.Task(); id != "" {
		task, _ := a.org().TaskByID(id)
		recorded = task.Caller
	}
	if recorded == "" || recorded == caller {
		return recorded != ""
	}
	p, external := identity.ParseCaller(recorded)
	return external && string(p.User) == caller
}

// parseBefore returns the number before which a page begins, given its cursor.
func parseBefore(cursor string) (uint64, error) {
	if cursor == "" {
		return math.MaxUint64, nil
	}
	n, err := parseSeq(textutil.Truncate(cursor, 32), "cursor")
	if err != nil || n == 0 {
		return 0, errInvalidCursor()
	}
	return n, nil
}

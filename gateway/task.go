package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxListedText is how many bytes of a task's text a list has. A page of whole texts could
// take a gigabyte.
const maxListedText = 4 << 10

// listTasks lists tasks, newest first, with agents=1 each with its agents. A caller sees
// those that it has started.
func (a *api) listTasks(r *http.Request) (any, error) {
	status, err := enumParam(r, "status", taskStatuses...)
	if err != nil {
		return nil, err
	}
	since, err := sinceParam(r)
	if err != nil {
		return nil, err
	}
	withAgents, err := boolParam(r, "agents")
	if err != nil {
		return nil, err
	}
	list, next, err := a.pageOfTasks(r, taskFilter{status: status, since: since, caller: auth.SenderOf(r)})
	if err != nil {
		return nil, err
	}
	var agents map[identity.TaskID][]org.Agent
	if withAgents {
		if agents, err = a.rt.AgentsOfTasks(r.Context(), list); err != nil {
			return nil, err
		}
	}
	page := wire.Page[wire.Task]{Items: []wire.Task{}, Next: next}
	for _, t := range list {
		item := a.taskOf(a.recordedTask(r.Context(), t), auth.SenderOf(r))
		item.Text, item.Input, item.Result = textutil.Truncate(item.Text, maxListedText), nil, nil
		for _, agent := range agents[t.ID] {
			item.Agents = append(item.Agents, a.wireAgent(agent))
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// pageOfTasks returns the page of tasks that a request selects, and the cursor of the
// next page. The cursor is the last task of the page.
func (a *api) pageOfTasks(r *http.Request, filter taskFilter) (list []org.Task, next string, err error) {
	p, err := parsePaging(r)
	if err != nil {
		return nil, "", err
	}
	var before *org.Task
	if p.after != "" {
		at, id, _ := strings.Cut(p.after, " ")
		created, err := time.Parse(creationLayout, at)
		if err != nil {
			return nil, "", errInvalidCursor()
		}
		before = &org.Task{ID: identity.TaskID(id), CreatedAt: created}
	}
	list = a.newestTasks(before, filter, p.limit+1)
	if len(list) > p.limit {
		last := list[p.limit-1]
		list, next = list[:p.limit], encodeCursor(creationKey(last.CreatedAt, string(last.ID)))
	}
	return list, next, nil
}

// taskFilter selects tasks. Its zero value selects none.
type taskFilter struct {
	status org.TaskStatus     // their status now; "" for any
	since  time.Time          // when they started, at the earliest
	caller identity.Principal // the operator for all, else the caller that started them
}

// newestTasks returns up to limit tasks that are older than before and pass the filter,
// newest first.
func (a *api) newestTasks(before *org.Task, filter taskFilter, limit int) (list []org.Task) {
	recorded := recordedStatuses(filter.status)
	for len(list) < limit {
		part := a.org().NewestTasks(before, limit, recorded...)
		for _, t := range part {
			if t.CreatedAt.Before(filter.since) {
				return list
			}
			if filter.selects(&t, a.rt) && len(list) < limit {
				list = append(list, t)
			}
		}
		if len(part) < limit {
			break
		}
		before = &part[len(part)-1]
	}
	return list
}

// recordedStatuses returns the statuses that the records of tasks with a status may have; none for any.
func recordedStatuses(status org.TaskStatus) []org.TaskStatus {
	switch status {
	case "":
		return nil
	case org.Waiting, org.Interrupted:
		return []org.TaskStatus{org.Running}
	case org.Paused: // by a person, or by an error
		return []org.TaskStatus{org.Running, org.Paused}
	}
	return []org.TaskStatus{status}
}

// selects reports whether a task has the caller and the status of the filter.
func (f taskFilter) selects(t *org.Task, rt *runtime.Runtime) bool {
	if f.caller.Kind != identity.Operator && !t.StartedBy(f.caller) {
		return false
	}
	return f.status == "" || f.status == rt.TaskStatus(*t)
}

// recordedTask returns the record of a task, or what is in memory if it cannot be read.
func (a *api) recordedTask(ctx context.Context, t org.Task) org.Task {
	stored, err := a.rt.TaskRecord(ctx, t.ID)
	if err != nil {
		a.log.Error("task record unreadable; showing it without text", "task", t.ID, "error", err)
		return t
	}
	return stored
}

// showTask answers with one task, its result, its agents and what they have used. With
// wait=DURATION it first waits for the end of the task.
func (a *api) showTask(r *http.Request) (any, error) {
	t, err := a.ownTask(r)
	if err != nil {
		return nil, err
	}
	if err := a.waitForTask(r, t.ID); err != nil {
		return nil, err
	}
	return a.taskReport(r, t.ID)
}

// taskSummary returns a task with its result and its usage.
func (a *api) taskSummary(r *http.Request, id identity.TaskID) (wire.Task, error) {
	t, err := a.rt.TaskRecord(r.Context(), id)
	if err != nil {
		return wire.Task{}, err
	}
	out := a.taskOf(t, auth.SenderOf(r))
	out.Limits = a.limitsOf(t)
	out.Usage, err = a.rt.TaskUsage(r.Context(), id)
	return out, err
}

// taskReport returns a task with its result, its agents and what they have used.
func (a *api) taskReport(r *http.Request, id identity.TaskID) (wire.Task, error) {
	ctx := r.Context()
	t, err := a.rt.TaskRecord(ctx, id)
	if err != nil {
		return wire.Task{}, err
	}
	tally, err := a.rt.TaskTally(ctx, id)
	if err != nil {
		return wire.Task{}, err
	}
	agents, err := a.rt.AgentsOfTasks(ctx, []org.Task{t})
	if err != nil {
		return wire.Task{}, err
	}
	out := a.taskOf(t, auth.SenderOf(r))
	out.Elapsed, out.Calls, out.Usage = elapsed(t).Milliseconds(), wire.CallCounts{Total: tally.Calls, Denied: tally.Denied}, tally.Usage
	for _, m := range tally.Models {
		out.ByModel = append(out.ByModel, wire.ModelUsage{Model: m.Name, Usage: m.Usage})
	}
	out.Budgets = budgetsOf(tally.Budgets)
	for _, agent := range agents[t.ID] {
		item, one := a.wireAgent(agent), tally.Agents[agent.ID]
		item.Calls, item.Usage = wire.CallCounts{Total: one.Calls, Denied: one.Denied}, one.Usage
		out.Agents = append(out.Agents, item)
	}
	out.Suspended, out.Limits = a.suspendedRoles(t, agents[t.ID]), a.limitsOf(t)
	return out, nil
}

// budgetsOf converts what was used of budgets.
func budgetsOf(list []runtime.BudgetTally) (out []wire.BudgetUse) {
	for _, b := range list {
		unit := 1.0
		if b.Quantity == "cost" {
			unit = 1e9
		}
		out = append(out, wire.BudgetUse{
			Agent: b.Agent, Name: b.Name, Quantity: b.Quantity, Warned: b.Warned,
			Limit: float64(b.Limit) / unit, Used: float64(b.Used) / unit, Reserved: float64(b.Reserved) / unit,
		})
	}
	return out
}

// limitsOf returns the limits of a task. If the task has ended, it returns the limits of a retry.
func (a *api) limitsOf(t org.Task) *wire.TaskLimits {
	l := a.rt.LimitsOf(t.ID)
	return &wire.TaskLimits{
		Tokens: l.Budget.Tokens, Cost: float64(l.Budget.Cost) / 1e9, Calls: l.Budget.Calls,
		Requests: l.Requests, Turns: l.Turns, Agents: l.Agents, Hires: l.Hires, Rounds: l.Rounds,
	}
}

// suspendedRoles lists the names of the suspended roles of a task, sorted. It looks at the roles of
// its caller and of its agents. A task that has ended has none.
func (a *api) suspendedRoles(t org.Task, agents []org.Agent) (names []string) {
	if t.Status.Ended() {
		return nil
	}
	add := func(id identity.RoleID) {
		if role, ok := a.org().RoleByID(id); ok && role.Suspended() && !slices.Contains(names, role.Name) {
			names = append(names, role.Name)
		}
	}
	add(t.CallerRole)
	for _, agent := range agents {
		add(agent.Role)
	}
	slices.Sort(names)
	return names
}

// elapsed returns the time from the start of a task to its end, or until now.
func elapsed(t org.Task) time.Duration {
	end := t.EndedAt
	if end.IsZero() {
		end = time.Now()
	}
	return max(0, end.Sub(t.CreatedAt))
}

// cancelTask cancels a task and answers with it. A task that has ended is not
// changed.
func (a *api) cancelTask(r *http.Request) (any, error) {
	t, err := a.ownTask(r)
	if err == nil {
		err = a.rt.CancelTask(r.Context(), t.ID, reasonParam(r))
	}
	if err != nil {
		return nil, err
	}
	return a.taskSummary(r, t.ID)
}

// taskOf converts a task's record for its reader. A caller is not told of the role in its
// role's tasks.as.
func (a *api) taskOf(t org.Task, reader identity.Principal) wire.Task {
	out := wire.Task{
		ID: t.ID, Text: t.Text, Status: a.rt.TaskStatus(t), Caller: t.Caller, Agent: t.Top, Groups: t.Groups.Set, State: toolgroups.StateName(t.State),
		Input: t.Input, Schema: t.Schema, Workspace: shownWorkspace(&t), ReadOnly: t.ReadOnly, Result: t.Result, Incomplete: t.Incomplete, Error: t.Error,
		Requested: requestedGroups(t), Open: t.Open, Driven: t.Driven, Budget: wire.BudgetOf(t.Budget), Extra: wire.BudgetOf(t.Extra),
		CreatedAt: t.CreatedAt, EndedAt: t.EndedAt,
	}
	if out.Status == org.Paused {
		out.Reason = a.rt.PauseOf(t.ID)
	}
	if out.Deadline = t.Deadline; !out.Status.Ended() {
		out.Deadline, _ = a.org().DeadlineOf(t.ID)
	}
	if t.As != "" && reader.Kind == identity.Operator {
		out.As, out.AsID = a.roleName(t.As), t.As
	}
	return out
}

// shownWorkspace returns the name of a task's workspace, or the path that the operator named.
// Callers never see a path of the host.
func shownWorkspace(t *org.Task) string {
	if _, external := t.ExternalCaller(); external || t.WorkspaceName != "" {
		return t.WorkspaceName
	}
	return t.Workspace
}

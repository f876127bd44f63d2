package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// listTasks lists tasks, newest first, with agents=1 each with its agents.
func (a *api) listTasks(r *http.Request) (any, error) {
	status, err := enumParam(r, "status", org.Running, org.Waiting, org.Interrupted, org.Done, org.Failed, org.Cancelled)
	if err != nil {
		return nil, err
	}
	withAgents, err := boolParam(r, "agents")
	if err != nil {
		return nil, err
	}
	list, next, err := a.pageOfTasks(r, status)
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
		item := a.taskOf(a.storedTask(r.Context(), t))
		item.Result = nil
		for _, agent := range agents[t.ID] {
			item.Agents = append(item.Agents, a.agent(agent))
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// pageOfTasks returns the page of tasks that a request selects, and the cursor of the
// next page. The cursor is the last task of the page.
func (a *api) pageOfTasks(r *http.Request, status org.TaskStatus) (list []org.Task, next string, err error) {
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
	list = a.newestTasks(before, status, p.limit+1)
	if len(list) > p.limit {
		last := list[p.limit-1]
		list, next = list[:p.limit], encodeCursor(creationKey(last.CreatedAt, string(last.ID)))
	}
	return list, next, nil
}

// newestTasks returns up to limit tasks that are older than before and have a status now,
// newest first.
func (a *api) newestTasks(before *org.Task, status org.TaskStatus, limit int) []org.Task {
	if status == "" || status.Ended() {
		return a.org().NewestTasks(before, status, limit)
	}
	var list []org.Task
	for len(list) < limit {
		part := a.org().NewestTasks(before, org.Running, limit)
		for _, t := range part {
			if a.rt.TaskStatus(t) == status {
				list = append(list, t)
			}
		}
		if len(part) < limit {
			break
		}
		before = &part[len(part)-1]
	}
	return list[:min(limit, len(list))]
}

// storedTask returns the record of a task, or what is in memory if it cannot be read.
func (a *api) storedTask(ctx context.Context, t org.Task) org.Task {
	stored, err := a.rt.TaskRecord(ctx, t.ID)
	if err != nil {
		a.log.Error("task record unreadable; showing it without text", "task", t.ID, "error", err)
		return t
	}
	return stored
}

// showTask answers with one task, its result and its usage.
func (a *api) showTask(r *http.Request) (any, error) {
	t, err := a.rt.TaskRecord(r.Context(), identity.TaskID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	out := a.taskOf(t)
	out.Usage, err = a.rt.TaskUsage(r.Context(), t.ID)
	return out, err
}

// cancelTask cancels a task and answers with it. A task that has ended is not
// changed.
func (a *api) cancelTask(r *http.Request) (any, error) {
	if err := a.rt.CancelTask(r.Context(), identity.TaskID(r.PathValue("id")), reasonParam(r)); err != nil {
		return nil, err
	}
	return a.showTask(r)
}

// taskOf converts a task's record for the API.
func (a *api) taskOf(t org.Task) wire.Task {
	return wire.Task{
		ID: t.ID, Text: t.Text, Status: a.rt.TaskStatus(t), Caller: t.Caller, Agent: t.Top, Groups: t.Groups.Set, State: toolgroups.StateName(t.State),
		Workspace: t.Workspace, ReadOnly: t.ReadOnly, Result: t.Result, Error: t.Error, CreatedAt: t.CreatedAt, EndedAt: t.EndedAt,
	}
}

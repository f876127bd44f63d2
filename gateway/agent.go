package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxDelayMS is the longest delay of a message: a year, in milliseconds.
const maxDelayMS = 365 * 24 * 60 * 60 * 1000

// listAgents lists agents by creation time, including terminated ones.
func (a *api) listAgents(r *http.Request) (any, error) {
	status, err := enumParam(r, "status", agentStatuses...)
	if err != nil {
		return nil, err
	}
	if ref := r.URL.Query().Get("parent"); ref != "" {
		return a.listChildren(r, ref, status)
	}
	list, err := a.selectAgents(r.Context(), identity.TaskID(r.URL.Query().Get("task")), status)
	if err != nil {
		return nil, err
	}
	return paginate(r, list, agentKey, a.wireAgent)
}

// listChildren lists the agents that an agent has spawned. Each has the count of agents that it has
// spawned.
func (a *api) listChildren(r *http.Request, ref string, status org.AgentStatus) (any, error) {
	parent, err := a.findAgent(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	if task := r.URL.Query().Get("task"); task != "" && task != string(parent.Task) {
		return wire.Page[wire.Agent]{Items: []wire.Agent{}}, nil
	}
	task, _ := a.org().TaskByID(parent.Task)
	task.ID = parent.Task
	byTask, err := a.rt.AgentsOfTasks(r.Context(), []org.Task{task})
	if err != nil {
		return nil, err
	}
	counts := map[identity.AgentID]int{}
	for _, agent := range byTask[parent.Task] {
		counts[agent.Parent]++
	}
	list := slices.DeleteFunc(byTask[parent.Task], func(agent org.Agent) bool {
		return agent.Parent != parent.ID || status != "" && a.rt.AgentStatus(agent) != status
	})
	return paginate(r, list, agentKey, func(agent org.Agent) wire.Agent {
		out := a.wireAgent(agent)
		out.Children = counts[agent.ID]
		return out
	})
}

// selectAgents returns the agents of a task with a status, sorted by creation
// time. An empty task or status selects all.
func (a *api) selectAgents(ctx context.Context, task identity.TaskID, status org.AgentStatus) ([]org.Agent, error) {
	list := a.org().ListAgents(task)
	if status == "" || status == org.AgentTerminated {
		for agent, err := range a.rt.EndedAgents(ctx, task) {
			if err != nil && ctx.Err() != nil {
				return nil, err
			}
			if err != nil { // list the others
				a.log.Error("agent skipped", "error", err)
				continue
			}
			list = append(list, agent)
		}
		slices.SortStableFunc(list, func(x, y org.Agent) int { return strings.Compare(agentKey(x), agentKey(y)) })
		// an agent that ended between the two reads is in both lists
		list = slices.CompactFunc(list, func(x, y org.Agent) bool { return x.ID == y.ID })
	}
	if status == "" {
		return list, nil
	}
	return slices.DeleteFunc(list, func(agent org.Agent) bool { return a.rt.AgentStatus(agent) != status }), nil
}

// agentKey is the sort key and page cursor of an agent.
func agentKey(a org.Agent) string { return creationKey(a.CreatedAt, string(a.ID)) }

// wireAgent returns an agent in the shape of the API.
func (a *api) wireAgent(agent org.Agent) wire.Agent {
	return wire.Agent{
		ID: agent.ID, Name: agent.Name, Role: a.roleName(agent.Role), RoleID: agent.Role, Parent: agent.Parent, Task: agent.Task,
		Status: a.rt.AgentStatus(agent), State: toolgroups.StateName(agent.State), CreatedAt: agent.CreatedAt, Reason: agent.Reason,
	}
}

// showAgent answers with one agent, including a terminated one.
func (a *api) showAgent(r *http.Request) (any, error) {
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	detail := wire.AgentDetail{Agent: a.wireAgent(agent), Brief: agent.Brief, Tools: []string{}}
	for _, d := range a.rt.Gate().Subject(identity.ByAgent(agent.ID)).VisibleTools() {
		detail.Tools = append(detail.Tools, d.Name)
	}
	return detail, nil
}

// formatFunctions asks for tools in the shape of model APIs.
const formatFunctions = "functions"

// agentTools lists the tools that an agent may call now, sorted by name. A caller sees the agents
// of its tasks. Of their tools it sees the tools that its role has.
func (a *api) agentTools(r *http.Request) (any, error) {
	format, err := enumParam(r, "format", formatFunctions)
	if err != nil {
		return nil, err
	}
	agent, err := a.visibleAgent(r.Context(), auth.SenderOf(r), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	v := a.visibilityFor(r)
	var list []*toolgroups.ToolHandle
	for _, name := range a.rt.Gate().Subject(identity.ByAgent(agent.ID)).ToolNames() {
		if h, ok := v.tool(name); ok {
			list = append(list, h)
		}
	}
	byName := func(h *toolgroups.ToolHandle) string { return h.Definition.Name }
	if format == formatFunctions {
		return paginate(r, sortTools(list), byName, func(h *toolgroups.ToolHandle) tool.FunctionTool { return h.Definition.FunctionTool() })
	}
	return paginate(r, sortTools(list), byName, v.wireTool)
}

// findAgent returns the record of an agent by its id, by its name in the task or by its role's name.
func (a *api) findAgent(ctx context.Context, ref string) (org.Agent, error) {
	agent, err := a.rt.AgentRecord(ctx, identity.AgentID(ref))
	if errcode.CodeOf(err) != errcode.AgentNotFound {
		return agent, err
	}
	id, err := a.findAgentByName(ctx, ref)
	if err != nil {
		return agent, err
	}
	return a.rt.AgentRecord(ctx, id)
}

// visibleAgent returns the record of an agent. A caller sees the agents of its tasks, by
// their ids; others do not exist for it.
func (a *api) visibleAgent(ctx context.Context, sender identity.Principal, ref string) (org.Agent, error) {
	if sender.Kind == identity.Operator {
		return a.findAgent(ctx, ref)
	}
	agent, err := a.rt.AgentRecord(ctx, identity.AgentID(ref))
	if err == nil {
		if task, ok := a.org().TaskByID(agent.Task); ok && task.StartedBy(sender) {
			return agent, nil
		}
	}
	if err != nil && errcode.CodeOf(err) != errcode.AgentNotFound {
		return org.Agent{}, err
	}
	return org.Agent{}, errcode.New(errcode.AgentNotFound, "there is no agent %.200q", ref)
}

// isNamed reports whether an agent has a name in its task, or its role has the name.
func (a *api) isNamed(agent org.Agent, name string) bool {
	return agent.Name == name || a.roleName(agent.Role) == name
}

// findAgentByName returns the only agent that has the name, or whose role has it. Agents of
// running tasks are preferred over others that are not terminated, and these over terminated
// ones.
//
// Errors: AgentNotFound; Conflict if there are several.
func (a *api) findAgentByName(ctx context.Context, role string) (identity.AgentID, error) {
	var running, all []identity.AgentID
	for _, agent := range a.org().ListAgents("") {
		if !a.isNamed(agent, role) {
			continue
		}
		all = append(all, agent.ID)
		if task, ok := a.org().TaskByID(agent.Task); ok && task.Status == org.Running {
			running = append(running, agent.ID)
		}
	}
	if len(running) > 0 {
		all = running
	}
	if len(all) == 0 {
		var err error
		if all, err = a.terminatedAgentsByName(ctx, role); err != nil {
			return "", err
		}
	}
	switch len(all) {
	case 0:
		text := fmt.Sprintf("there is no agent %q, and no agent of a role with this name", role)
		return "", errcode.New(errcode.AgentNotFound, "%s", withSuggestion(text, role, a.agentRoles()))
	case 1:
		return all[0], nil
	}
	return "", errSeveralAgents(role, all)
}

// maxNamedAgents is how many agents the error for an ambiguous name lists.
const maxNamedAgents = 20

// errSeveralAgents returns the error for a name that stands for several agents. They are sorted,
// the oldest first.
func errSeveralAgents(role string, agents []identity.AgentID) error {
	newest := slices.Clone(agents)
	slices.Reverse(newest)
	named := newest[:min(len(newest), maxNamedAgents)]
	var ids []string
	for _, id := range named {
		ids = append(ids, string(id))
	}
	if more := len(agents) - len(named); more > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", more))
	}
	return errcode.New(errcode.Conflict, "%d agents have the name or role %q; name one by its id, newest first: %s", len(agents), role, strings.Join(ids, ", ")).With("agents", named)
}

// terminatedAgentsByName lists the terminated agents that have the name, or whose role has it. Damaged records are logged and
// left out.
func (a *api) terminatedAgentsByName(ctx context.Context, role string) (list []identity.AgentID, err error) {
	for agent, err := range a.rt.EndedAgents(ctx, "") {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			a.log.Error("agent skipped", "error", err)
		case a.isNamed(agent, role):
			list = append(list, agent.ID)
		}
	}
	return list, nil
}

// agentJournal lists the events of an agent's stream. The cursor is the number
// of the last event of a page.
func (a *api) agentJournal(r *http.Request) (any, error) {
	p, err := parsePaging(r)
	if err != nil {
		return nil, err
	}
	after, err := parseSeq(p.after, "cursor")
	if err != nil {
		return nil, err
	}
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	page := wire.Page[journal.Event]{Items: []journal.Event{}}
	for e, err := range a.rt.JournalStore().Read(r.Context(), agent.ID, after) {
		if err != nil {
			return nil, err
		}
		if len(page.Items) == p.limit {
			page.Next = encodeCursor(formatSeq(page.Items[p.limit-1].Seq))
			break
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}

// sendMessage sends a message to an agent on behalf of the operator.
func (a *api) sendMessage(r *http.Request) (any, error) {
	q, err := decode[wire.MessageRequest](r)
	if err != nil {
		return nil, err
	}
	payload, err := messagePayload(q)
	if err != nil {
		return nil, err
	}
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	sent, err := a.rt.SendMessage(r.Context(), operatorCall(r), string(agent.ID), payload, time.Duration(q.DelayMS)*time.Millisecond)
	return statusAnswer{code: http.StatusAccepted, body: wire.SentMessage(sent)}, err
}

// messagePayload validates a message and returns its payload.
func messagePayload(q wire.MessageRequest) (json.RawMessage, error) {
	switch {
	case q.DelayMS < 0 || q.DelayMS > maxDelayMS:
		return nil, errcode.New(errcode.InvalidArguments, "field \"delayMs\" is %d; want 0 to %d, a year", q.DelayMS, int64(maxDelayMS)).With("field", "delayMs")
	case q.Payload != nil && q.Text != "":
		return nil, errcode.New(errcode.InvalidArguments, "the body has both payload and text; set only one")
	case q.Payload != nil:
		return q.Payload, nil
	case q.Text != "":
		return json.Marshal(map[string]string{"text": q.Text})
	}
	return nil, errcode.New(errcode.InvalidArguments, "the body has neither payload nor text; set one")
}

// abortTurn aborts an agent's current turn. A caller may abort the agents of its tasks.
func (a *api) abortTurn(r *http.Request) (any, error) {
	agent, err := a.visibleAgent(r.Context(), auth.SenderOf(r), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := a.rt.AbortTurn(agent.ID); err != nil {
		return nil, err
	}
	return statusAnswer{code: http.StatusAccepted, body: a.wireAgent(agent)}, nil
}

// terminateAgent terminates an agent and all its descendants, and answers with
// its record.
func (a *api) terminateAgent(r *http.Request) (any, error) {
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := a.rt.TerminateAgent(r.Context(), operatorCall(r), agent.ID, reasonParam(r)); err != nil {
		return nil, err
	}
	agent, err = a.rt.AgentRecord(r.Context(), agent.ID)
	return a.wireAgent(agent), err
}

// reasonParam returns the query parameter "reason", or a default.
func reasonParam(r *http.Request) string {
	if reason := r.URL.Query().Get("reason"); reason != "" {
		return reason
	}
	return "by the operator"
}

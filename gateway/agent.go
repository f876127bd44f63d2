package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// What an agent is doing.
const (
	Working    = "working"    // it is at work in this process
	Idle       = "idle"       // it waits for a message, or for its task to be resumed
	Terminated = "terminated" // it is no more
)

// Agent is an agent as lists show it.
type Agent struct {
	ID        identity.AgentID `json:"id"`
	Role      string           `json:"role"` // the role's name
	RoleID    identity.RoleID  `json:"roleId"`
	Parent    identity.AgentID `json:"parent,omitempty"`
	Task      identity.TaskID  `json:"task"`
	Status    string           `json:"status"`          // Working, Idle, Terminated
	State     string           `json:"state,omitempty"` // workflow state
	CreatedAt time.Time        `json:"createdAt"`
	Reason    string           `json:"reason,omitempty"` // why it was terminated
}

// AgentDetail is one agent with what it is for and what it may call now.
type AgentDetail struct {
	Agent
	Brief org.TaskBrief `json:"taskBrief,omitzero"`
	Tools []string      `json:"tools"` // as the agent sees them, in order
}

// MessageRequest is a message to an agent: Payload, or Text for {"text": …}.
type MessageRequest struct {
	Payload json.RawMessage `json:"payload,omitempty"`
	Text    string          `json:"text,omitempty"`
	DelayMS int64           `json:"delayMs,omitempty"`
}

// maxDelay is how long a message may be held back: a year, in milliseconds.
const maxDelay = 365 * 24 * 60 * 60 * 1000

// listAgents lists agents by age, those that are terminated too.
func (a *api) listAgents(r *http.Request) (any, error) {
	want, err := among(r, "status", Working, Idle, Terminated)
	if err != nil {
		return nil, err
	}
	list, err := a.agents(r.Context(), identity.TaskID(r.URL.Query().Get("task")), want)
	if err != nil {
		return nil, err
	}
	return paginate(r, list, agentKey, a.agent)
}

// agents gathers agents of a task, or of all for "", in a status, or in any
// for "".
func (a *api) agents(ctx context.Context, task identity.TaskID, want string) ([]org.Agent, error) {
	list := a.org().Agents(task)
	if want == "" || want == Terminated {
		for agent, err := range a.rt.Ended(ctx, task) {
			if err != nil && ctx.Err() != nil {
				return nil, err
			}
			if err != nil { // the others are still worth showing
				a.log.Error("agent left out", "error", err)
				continue
			}
			list = append(list, agent)
		}
		slices.SortStableFunc(list, func(x, y org.Agent) int { return strings.Compare(agentKey(x), agentKey(y)) })
		// one that ended between the two looks is in both
		list = slices.CompactFunc(list, func(x, y org.Agent) bool { return x.ID == y.ID })
	}
	if want == "" {
		return list, nil
	}
	return slices.DeleteFunc(list, func(agent org.Agent) bool { return a.doing(agent) != want }), nil
}

func agentKey(a org.Agent) string { return byCreation(a.CreatedAt, string(a.ID)) }

// doing says what an agent is doing.
func (a *api) doing(agent org.Agent) string {
	switch {
	case agent.Status != org.Active:
		return Terminated
	case a.rt.Busy(agent.ID):
		return Working
	}
	return Idle
}

// agent shows an agent.
func (a *api) agent(agent org.Agent) Agent {
	return Agent{
		ID: agent.ID, Role: a.roleName(agent.Role), RoleID: agent.Role, Parent: agent.Parent, Task: agent.Task,
		Status: a.doing(agent), State: agent.State, CreatedAt: agent.CreatedAt, Reason: agent.Reason,
	}
}

func (a *api) showAgent(r *http.Request) (any, error) {
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	detail := AgentDetail{Agent: a.agent(agent), Brief: agent.Brief, Tools: []string{}}
	for _, d := range a.rt.Gate().Subject(identity.ByAgent(agent.ID)).Visible() {
		detail.Tools = append(detail.Tools, d.Name)
	}
	return detail, nil
}

// findAgent gives the record of an agent by its id or by its role's name.
func (a *api) findAgent(ctx context.Context, ref string) (org.Agent, error) {
	agent, err := a.rt.AgentRecord(ctx, identity.AgentID(ref))
	if errcode.Of(err) != errcode.AgentNotFound {
		return agent, err
	}
	id, err := a.agentNamed(ref)
	if err != nil {
		return agent, err
	}
	return a.rt.AgentRecord(ctx, id)
}

// agentNamed finds the one agent of a role: among those whose task runs, or
// else among all that are not terminated.
//
// Errors: AgentNotFound; Conflict when there are several.
func (a *api) agentNamed(role string) (identity.AgentID, error) {
	var running, all []identity.AgentID
	for _, agent := range a.org().Agents("") {
		if a.roleName(agent.Role) != role {
			continue
		}
		all = append(all, agent.ID)
		if task, ok := a.org().Task(agent.Task); ok && task.Status == org.Running {
			running = append(running, agent.ID)
		}
	}
	if len(running) > 0 {
		all = running
	}
	switch len(all) {
	case 0:
		return "", errcode.New(errcode.AgentNotFound, "there is no agent %q, and no agent of a role of this name", role)
	case 1:
		return all[0], nil
	}
	return "", errcode.New(errcode.Conflict, "%d agents have the role %q; name one by its id", len(all), role).With("agents", all[:min(len(all), 20)])
}

// agentJournal lists the events of an agent's stream; the cursor is the last
// one's number.
func (a *api) agentJournal(r *http.Request) (any, error) {
	p, err := pagingOf(r)
	if err != nil {
		return nil, err
	}
	after, err := seqOf(p.after, "cursor")
	if err != nil {
		return nil, err
	}
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	page := Page[journal.Event]{Items: []journal.Event{}}
	for e, err := range a.rt.Store().Read(r.Context(), agent.ID, after) {
		if err != nil {
			return nil, err
		}
		if len(page.Items) == p.limit {
			page.Next = cursorOf(seqText(page.Items[p.limit-1].Seq))
			break
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}

// sendMessage writes to an agent in the operator's name.
func (a *api) sendMessage(r *http.Request) (any, error) {
	q, err := decode[MessageRequest](r)
	if err != nil {
		return nil, err
	}
	payload, err := q.payload()
	if err != nil {
		return nil, err
	}
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	sent, err := a.rt.Send(r.Context(), operatorCall(), string(agent.ID), payload, time.Duration(q.DelayMS)*time.Millisecond)
	return status{http.StatusAccepted, sent}, err
}

func (q MessageRequest) payload() (json.RawMessage, error) {
	switch {
	case q.DelayMS < 0 || q.DelayMS > maxDelay:
		return nil, errcode.New(errcode.InvalidArguments, "field \"delayMs\" is %d; it takes 0 to %d, a year", q.DelayMS, int64(maxDelay)).With("field", "delayMs")
	case q.Payload != nil && q.Text != "":
		return nil, errcode.New(errcode.InvalidArguments, "the body has both payload and text; give one")
	case q.Payload != nil:
		return q.Payload, nil
	case q.Text != "":
		return json.Marshal(map[string]string{"text": q.Text})
	}
	return nil, errcode.New(errcode.InvalidArguments, "the body has nothing to send; give payload or text")
}

// abortAgent ends the turn an agent is in.
func (a *api) abortAgent(r *http.Request) (any, error) {
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := a.rt.Abort(agent.ID); err != nil {
		return nil, err
	}
	return status{http.StatusAccepted, a.agent(agent)}, nil
}

// terminateAgent ends an agent and all below it, and answers with its record.
func (a *api) terminateAgent(r *http.Request) (any, error) {
	agent, err := a.findAgent(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := a.rt.Terminate(r.Context(), operatorCall(), agent.ID, reasonOf(r)); err != nil {
		return nil, err
	}
	agent, err = a.rt.AgentRecord(r.Context(), agent.ID)
	return a.agent(agent), err
}

func reasonOf(r *http.Request) string {
	if reason := r.URL.Query().Get("reason"); reason != "" {
		return reason
	}
	return "by the operator"
}

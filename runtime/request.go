package runtime

import (
	"context"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// turnRequest is what the agent's model is told, and where the agent stands then.
type turnRequest struct {
	model.Request
	seat      *gate.Subject
	toolNames []string // names of the tools; Tools may be fewer
	plan      *plan    // of an agent that works by plan, else nil
}

// buildRequest is what the agent's model is told now. Errors: no_tools_available,
// invalid_config, max_tool_rounds_exceeded.
func (a *actor) buildRequest(ctx context.Context, t agentModel) (*turnRequest, error) {
	seat := a.rt.gate.Subject(identity.ByAgent(a.agent.ID))
	offer := seat.Tools()
	if err := a.checkHasTools(offer); err != nil {
		return nil, err
	}
	q := &turnRequest{seat: seat, toolNames: offer.Names, Request: model.Request{
		Self:   model.AgentInfo{ID: a.agent.ID, Role: a.role, Parent: a.agent.Parent, Task: a.agent.Task, State: seat.State},
		System: a.rt.prompt(a.agent, offer.Names) + a.originalTask(),
		Items:  slices.Clip(a.state.items), Tools: offer.Names, ToolJSON: offer.JSON, Compact: a.state.summary,
		Image: a.image(ctx, seat),
	}}
	if t.language {
		q.System += a.state.repeated.promptNote()
	}
	q.System += contextUsageNote(a.state.usage.with(q.Request), t.window, offer.Names)
	if err := a.applyPlan(t, q); err != nil {
		return nil, err
	}
	q.System += constraints(offer)
	return q, nil
}

// applyPlan has a question follow the agent's plan, if it works by one.
func (a *actor) applyPlan(t agentModel, q *turnRequest) error {
	if role, _ := a.rt.org.Role(a.agent.Role); role.Pattern != org.Plan {
		return nil
	}
	if !t.language {
		return errcode.New(errcode.InvalidConfig, "role %q works by plan, which needs a language model; its model is none", a.role)
	}
	p := a.state.plan.current(q.seat)
	q.plan = &p
	return q.addPlanPrompt()
}

// image finds images among the artifacts of the agent's task, if the agent may
// read them.
func (a *actor) image(ctx context.Context, seat *gate.Subject) func(string) (model.Image, error) {
	return func(ref string) (model.Image, error) {
		if d := seat.Authorize("get_artifact"); !d.Allowed() {
			return model.Image{}, errcode.New(d.Code(), "%s", d.Reason())
		}
		stored, content, err := a.rt.Artifact(ctx, ref)
		if err == nil && stored.Task != a.agent.Task {
			err = errcode.New(errcode.ArtifactNotFound, "this task has no artifact %q", ref)
		}
		if err != nil {
			return model.Image{}, err
		}
		return model.Image{MediaType: stored.MediaType, Data: content}, nil
	}
}

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

// question is what the agent's model is told, and where the agent stands then.
type question struct {
	model.Request
	seat *gate.Subject
	sees []string // names of the tools; Tools may be fewer
	plan *plan    // of an agent that works by plan, else nil
}

// question is what the agent's model is told now. Errors: no_tools_available,
// invalid_config, max_tool_rounds_exceeded.
func (a *actor) question(ctx context.Context, t thinker) (*question, error) {
	seat := a.rt.gate.Subject(identity.ByAgent(a.agent.ID))
	offer := seat.Tools()
	if err := a.operable(offer); err != nil {
		return nil, err
	}
	q := &question{seat: seat, sees: offer.Names, Request: model.Request{
		Self:   model.Self{ID: a.agent.ID, Role: a.role, Parent: a.agent.Parent, Task: a.agent.Task, State: seat.State},
		System: a.rt.prompt(a.agent, offer.Names) + a.errand(),
		Items:  slices.Clip(a.state.items), Tools: offer.Names, ToolJSON: offer.JSON, Compact: a.state.compact,
		Image: a.image(ctx, seat),
	}}
	if t.language {
		q.System += a.state.repeated.told()
	}
	q.System += fullness(a.state.usage.with(q.Request), t.window, offer.Names)
	if err := a.guided(t, q); err != nil {
		return nil, err
	}
	q.System += constraints(offer)
	return q, nil
}

// guided has a question follow the agent's plan, if it works by one.
func (a *actor) guided(t thinker, q *question) error {
	if role, _ := a.rt.org.Role(a.agent.Role); role.Pattern != org.Plan {
		return nil
	}
	if !t.language {
		return errcode.New(errcode.InvalidConfig, "role %q works by plan, which needs a language model; its model is none", a.role)
	}
	p := a.state.plan.standing(q.seat)
	q.plan = &p
	return q.guide()
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

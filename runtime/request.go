package runtime

import (
	"context"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// turnRequest is one request to an agent's model with the permissions it was
// built from.
type turnRequest struct {
	model.Request
	subject   *gate.Subject
	toolNames []string // the names of all visible tools; Request.Tools may have fewer
	gating    toolgroups.Gating
	plan      *plan // nil unless the role works by plan
}

// buildRequest builds the agent's next model request from its state and its
// current permissions. Errors: no_tools_available, invalid_config,
// max_tool_rounds_exceeded.
func (a *actor) buildRequest(ctx context.Context, m agentModel) (*turnRequest, error) {
	subject := a.rt.gate.Subject(identity.ByAgent(a.agent.ID))
	offer := subject.ListTools()
	if offer.Suspended != "" {
		return nil, errPausedByPerson
	}
	if err := a.checkHasTools(offer); err != nil {
		return nil, err
	}
	req := &turnRequest{subject: subject, toolNames: offer.Names, gating: offer.Gating, Request: model.Request{
		Self:   model.AgentInfo{ID: a.agent.ID, Role: a.role, Parent: a.agent.Parent, Task: a.agent.Task, State: subject.State},
		System: a.systemPrompt(m, offer), Opening: a.opening(offer.Names),
		Items: slices.Clip(a.state.items), Tools: offer.Names, ToolJSON: offer.JSON, Compact: a.state.summary,
		Image: a.imageLoader(ctx, subject),
	}}
	if m.language {
		note, err := a.budgetNote(ctx)
		if err != nil {
			return nil, err
		}
		req.Note = a.state.repetitionNote() + note
	}
	req.Note += contextUsageNote(a.state.usage.with(req.Request), m.window, offer.Names)
	if err := a.applyPlan(m, req); err != nil {
		return nil, err
	}
	req.Note = strings.TrimSpace(req.Note)
	return req, nil
}

// applyPlan adapts a request to the agent's plan if its role works by plan.
func (a *actor) applyPlan(m agentModel, req *turnRequest) error {
	if role, _ := a.rt.org.RoleByID(a.agent.Role); role.Pattern != org.Plan {
		return nil
	}
	if !m.language {
		return errcode.New(errcode.InvalidConfig, "role %q works by plan, which needs a language model; its model is not one", a.role)
	}
	p := a.state.plan.recheck(req.subject)
	req.plan = &p
	return req.addPlanPrompt()
}

// imageLoader returns a function that loads an image of the agent's task by its
// artifact reference. An agent needs get_artifact, except for images that wasShown reports.
func (a *actor) imageLoader(ctx context.Context, subject *gate.Subject) func(string) (model.Image, error) {
	return func(ref string) (model.Image, error) {
		stored, content, err := a.rt.artifacts.ReadArtifact(ctx, ref)
		if err == nil && stored.Task != a.agent.Task {
			err = errcode.New(errcode.ArtifactNotFound, "this task has no artifact %q", ref)
		}
		if d := subject.AuthorizeTool("get_artifact"); !d.Allowed() && (err != nil || !a.wasShown(stored)) {
			err = errcode.New(d.Code(), "%s", d.Reason())
		}
		if err != nil {
			return model.Image{}, err
		}
		return model.Image{MediaType: stored.MediaType, Data: content}, nil
	}
}

// wasShown reports whether an artifact of the agent's task came in a result of the agent itself. For
// the first agent of the task, artifacts that the user attached count too.
func (a *actor) wasShown(stored Artifact) bool {
	if stored.By == "" {
		return a.agent.Parent == ""
	}
	return stored.By == a.agent.ID && stored.Call != ""
}

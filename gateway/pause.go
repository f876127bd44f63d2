package gateway

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// maxPauseReason bounds the reason of a pause, in bytes. Each task that is shown has it.
const maxPauseReason = 2000

// pauser is what pause and resume do.
type pauser struct {
	task func(ctx context.Context, by identity.Principal, id identity.TaskID, reason string) error
	role func(by identity.Principal, id identity.RoleID, reason string) (org.Role, org.PermissionDiff, error)
	all  func(by identity.Principal, reason string) error
}

// pause stops a task, a role or the organization until it is resumed. A caller may pause the
// tasks that it has started.
func (a *api) pause(r *http.Request) (any, error) {
	return a.setPause(r, "pause", pauser{a.rt.PauseTask, a.rt.PauseRole, a.rt.PauseOrg})
}

// resume ends a pause.
func (a *api) resume(r *http.Request) (any, error) {
	return a.setPause(r, "resume", pauser{a.rt.UnpauseTask, a.rt.ResumeRole, a.rt.ResumeOrg})
}

// setPause reads a request and does what it asks for. Errors name it with verb.
func (a *api) setPause(r *http.Request, verb string, do pauser) (any, error) {
	q, err := decode[wire.PauseRequest](r)
	if err != nil {
		return nil, err
	}
	if err := checkPause(verb, q); err != nil {
		return nil, err
	}
	by := auth.SenderOf(r)
	switch {
	case q.Task != "":
		return a.pauseTask(r, q, do)
	case by.Kind != identity.Operator:
		return nil, errcode.New(errcode.InsufficientPermissions, "%s a role or the organization: only the operator may do that; callers may %s the tasks that they have started", verb, verb)
	case q.Role != "":
		return a.pauseRole(by, q, do)
	}
	if err := do.all(by, q.Reason); err != nil {
		return nil, err
	}
	return wire.PauseChange{All: a.orgPause()}, nil
}

// orgPause returns the pause of the organization, nil if it is not paused.
func (a *api) orgPause() *org.Pause {
	if p := a.org().OrgPause(); p.IsSet() {
		return &p
	}
	return nil
}

// showPauses answers the pauses of the organization and of roles.
func (a *api) showPauses(*http.Request) (any, error) {
	out := wire.ActivePauses{All: a.orgPause(), Roles: []wire.PausedRole{}}
	for _, r := range a.org().ListRoles() {
		if r.Suspended() {
			out.Roles = append(out.Roles, wire.PausedRole{ID: r.ID, Name: r.Name, Suspension: r.Suspension})
		}
	}
	return out, nil
}

func (a *api) pauseTask(r *http.Request, q wire.PauseRequest, do pauser) (any, error) {
	if err := do.task(r.Context(), auth.SenderOf(r), q.Task, q.Reason); err != nil {
		return nil, err
	}
	task, err := a.taskSummary(r, q.Task)
	return wire.PauseChange{Task: &task}, err
}

func (a *api) pauseRole(by identity.Principal, q wire.PauseRequest, do pauser) (any, error) {
	id, err := a.roleID(q.Role)
	if err != nil {
		return nil, err
	}
	role, diff, err := do.role(by, id, q.Reason)
	return wire.PauseChange{Role: &wire.RoleChange{Role: a.roleOf(role), Diff: diff}}, err
}

// checkPause rejects a request that does not name one of a task, a role and the organization.
func checkPause(verb string, q wire.PauseRequest) error {
	named := 0
	for _, is := range []bool{q.Task != "", q.Role != "", q.All} {
		if is {
			named++
		}
	}
	if named != 1 {
		return errcode.New(errcode.InvalidArguments, "%s: name one of \"task\", \"role\" and \"all\"", verb).With("field", "task")
	}
	if len(q.Reason) > maxPauseReason {
		return errcode.New(errcode.InvalidArguments, "%s: field \"reason\" has %d bytes; at most %d are allowed", verb, len(q.Reason), maxPauseReason).With("field", "reason")
	}
	return nil
}

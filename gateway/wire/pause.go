package wire

import (
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// PauseRequest is the body of POST /api/v1/pause and of POST /api/v1/resume. It names one of a
// task, a role and the organization.
type PauseRequest struct {
	Task   identity.TaskID `json:"task,omitempty"`
	Role   string          `json:"role,omitempty"` // id or name
	All    bool            `json:"all,omitempty"`  // the whole organization, with the calls of callers
	Reason string          `json:"reason,omitempty"`
}

// PauseChange is what was paused or resumed, as it is now.
type PauseChange struct {
	Task *Task       `json:"task,omitempty"`
	Role *RoleChange `json:"role,omitempty"`
	All  *org.Pause  `json:"all,omitempty"` // absent when the organization is not paused
}

// ActivePauses are the pauses of the organization and of roles. Tasks have their own in their status.
type ActivePauses struct {
	All   *org.Pause   `json:"all,omitempty"` // absent when the organization is not paused
	Roles []PausedRole `json:"roles"`         // by name
}

// PausedRole is a role that is paused.
type PausedRole struct {
	ID   identity.RoleID `json:"id"`
	Name string          `json:"name"`
	org.Suspension
}

package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// retryTask lets a stopped task go on and answers with it. Only the operator may let its
// models use more than before, or retry a task that was cancelled. The body may be empty.
//
// Errors: the errors of runtime.Runtime.RetryTask; InsufficientPermissions for a caller,
// also if callers in its role may not start tasks any more.
func (a *api) retryTask(r *http.Request) (any, error) {
	q, err := decodeOptional[wire.RetryRequest](r)
	if err != nil {
		return nil, err
	}
	more, err := allowance(wire.Budget(q))
	if err != nil {
		return nil, err
	}
	sender := auth.SenderOf(r)
	if more != (org.ModelAllowance{}) && sender.Kind != identity.Operator {
		return nil, errcode.New(errcode.InsufficientPermissions, "retry the task: only the operator may raise its budget")
	}
	task, err := a.ownTask(r)
	if err != nil {
		return nil, err
	}
	if err := a.checkMayStart(r, "retry the task"); err != nil {
		return nil, err
	}
	if a.start == nil {
		return nil, errNoTasks("retry the task")
	}
	if err := a.rt.RetryTask(r.Context(), task.ID, sender, more); err != nil {
		return nil, err
	}
	out, err := a.taskSummary(r, task.ID)
	return statusAnswer{code: http.StatusAccepted, body: out}, err
}

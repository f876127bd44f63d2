package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxTaskBytes limits the request for a task, with its files in base64.
const maxTaskBytes = strictjson.MaxSize

// maxKeyBytes limits the headers Idempotency-Key and X-Request-ID.
const maxKeyBytes = 200

// startTask starts a task and answers when it is recorded. A request with the same
// Idempotency-Key and the same body answers with the task of the first one.
//
// Errors:
//
//   - the errors of runtime.Runtime.StartTask
//   - InsufficientPermissions if callers in the sender's role may not start tasks
//     (org.Org.MayStartTasks)
//   - Conflict if this process starts no tasks for others
func (a *api) startTask(r *http.Request) (any, error) {
	q, release, err := a.decodeTask(r)
	defer release()
	if err != nil {
		return nil, err
	}
	spec, err := a.taskSpec(r, q)
	if err != nil {
		return nil, err
	}
	if !q.Ask { // org decides who may ask
		err = a.checkMayStart(r, "start a task")
	}
	if err != nil {
		return nil, err
	}
	if a.start == nil {
		return nil, errNoTasks("start a task")
	}
	id, err := a.start(r.Context(), spec)
	if err != nil {
		return nil, err
	}
	task, err := a.taskSummary(r, id)
	return statusAnswer{code: http.StatusAccepted, body: task}, err
}

// decodeTask is decode for a request that may hold files. The caller calls release in any
// case, when it is done with the request.
func (a *api) decodeTask(r *http.Request) (q wire.TaskRequest, release func(), err error) {
	data, release, err := a.readLargeBody(r)
	if err != nil {
		return q, release, err
	}
	_, err = decodeBytes(data, &q, nil)
	return q, release, err
}

// checkMayStart returns an error if callers in the sender's role may start no tasks.
func (a *api) checkMayStart(r *http.Request, attempt string) error {
	if v := a.visibilityFor(r); v.mayStartTasks() || v.role.Suspended() { // the error of a suspended role says so
		return nil
	}
	return errcode.New(errcode.InsufficientPermissions, "%s: the caller's role has no tool of the group %s, and no tasks.as with an active role", attempt, toolgroups.OrgManagement)
}

// mayStartTasks reports whether the sender may start tasks: the operator, and a caller
// whose role lets it.
func (v visibility) mayStartTasks() bool {
	return v.all || v.role.ID != "" && v.org.CallerMayStartTasks(v.caller)
}

// taskSpec validates a request for a task and converts it.
func (a *api) taskSpec(r *http.Request, q wire.TaskRequest) (org.TaskSpec, error) {
	spec := org.TaskSpec{
		Text: q.Text, Caller: auth.SenderOf(r), Role: q.Role,
		Files: q.Files, ReadOnly: q.ReadOnly, Key: r.Header.Get("Idempotency-Key"), Ask: q.Ask, State: q.State,
	}
	if q.Ask && q.Role == "" && spec.Caller.Kind == identity.Caller {
		spec.Role = string(spec.Caller.Role)
	}
	if q.Text == "" {
		return spec, errcode.New(errcode.InvalidArguments, "field \"text\" is missing: say what to do").With("field", "text")
	}
	if len(spec.Key) > maxKeyBytes {
		return spec, errcode.New(errcode.InvalidArguments, "the header Idempotency-Key has more than %d bytes", maxKeyBytes)
	}
	if spec.Open = q.Open; q.Open && spec.Caller.Kind != identity.Operator {
		return spec, errcode.New(errcode.InsufficientPermissions, "start a task: only the operator may keep one open").With("field", "open")
	}
	var err error
	if spec.Groups, err = groupsOf(q.Group); err != nil {
		return spec, err
	}
	if string(q.Input) != "{}" {
		spec.Input = json.RawMessage(q.Input)
	}
	if q.Result != nil {
		if spec.Schema = q.Result.Schema; spec.Schema == nil {
			return spec, errcode.New(errcode.InvalidArguments, "field \"result\" has no schema").With("field", "result")
		}
	}
	if q.Budget != nil {
		budget, err := allowance(*q.Budget)
		if err != nil {
			return spec, err
		}
		spec.Budget = budget
	}
	if spec.Timeout, err = parseTimeout(q.Timeout); err != nil {
		return spec, err
	}
	return spec, setWorkspace(r, &spec, q.Workspace)
}

// parseTimeout parses the time that a task may take. "" is no limit.
func parseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errcode.New(errcode.InvalidArguments, "field \"timeout\" is %.40q; want a positive duration such as \"90s\" or \"10m\"", text).With("field", "timeout")
	}
	return d, nil
}

// setWorkspace sets what a request names as its workspace: the name of a configured one, or
// the path of a directory. Only the owner of the data directory may name a path, on its
// socket. "" means no path.
func setWorkspace(r *http.Request, spec *org.TaskSpec, text string) error {
	switch {
	case !strings.ContainsAny(text, `/\`):
		spec.WorkspaceName = text
	case !auth.IsLocalOwner(r) || spec.Caller.Kind != identity.Operator:
		return errcode.New(errcode.InsufficientPermissions, "start a task: a directory can be named only on this machine, through the socket of the data directory; name a configured workspace").With("field", "workspace")
	case !filepath.IsAbs(text):
		return errcode.New(errcode.InvalidArguments, "field \"workspace\" is %.200q; want an absolute path, or the name of a configured workspace", text).With("field", "workspace")
	default:
		spec.Workspace = text
	}
	return nil
}

// allowance converts the budget of a request.
func allowance(b wire.Budget) (org.ModelAllowance, error) {
	a, ok := b.Allowance()
	if !ok {
		return a, errcode.New(errcode.InvalidArguments, "the budget of %d tokens, %d requests, %d calls and a cost of %g is out of range; all are positive, a cost has at most 9 decimals", b.Tokens, b.Requests, b.Calls, b.Cost).With("field", "budget")
	}
	return a, nil
}

// errNoTasks returns the error of a process that works on one task and ends with it.
func errNoTasks(what string) error {
	return errcode.New(errcode.Conflict, "%s: the process of this organization works for one client and ends with it; start \"rolecall serve\" to give it tasks", what)
}

// ownTask returns the record of the task in the path. A caller sees only the tasks that it
// has started.
//
// Errors: TaskNotFound.
func (a *api) ownTask(r *http.Request) (org.Task, error) {
	id := identity.TaskID(r.PathValue("id"))
	if sender := auth.SenderOf(r); sender.Kind != identity.Operator {
		if t, ok := a.org().TaskByID(id); !ok || !t.StartedBy(sender) {
			return org.Task{}, errcode.New(errcode.TaskNotFound, "task %.200q not found", id)
		}
	}
	return a.rt.TaskRecord(r.Context(), id)
}

// maxWait limits how long a request waits for the end of a task.
const maxWait = 10 * time.Minute

// waitForTask returns when a task has ended, the time in the query parameter "wait" is over
// or the server shuts down. Without the parameter it returns at once.
func (a *api) waitForTask(r *http.Request, id identity.TaskID) error {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxWait {
		return errcode.New(errcode.InvalidArguments, "query parameter \"wait\" is %.40q; want a duration up to %v, such as 30s", text, maxWait).With("field", "wait")
	}
	release, err := a.limitWaiting(r)
	if err != nil {
		return err
	}
	defer release()
	serving, cancel := UntilShutdown(r.Context())
	defer cancel()
	ctx, cancel := context.WithTimeout(serving, d)
	defer cancel()
	if _, err := a.rt.WaitTask(ctx, id); err != nil && ctx.Err() == nil {
		return err
	}
	return a.authenticate.Revalidate(r)
}

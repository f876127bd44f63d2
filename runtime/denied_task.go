package runtime

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxDeniedReason limits the reason of a recorded denial, in bytes.
const maxDeniedReason = 1 << 10

// deniedTaskCodes are the codes of requests that asked for more than the caller may have. Other
// errors are mistakes of the request.
var deniedTaskCodes = map[errcode.Code]bool{
	errcode.InsufficientPermissions: true, errcode.NoToolsAvailable: true, errcode.RoleNotFound: true, errcode.GroupNotFound: true, errcode.Conflict: true,
}

// recordDeniedTask records that an external caller may not start a task, if err says so. Like a
// denied call, the event waits for a shared commit.
func (rt *Runtime) recordDeniedTask(s org.TaskSpec, err error) error {
	code := errcode.CodeOf(err)
	if s.Caller.Kind != identity.Caller || !deniedTaskCodes[code] {
		return nil
	}
	denied := journal.TaskDenied{
		Caller: s.Caller.String(), Role: textutil.Truncate(s.Role, maxName), State: textutil.Truncate(s.State, maxName),
		Decision: journal.Denied, Code: code, Reason: textutil.Truncate(errcode.Message(err), maxDeniedReason),
	}
	denied.Requested, denied.Defaults = listNames(s.Groups), listNames(rt.org.DefaultGroups(s))
	rt.logDeniedTask(s, code)
	if err := rt.buffer.flushIfFull(); err != nil {
		return err
	}
	rt.buffer.add(len(denied.Reason)+maxName*(2+len(denied.Requested)+len(denied.Defaults)), journal.Event{At: rt.now(), Role: rt.roleName(org.Agent{Role: s.Caller.Role}), Body: denied})
	return nil
}

// listNames returns the first names of a set, shortened; nil for nil.
func listNames(set *toolgroups.GroupSet) []string {
	if set == nil {
		return nil
	}
	list := []string{}
	for _, name := range firstOf(set.Names(), maxListed) {
		list = append(list, textutil.Truncate(name, maxName))
	}
	return list
}

// firstOf returns the first n values of a list.
func firstOf[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// initialState returns the workflow state in which the agents of a new task begin.
func (rt *Runtime) initialState(task org.Task) string {
	caller, external := task.ExternalCaller()
	if !external {
		return task.State
	}
	_, state := rt.org.ResolveView(caller)
	return state
}

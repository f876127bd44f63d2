package runtime

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// logDenied logs the denied calls of a principal, one line for each. Calls that wait for people
// are not denied. The lines of all agents of a caller's tasks are limited together.
func (rt *Runtime) logDenied(by identity.Principal, role string, calls ...*gate.Admission) {
	for _, c := range calls {
		if !c.Allowed() && !c.Waiting() && rt.log.Enabled(rt.uncancelled, slog.LevelWarn) {
			rt.denials.LogLine(slog.LevelWarn, denialTitle(by, c), rt.callOwner(by), denialAttributes(by, role, c)...)
		}
	}
}

// denialTitle returns the message of a denial. That of a tool-gated principal is specified.
func denialTitle(by identity.Principal, c *gate.Admission) string {
	if !c.Decision.ToolGated() || c.Decision.Allowed() {
		return "call denied"
	}
	name := "Caller " + by.String()
	if by.Kind == identity.Agent {
		name = "Agent " + string(by.Agent)
	}
	return fmt.Sprintf("UNAUTHORIZED TOOL ACCESS: %s attempted to call %s", logText(name), logText(c.Request.Name))
}

// denialAttributes returns who called what, and why the call is denied.
func denialAttributes(by identity.Principal, role string, c *gate.Admission) []any {
	who := slog.String("caller", logText(string(by.User)))
	if by.Kind == identity.Agent {
		who = slog.String("agent", string(by.Agent))
	}
	list := []any{who, "role", logText(role), "tool", logText(c.Request.Name), "code", errcode.CodeOf(c.Err)}
	if rule := deniedRule(c); rule != "" {
		list = append(list, "rule", rule)
	}
	return list
}

// logDeniedTask logs that an external caller may not start a task, within the limits of the
// lines about denied calls. It logs no text of the request.
func (rt *Runtime) logDeniedTask(s org.TaskSpec, code errcode.Code) {
	if !rt.log.Enabled(rt.uncancelled, slog.LevelWarn) {
		return
	}
	state := s.State
	if state == "" {
		_, state = rt.org.ResolveView(s.Caller)
	}
	list := []any{"caller", logName(string(s.Caller.User)), "role", logName(rt.roleName(org.Agent{Role: s.Caller.Role}))}
	if s.Role != string(s.Caller.Role) {
		list = append(list, "asked_role", logName(s.Role))
	}
	if groups := cmp.Or(s.Groups, rt.org.DefaultGroups(s)); groups != nil {
		for _, attr := range listGroups(groups).attrs("requested_groups") {
			list = append(list, attr)
		}
	}
	rt.denials.LogLine(slog.LevelWarn, "request denied", rt.callOwner(s.Caller), append(list, "initial_state", logName(toolgroups.StateName(state)), "code", code)...)
}

// logText returns a text for a line of the log: shortened, and without characters that
// control a terminal.
func logText(text string) string { return textutil.Sanitize(textutil.OneLine(text, maxLine)) }

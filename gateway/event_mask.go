package gateway

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// mask returns an event as the sender of a request is shown it. For a caller, a tool that its role
// does not have looks like a tool that does not exist. The groups that its role does not have are
// left out, and so is the role in its role's tasks.as. Changes of roles are shown without what they
// mean for others.
func (v visibility) mask(e journal.Event) journal.Event {
	if v.all {
		return e
	}
	switch b := e.Body.(type) {
	case journal.ToolCall:
		if v.hides(b.Code, b.Tool) {
			b.Code, b.Reason, b.Rule, b.Group, b.Effect, b.Epoch = errcode.UnknownTool, gate.Decision{Tool: b.Tool}.Reason(), "", "", 0, 0
		}
		if !v.org.CallerHasGroup(v.caller, toolgroups.GroupID(b.Group)) {
			b.Group = ""
		}
		e.Body = b
	case journal.ToolError:
		if v.hides(b.Code, b.Tool) {
			b.Code = errcode.UnknownTool
			b.Result = tool.Failure(b.Tool, errcode.New(errcode.UnknownTool, "%s", gate.Decision{Tool: b.Tool}.Reason())).JSON()
			e.Body = b
		}
	case journal.TaskStarted:
		b.As, b.AsID = "", ""
		e.Body = b
	case journal.TaskDenied:
		b.Defaults = nil // of a role that may have groups which the caller does not have
		e.Body = b
	case journal.RoleChanged:
		b.Record, b.Diff = nil, nil
		e.Body = b
	}
	return e
}

// hides reports whether a code would tell a caller that a tool exists which its role does
// not have.
func (v visibility) hides(code errcode.Code, name string) bool {
	if code != errcode.ToolNotAvailable && code != errcode.UnknownTool {
		return false
	}
	_, visible := v.tool(name)
	return !visible
}

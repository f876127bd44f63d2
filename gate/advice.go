package gate

import (
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// hireTool is the tool with which an agent hands work to agents that have other tools.
const hireTool = "spawn_agent_with_task"

// advice returns what the reason of a denial is followed by, for an agent: what it can do
// instead. It names only tools that the agent is shown. It is empty for callers who are not agents.
// It is also empty where all denials must read the same: for agents that must answer from results
// of tools (Decision.ToolGated), and in a pause (Decision.Suspended).
func (a *Admission) advice() string {
	d, s := a.Decision, a.Subject
	if s.Principal.Kind != identity.Agent || d.ToolGated() || d.Suspended() != "" {
		return ""
	}
	switch {
	case d.Code() == errcode.UnknownTool:
		return toolsAdvice(d.Tool, s.ToolNames())
	case d.Rule() == toolgroups.WrongState:
		return toolsAdvice("", s.ToolNames())
	case s.AuthorizeTool(hireTool).Allowed():
		return ". You cannot get it: hire an agent whose role has it, or say in your answer what could not be done."
	}
	return ". It cannot be granted during this task: work without it, or say in your answer what you could not do."
}

// toolsAdvice lists the tools of an agent, and which of them is most similar to a name.
func toolsAdvice(name string, tools []string) string {
	if len(tools) == 0 {
		return ". You have no tools now: answer in words."
	}
	advice := ". Your tools: " + textutil.ListNames(tools) + "."
	if similar := textutil.SuggestName(name, tools); similar != "" {
		advice = "; " + similar + strings.TrimPrefix(advice, ".")
	}
	return advice
}

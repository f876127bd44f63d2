package runtime

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
)

// An agent whose View is gated answers from its tools alone (seed 004). It is
// kept to that in three layers: here it is not asked while it has no tool
// (operable) and is told its constraints (constraints); the gate refuses
// whatever is not its own. Only the first and the third are enforced.

// checkHasTools refuses to ask a tool-gated agent that has no tool now. It is called
// before each request to a model.
func (a *actor) checkHasTools(o gate.ToolList) error {
	switch {
	case !o.ToolGated:
		return nil
	case len(o.Names) == 0:
		a.rt.log.Warn(fmt.Sprintf("Agent %s has no tools configured - cannot operate", a.agent.ID))
		return errcode.New(errcode.NoToolsAvailable, "This agent has no tools configured. Please contact the agent creator to add API access.")
	}
	if a.rt.isFirstRequest(a) {
		a.rt.log.Info(fmt.Sprintf("Agent %s (%s) loaded with %d tool(s)", a.agent.ID, line(a.role), len(o.Names)))
		a.rt.log.Info("Tool-gating enabled: Agent can ONLY call these tools: " + strings.Join(o.Names, ", "))
	}
	return nil
}

// isFirstRequest says, once for each agent of a task that is worked on, that this
// is its first request.
func (rt *Runtime) isFirstRequest(a *actor) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	run := rt.tasks[a.task]
	if run == nil || run.greeted[a.agent.ID] {
		return false
	}
	if run.greeted == nil {
		run.greeted = map[identity.AgentID]bool{}
	}
	run.greeted[a.agent.ID] = true
	return true
}

// constraints is for the end of a tool-gated agent's prompt, where nothing that
// others wrote comes behind it; "" for other agents.
func constraints(o gate.ToolList) string {
	if !o.ToolGated {
		return ""
	}
	return fmt.Sprintf(toolGating, len(o.Names), strings.Join(o.Names, ", "))
}

// toolGating is in the words of seed 004.
const toolGating = `
CRITICAL CONSTRAINTS (you must follow these exactly):
1. You MUST call tools to retrieve information - do not use your training knowledge
2. You can ONLY provide information that comes directly from tool execution results
3. Do NOT provide responses based on your internal knowledge or reasoning
4. If a tool fails, respond with: "I was unable to retrieve data from [tool_name]. Please try again."
5. If no tools are available, respond with: "I have no tools configured to help with this request."
6. Always cite which tool provided the data you're reporting
7. Do NOT provide general knowledge, advice, or analysis beyond what the tools return

Your %[1]d tool(s): %[2]s

Remember: You are strictly tool-gated. Users cannot use you as a general LLM. You only have access to %[1]d specific API endpoint(s).
`

// logDenied logs what those who are tool-gated tried and may not; who says
// who that is.
func (rt *Runtime) logDenied(who string, calls ...*gate.Admission) {
	for _, c := range calls {
		if c.Decision.ToolGated() && !c.Decision.Allowed() {
			rt.log.Warn(fmt.Sprintf("UNAUTHORIZED TOOL ACCESS: %s attempted to call %s", line(who), line(c.Request.Name)))
		}
	}
}

// logDone logs what the calls of those who are tool-gated achieved.
func (rt *Runtime) logDone(key, who string, calls ...*gate.Admission) {
	for _, c := range calls {
		if c.Decision.ToolGated() && c.Allowed() && !c.Result.IsError {
			rt.log.Info("Tool executed successfully: "+c.Request.Name, key, who)
		}
	}
}

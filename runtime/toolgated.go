package runtime

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/toolgroups"
)

// A tool-gated agent answers only from the results of its tools. This has three
// layers: a model request without tools fails (checkHasTools), the prompt
// states the constraints (toolGatingPrompt), and the gate denies other tools. The
// first and the third are enforced. With StrictlyGated the answer of a turn without a
// successful call is replaced, too (withholdUngrounded).

// checkHasTools fails if a tool-gated agent has no tool. It is called before
// each model request.
func (a *actor) checkHasTools(o gate.ToolList) error {
	switch {
	case o.Gating == toolgroups.NotGated:
		return nil
	case len(o.Names) == 0:
		a.rt.log.Warn(fmt.Sprintf("Agent %s has no tools configured - cannot operate", a.agent.ID))
		return errcode.New(errcode.NoToolsAvailable, "This agent has no tools configured. Please contact the agent creator to add API access.")
	}
	if a.rt.tracker.markFirstRequest(a) {
		a.rt.log.Info(fmt.Sprintf("Agent %s (%s) loaded with %d tool(s)", a.agent.ID, textutil.OneLine(a.role, maxLine), len(o.Names)))
		a.rt.log.Info("Tool-gating enabled: Agent can ONLY call these tools: " + strings.Join(o.Names, ", "))
	}
	return nil
}

// toolGatingPrompt returns the end of a tool-gated agent's system prompt, or "" for other
// agents. It comes last, so that no text of others follows it there.
func toolGatingPrompt(o gate.ToolList) string {
	if o.Gating == toolgroups.NotGated {
		return ""
	}
	return fmt.Sprintf(toolGating, len(o.Names), strings.Join(o.Names, ", "))
}

// toolGating is the exact wording that tool-gated agents are specified to get.
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

// ungroundedText is what a strictly gated agent answers in place of an answer of a turn without
// a successful call.
const ungroundedText = "I can only provide information from my configured APIs"

// isUngrounded reports whether the answers of the agent are withheld: it is strictly gated, and
// no call of the turn was successful.
func (x *exchange) isUngrounded() bool {
	return x.req.gating == toolgroups.StrictlyGated && !x.a.state.grounded
}

// withholdUngrounded returns answer, with ungroundedText in place of a final answer that is not
// from the results of tools. It also replaces the beginning of such an answer. What the model
// wrote is not kept: readers of the record would see it.
func (x *exchange) withholdUngrounded(answer *model.Answer) *model.Answer {
	final := answer.Finish == model.FinishEnd || answer.Finish == model.FinishResult || answer.Repair == model.RepairContinue
	if !final || !x.isUngrounded() {
		return answer
	}
	own := *answer
	own.Finish, own.Repair = model.FinishEnd, ""
	own.Text, own.Value, own.Reasoning, own.Provider, own.Stop, own.Withheld = ungroundedText, nil, nil, "", "", true
	return &own
}

// answerEvents returns the events that record a final answer.
func (a *actor) answerEvents(answer *model.Answer) []journal.Event {
	events := []journal.Event{a.event(journal.ModelAnswered{Answer: *answer})}
	if answer.Withheld {
		events = append(events, a.event(journal.UngroundedAnswer{}))
	}
	return events
}

// logGatedCalls logs the successful calls of a tool-gated principal.
func (rt *Runtime) logGatedCalls(key, name string, calls ...*gate.Admission) {
	for _, c := range calls {
		if c.Decision.ToolGated() && c.Allowed() && !c.Result.IsError {
			rt.log.Info("Tool executed successfully: "+c.Request.Name, key, name)
		}
	}
}

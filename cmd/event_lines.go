package cmd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// lineView prints one line for each event that a reader needs. A complete one also
// prints the lines of formatLogOnly and the rule of a denial. It names agents by role and id.
type lineView struct {
	screen   *terminal
	colored  bool
	complete bool
	denied   map[identity.CallID]bool // denied calls, whose tool error is not printed again
}

// maxDenials bounds the denied calls whose tool errors have not come. Filters may leave
// those out.
const maxDenials = 10_000

func newLineView(s *terminal) *lineView {
	return &lineView{screen: s, denied: map[identity.CallID]bool{}}
}

func newColoredLineView(s *terminal) *lineView {
	v := newLineView(s)
	v.colored = true
	return v
}

func (v *lineView) show(e journal.Event) error {
	line := v.format(e)
	if line == "" {
		return nil
	}
	return v.screen.update(line+"\n", nil)
}

func (v *lineView) learn(e journal.Event) { v.agentName(e) }

func (v *lineView) close() {}

// format returns the line of an event; "" if it has none.
func (v *lineView) format(e journal.Event) string {
	who := v.subject(e)
	if line := v.formatEvent(who, e); line != "" || !v.complete {
		return line
	}
	return v.formatLogOnly(who, e)
}

// formatEvent returns the line of an event that every reader needs.
func (v *lineView) formatEvent(who string, e journal.Event) string {
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		if v.complete && b.Name != "" && b.Name != e.Role {
			who += "  " + textutil.Sanitize(b.Name)
		}
		return fmt.Sprintf("+ %s  may call %s", who, namesOrNothing(b.Tools))
	case journal.AgentTerminated:
		return fmt.Sprintf("- %s  %s", who, textutil.Sanitize(b.Reason))
	case journal.ModelDelta:
		if b.Note != "" {
			return v.color(red, fmt.Sprintf("~ %s  %s", who, textutil.Sanitize(b.Note)))
		}
	case journal.ModelAnswered:
		return v.formatAnswer(who, b.Answer)
	case journal.BudgetWarning:
		return v.color(red, fmt.Sprintf("~ %s  %s", who, warningText(b)))
	case journal.TaskPaused:
		return v.color(red, fmt.Sprintf("~ the task is paused: %s: %s", b.Code, textutil.Sanitize(b.Reason)))
	case journal.Paused:
		return v.color(red, fmt.Sprintf("~ %s paused by %s%s", pauseTarget(e.Role, b.RoleID, b.All), textutil.Sanitize(b.By), reasonText(b.Reason)))
	case journal.Resumed:
		return fmt.Sprintf("~ %s resumed by %s%s", pauseTarget(e.Role, b.RoleID, b.All), textutil.Sanitize(b.By), reasonText(b.Reason))
	case journal.TaskRetried:
		return "~ the task goes on"
	case journal.TaskDenied:
		return v.color(red, fmt.Sprintf("! %s  task denied: %s: %s", who, b.Code, textutil.Sanitize(b.Reason)))
	case journal.PromptGot:
		return fmt.Sprintf("  %s  got prompt %s (%d bytes)", who, textutil.Sanitize(b.Prompt), b.ArgsSize)
	case journal.MailDropped:
		return fmt.Sprintf("~ %s  the task ended with %s", who, counted(b.Count, "unread message", "unread messages"))
	case journal.ContextCompressed:
		return fmt.Sprintf("  %s  summarizes its first %d entries", who, b.Items)
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			return v.formatDenial(who, b)
		}
		if b.ArgsSize > 0 {
			return fmt.Sprintf("  %s  %s (%d bytes)", who, textutil.Sanitize(b.Tool), b.ArgsSize)
		}
		return fmt.Sprintf("  %s  %s %s", who, textutil.Sanitize(b.Tool), payloadText(b.Args, 60))
	case journal.ToolError:
		return v.formatToolError(who, b)
	case journal.MessageSent:
		return v.formatMessage(who, b)
	case journal.TurnFailed:
		return v.color(red, fmt.Sprintf("! %s  %s: %s", who, b.Code, textutil.Sanitize(b.Message)))
	case journal.QuestionAsked:
		return fmt.Sprintf("? %s  %s", who, questionText(b))
	case journal.QuestionAnswered:
		return fmt.Sprintf("  %s  %s: %s", who, textutil.Sanitize(b.Tool), answeredText(b))
	case journal.ApprovalRequested:
		return fmt.Sprintf("? %s  %s waits for an approval: rolecall approval show %s", who, textutil.Sanitize(b.Tool), textutil.Sanitize(b.Approval))
	case journal.ApprovalEscalated:
		return fmt.Sprintf("? %s  %s waits long: the approval of %s is enough, too", who, textutil.Sanitize(b.Tool), textutil.Sanitize(b.To))
	case journal.ApprovalDecided:
		return fmt.Sprintf("  %s  %s: %s", who, textutil.Sanitize(b.Tool), decidedText(b))
	case journal.PatternEnded:
		return fmt.Sprintf("  %s  %s: %s", who, textutil.Sanitize(b.Tool), patternEndText(b))
	case journal.UngroundedAnswer:
		return v.color(red, fmt.Sprintf("! %s  answer withheld: no call of the turn was successful", who))
	case journal.StateTransition:
		return fmt.Sprintf("  %s  state %s", who, textutil.Sanitize(b.To))
	}
	return ""
}

// warningText says which budget is nearly spent.
func warningText(b journal.BudgetWarning) string {
	used, limit, owner := strconv.FormatInt(b.Used, 10), strconv.FormatInt(b.Limit, 10), "the task"
	if b.Quantity == "cost" {
		used, limit = model.Money(b.Used).String(), model.Money(b.Limit).String()
	}
	if b.Owner != "" {
		owner = "an agent"
	}
	return textutil.Sanitize(fmt.Sprintf("the budget of %s is nearly spent: %s of %s %s are used", owner, used, limit, b.Quantity))
}

// questionText returns a question, with the tool and the server that ask.
func questionText(b journal.QuestionAsked) string {
	q := tool.Question{Message: b.Message, Server: b.Server}
	text := textutil.Sanitize(q.Attributed(b.Tool))
	if b.URL != "" {
		text += " " + textutil.Sanitize(b.URL)
	}
	return text
}

// decidedText says what people have decided about a call.
func decidedText(b journal.ApprovalDecided) string {
	text := map[string]string{
		journal.ApprovalVoted: "one of several approvals", journal.ApprovalGiven: "approved", journal.ApprovalRefused: "refused",
		journal.ApprovalExpired: "the time for an approval is over", journal.ApprovalVoid: "the request for an approval is void", journal.ApprovalUsed: "the approval is used",
	}[b.Outcome]
	if b.By != "" {
		text += " by " + b.By
	}
	if b.Override {
		text += ", in place of the approvers"
	}
	if b.Standing != "" {
		text += ", with further calls that fit " + string(b.Pattern)
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	return textutil.Sanitize(text)
}

// patternEndText says how a standing approval ended.
func patternEndText(b journal.PatternEnded) string {
	text := "the standing approval is " + map[string]string{
		journal.ApprovalUsed: "used up", journal.ApprovalExpired: "over", journal.ApprovalVoid: "void", journal.PatternRevoked: "revoked",
	}[b.Outcome]
	if b.By != "" {
		text += " by " + b.By
	}
	text += " after " + counted(b.Used, "further call", "further calls")
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	return textutil.Sanitize(text)
}

// answeredText says how a question ended.
func answeredText(b journal.QuestionAnswered) string {
	switch {
	case b.Reason != "":
		return "the question ended: " + textutil.Sanitize(b.Reason)
	case b.Action == tool.Accept:
		return "the question is answered"
	}
	return "the question is declined"
}

// formatAnswer returns the line of an answer that is a plan, has an invalid plan, ended early, or
// is asked for again. It returns "" for any other answer.
func (v *lineView) formatAnswer(who string, a model.Answer) string {
	switch {
	case a.PlanError != "":
		return v.color(red, fmt.Sprintf("! %s  invalid plan: %s", who, textutil.Sanitize(a.PlanError)))
	case a.Finish == model.FinishRepair:
		return v.color(red, fmt.Sprintf("~ %s  %s", who, repairText(a.Repair)))
	case a.Stop != "":
		return v.color(red, fmt.Sprintf("~ %s  %s", who, stopText(a.Stop)))
	case a.Finish != model.FinishPlan:
		return ""
	}
	tools := make([]string, len(a.Plan))
	for i, step := range a.Plan {
		tools[i] = step.Tool
	}
	return fmt.Sprintf("  %s  plans to call %s", who, namesOrNothing(tools))
}

// stopText describes why an answer ended early.
func stopText(why model.StopReason) string {
	switch why {
	case model.Length:
		return "answer truncated at maxTokens"
	case model.ContentFilter:
		return "the provider's filter ended the answer"
	case model.Refusal:
		return "the model refused to answer"
	}
	return "the answer ended early: " + textutil.Sanitize(string(why))
}

// repairText describes what a model is asked for in place of an answer that cannot be used.
func repairText(r model.AnswerRepair) string {
	switch r {
	case model.RepairContinue:
		return "answer truncated at maxTokens; asking the model to continue it"
	case model.RepairCall:
		return "answer is a call written as text, which calls nothing; asking for the call"
	case model.RepairAnswer:
		return "answer is empty; asking again"
	}
	return "asking again: " + textutil.Sanitize(string(r))
}

// formatDenial returns the line of a denied call.
func (v *lineView) formatDenial(who string, b journal.ToolCall) string {
	if len(v.denied) >= maxDenials {
		clear(v.denied)
	}
	v.denied[b.Call] = true
	if !v.complete {
		b.Rule = ""
	}
	return v.color(red, textutil.Sanitize(fmt.Sprintf("! %s  %s  %s: %s", who, b.Tool, deniedText(b.Code), denialText(b))))
}

// denialText returns the code, the rule and the reason of a denial.
func denialText(b journal.ToolCall) string {
	if b.Rule != "" {
		return fmt.Sprintf("%s (%s): %s", b.Code, b.Rule, b.Reason)
	}
	return fmt.Sprintf("%s: %s", b.Code, b.Reason)
}

// deniedText describes a call that did not run.
func deniedText(code errcode.Code) string {
	if code == errcode.ToolInterrupted {
		return "not repeated"
	}
	return journal.Denied
}

// formatToolError returns the line of a failed call; "" for a denied one, which has its
// line already.
func (v *lineView) formatToolError(who string, b journal.ToolError) string {
	if v.denied[b.Call] {
		delete(v.denied, b.Call)
		return ""
	}
	return v.color(red, fmt.Sprintf("! %s  %s  %s", who, textutil.Sanitize(b.Tool), payloadText(b.Result, 100)))
}

func (v *lineView) formatMessage(who string, b journal.MessageSent) string {
	if from := b.Message.From; from == "user" || from == "rolecall" {
		who = from
	}
	to := cmp.Or(v.nameOf(b.Message.To, ""), textutil.Sanitize(b.Message.To))
	line := fmt.Sprintf("  %s → %s  %s", who, to, payloadText(b.Message.Payload, 60))
	if b.Due != "" {
		line += "  (due at " + textutil.Sanitize(b.Due) + ")"
	}
	return line
}

func (v *lineView) agentName(e journal.Event) string {
	if spawned, ok := e.Body.(journal.AgentSpawned); ok && spawned.Name != "" {
		v.screen.names.learn(string(e.Agent), spawned.Name)
	}
	return v.nameOf(string(e.Agent), e.Role)
}

// nameOf returns the name of an agent; "" if it is not known and role is "".
func (v *lineView) nameOf(id, role string) string {
	if v.complete {
		return agentLabel(id, role)
	}
	return v.screen.names.nameOf(id, role)
}

// subject returns who an event is about: an agent, or the external caller of a call.
func (v *lineView) subject(e journal.Event) string {
	if e.Agent != "" {
		return v.agentName(e)
	}
	switch b := e.Body.(type) {
	case journal.ToolCall:
		return callerLabel(b.Caller, e.Role)
	case journal.ToolResult:
		return callerLabel(b.Caller, e.Role)
	case journal.ToolError:
		return callerLabel(b.Caller, e.Role)
	case journal.StateTransition:
		return callerLabel(b.Caller, e.Role)
	case journal.TaskDenied:
		return callerLabel(b.Caller, e.Role)
	case journal.PromptGot:
		return callerLabel(b.Caller, e.Role)
	}
	return v.agentName(e)
}

// counted returns a number and the noun that follows it.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Colors as parameters of the SGR escape sequence.
const (
	red   = "31"
	dim   = "2"
	green = "32"
)

// color returns text in a color, an SGR parameter such as red, if the view is colored.
func (v *lineView) color(parameter, text string) string {
	if !v.colored {
		return text
	}
	return "\x1b[" + parameter + "m" + text + "\x1b[0m"
}

// namesOrNothing returns the names of tools for a line of the log.
func namesOrNothing(tools []string) string {
	if len(tools) == 0 {
		return "nothing"
	}
	return textutil.Sanitize(strings.Join(tools, ", "))
}

// payloadText returns the beginning of a JSON document, or of its field text, on one line.
func payloadText(raw []byte, width int) string {
	text := model.Message{Payload: raw}.Text()
	if text == "" {
		text = jsonText(raw)
	}
	return textutil.TruncateWidth(textutil.Sanitize(text), width)
}

// pauseTarget names what an event about a pause is about.
func pauseTarget(role string, id identity.RoleID, all bool) string {
	switch {
	case all:
		return "the organization is"
	case id != "":
		return "role " + textutil.Sanitize(role) + " is"
	}
	return "the task is"
}

// reasonText returns a reason for the end of a line, "" for none.
func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + textutil.Sanitize(reason)
}

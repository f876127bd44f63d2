package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// Limits of a text in a transcript that is not full.
const (
	maxTextLines = 12
	maxTextWidth = 1000 // characters, in all lines
)

// transcript prints the conversation of one agent. The calls of an answer are numbered, and
// their results have the same numbers.
type transcript struct {
	out  io.Writer
	full bool

	calls  map[identity.CallID]int  // numbers of the last answer's calls
	denied map[identity.CallID]bool // those that were denied
}

func newTranscript(out io.Writer, full bool) *transcript {
	return &transcript{out: out, full: full, denied: map[identity.CallID]bool{}}
}

// print prints an event of the conversation.
func (t *transcript) print(e journal.Event) error {
	head, text := t.format(e)
	if head == "" {
		return nil
	}
	_, err := fmt.Fprintf(t.out, "\n%s  %s\n%s", formatTime(e.At), textutil.Sanitize(head), text)
	return err
}

// format returns the first line and the text of an event; "" if it is not shown.
func (t *transcript) format(e journal.Event) (head, text string) {
	switch b := e.Body.(type) {
	case journal.MessageReceived:
		return "message from " + strings.TrimPrefix(cmp.Or(b.Message.FromName, b.Message.FromRole)+" "+b.Message.From, " "), t.indent(plainPayload(b.Message.Payload))
	case journal.ModelAnswered:
		return "answer", t.formatAnswer(b.Answer)
	case journal.ToolCall:
		if b.Decision != journal.Denied {
			return "", "" // the answer has it
		}
		t.denied[b.Call] = true
		return t.callName(b.Call, b.Tool) + " denied: " + denialText(b), ""
	case journal.ToolResult:
		text := strings.Join(contentLines(b.Result), "\n")
		return t.callName(b.Call, b.Tool) + " result", t.indent(cmp.Or(text, plainPayload(b.Result)))
	case journal.ToolError:
		if t.denied[b.Call] {
			return "", ""
		}
		return t.callName(b.Call, b.Tool) + " error " + string(b.Code), t.indent(plainPayload(b.Result))
	case journal.QuestionAsked:
		return questionText(b), ""
	case journal.QuestionAnswered:
		return b.Tool + ": " + answeredText(b), t.indent(plainPayload(b.Content))
	case journal.ApprovalRequested:
		return b.Tool + " waits for an approval until " + b.Until.Format("2006-01-02 15:04:05Z07:00"), ""
	case journal.ApprovalEscalated:
		return b.Tool + " waits long: the approval of " + b.To + " is enough, too", ""
	case journal.ApprovalDecided:
		return b.Tool + ": " + decidedText(b), t.indent(plainPayload(b.Args))
	case journal.PatternEnded:
		return b.Tool + ": " + patternEndText(b), ""
	case journal.UngroundedAnswer:
		return "answer withheld: no call of the turn was successful", ""
	case journal.StateTransition:
		return "state " + b.To, ""
	case journal.ContextCompressed:
		return fmt.Sprintf("the first %s summarized", counted(b.Items, "entry is", "entries are")), t.indent(b.Summary)
	case journal.BudgetWarning:
		return warningText(b), ""
	case journal.TurnFailed:
		return "turn failed: " + string(b.Code) + ": " + b.Message, ""
	case journal.AgentTerminated:
		return "terminated  " + b.Reason, ""
	}
	return "", ""
}

// formatAnswer returns the text of an answer and its calls.
func (t *transcript) formatAnswer(a model.Answer) string {
	t.calls, t.denied = map[identity.CallID]int{}, map[identity.CallID]bool{}
	text := a.Text
	if len(a.Value) > 0 {
		text = plainPayload(a.Value)
	}
	var b strings.Builder
	b.WriteString(t.indent(text))
	for i, step := range a.Plan {
		b.WriteString(t.indent(fmt.Sprintf("step %d: %s  %s", i+1, step.Tool, step.Reason)))
	}
	if a.PlanError != "" {
		b.WriteString(t.indent("invalid plan: " + a.PlanError))
	}
	switch {
	case a.Finish == model.FinishRepair:
		b.WriteString(t.indent("~ " + repairText(a.Repair)))
	case a.Stop != "":
		b.WriteString(t.indent("~ " + stopText(a.Stop)))
	}
	for i, call := range a.Calls {
		t.calls[call.ID] = i + 1
		b.WriteString(t.indent(fmt.Sprintf("→ %d %s %s", i+1, call.Name, call.Args)))
	}
	return b.String()
}

// callName returns the number of a call in its answer and its tool.
func (t *transcript) callName(id identity.CallID, tool string) string {
	if n, ok := t.calls[id]; ok {
		return fmt.Sprintf("%d %s", n, tool)
	}
	return tool
}

// indent returns a text as lines that begin with four spaces, cut unless the transcript is
// full. It is "" for an empty text.
func (t *transcript) indent(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	shown := text
	if !t.full {
		shown = textutil.TruncateWidth(firstLines(text, maxTextLines), maxTextWidth)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(shown, "\n") {
		b.WriteString("    " + textutil.Sanitize(line) + "\n")
	}
	if shown != text {
		fmt.Fprintf(&b, "    (cut; the text has %d bytes, --full shows them)\n", len(text))
	}
	return b.String()
}

// firstLines returns the first n lines of a text.
func firstLines(text string, n int) string {
	at := 0
	for range n {
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			return text
		}
		at += next + 1
	}
	return text[:at-1]
}

// plainPayload returns a payload as text. For a JSON object with only the field text, it returns
// this field. It returns a JSON string as text, and any other JSON as it is.
func plainPayload(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil && len(fields) == 1 && fields["text"] != nil {
		raw = fields["text"]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

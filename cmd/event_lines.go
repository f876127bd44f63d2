package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// lineView prints a line for each event worth one.
type lineView struct {
	screen *terminal
	colour bool
	denied map[identity.CallID]bool // calls whose error is shown already
}

func newLineView(s *terminal, colour bool) *lineView {
	return &lineView{screen: s, colour: colour, denied: map[identity.CallID]bool{}}
}

func (v *lineView) event(e journal.Event) error {
	line := v.line(e)
	if line == "" {
		return nil
	}
	return v.screen.update(line+"\n", nil)
}

func (v *lineView) observe(e journal.Event) { v.name(e) }

// line words an event; "" when it is not worth a line.
func (v *lineView) line(e journal.Event) string {
	who := v.name(e)
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		return fmt.Sprintf("+ %s  may call %s", who, orNone(b.Tools))
	case journal.AgentTerminated:
		return fmt.Sprintf("- %s  %s", who, clean(b.Reason))
	case journal.ModelDelta:
		if b.Note != "" {
			return v.color(red, fmt.Sprintf("~ %s  %s", who, clean(b.Note)))
		}
	case journal.ModelAnswered:
		return v.formatAnswer(who, b.Answer)
	case journal.ContextCompressed:
		return fmt.Sprintf("  %s  sums up its first %d entries", who, b.Items)
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			v.denied[b.Call] = true
			return v.color(red, fmt.Sprintf("! %s  %s  %s: %s: %s", who, clean(b.Tool), refusal(b.Code), b.Code, clean(b.Reason)))
		}
		return fmt.Sprintf("  %s  %s %s", who, clean(b.Tool), brief(b.Args, 60))
	case journal.ToolError:
		return v.failure(who, b)
	case journal.MessageSent:
		return v.message(who, b)
	case journal.Failed:
		return v.color(red, fmt.Sprintf("! %s  %s: %s", who, b.Code, clean(b.Message)))
	case journal.StateTransition:
		return fmt.Sprintf("  %s  state %s", who, clean(b.To))
	}
	return ""
}

// formatAnswer words an answer that is a plan, or was to be one, or was ended
// before its time.
func (v *lineView) formatAnswer(who string, a model.Answer) string {
	switch {
	case a.PlanError != "":
		return v.color(red, fmt.Sprintf("! %s  its plan does not hold: %s", who, clean(a.PlanError)))
	case a.Stop == model.Length:
		return v.color(red, fmt.Sprintf("~ %s  its answer was cut off at its length (maxTokens)", who))
	case a.Stop == model.Refusal:
		return v.color(red, fmt.Sprintf("~ %s  its model refused to answer", who))
	case a.Finish != model.FinishPlan:
		return ""
	}
	tools := make([]string, len(a.Plan))
	for i, step := range a.Plan {
		tools[i] = step.Tool
	}
	return fmt.Sprintf("  %s  plans to call %s", who, orNone(tools))
}

// refusal says what became of a call that did not run.
func refusal(code errcode.Code) string {
	if code == errcode.ToolInterrupted {
		return "not repeated"
	}
	return journal.Denied
}

// failure words a call that failed; denials were worded with the call.
func (v *lineView) failure(who string, b journal.ToolError) string {
	if v.denied[b.Call] {
		delete(v.denied, b.Call)
		return ""
	}
	return v.color(red, fmt.Sprintf("! %s  %s  %s", who, clean(b.Tool), brief(b.Result, 100)))
}

func (v *lineView) message(who string, b journal.MessageSent) string {
	from := b.Message.From
	if from == "user" {
		who = "user"
	}
	to := cmp.Or(v.screen.names.of(b.Message.To, ""), clean(b.Message.To))
	line := fmt.Sprintf("  %s → %s  %s", who, to, brief(b.Message.Payload, 60))
	if b.Due != "" {
		line += "  (delivered at " + clean(b.Due) + ")"
	}
	return line
}

func (v *lineView) name(e journal.Event) string { return v.screen.names.of(string(e.Agent), e.Role) }

// The colours used, as terminals take them.
const (
	red   = "31"
	dim   = "2"
	green = "32"
)

func (v *lineView) color(colour, text string) string {
	if !v.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func orNone(tools []string) string {
	if len(tools) == 0 {
		return "nothing"
	}
	return clean(strings.Join(tools, ", "))
}

// brief gives the beginning of a JSON document on one line.
func brief(raw []byte, width int) string {
	var payload struct{ Text string }
	if json.Unmarshal(raw, &payload) == nil && payload.Text != "" {
		return cut(clean(payload.Text), width)
	}
	return cut(clean(string(raw)), width)
}

// clean takes from a text what could act on a terminal or break a line.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// cut shortens a text to a number of characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}

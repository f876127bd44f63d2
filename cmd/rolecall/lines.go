package main

import (
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
	screen *screen
	colour bool
	names  map[string]string        // agents by id, as shown
	denied map[identity.CallID]bool // calls whose error is shown already
}

func newLineView(s *screen, colour bool) *lineView {
	return &lineView{screen: s, colour: colour, names: map[string]string{}, denied: map[identity.CallID]bool{}}
}

func (v *lineView) event(e journal.Event) error {
	line := v.line(e)
	if line == "" {
		return nil
	}
	return v.screen.update(line+"\n", nil)
}

func (v *lineView) learn(e journal.Event) { v.name(e) }

// line words an event; "" when it is not worth a line.
func (v *lineView) line(e journal.Event) string {
	who := v.name(e)
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		return fmt.Sprintf("+ %s  may call %s", who, orNothing(b.Tools))
	case journal.AgentTerminated:
		return fmt.Sprintf("- %s  %s", who, clean(b.Reason))
	case journal.ModelDelta:
		if b.Note != "" {
			return v.paint(red, fmt.Sprintf("~ %s  %s", who, clean(b.Note)))
		}
	case journal.ModelAnswered:
		return v.planned(who, b.Answer)
	case journal.ContextCompressed:
		return fmt.Sprintf("  %s  sums up its first %d entries", who, b.Items)
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			v.denied[b.Call] = true
			return v.paint(red, fmt.Sprintf("! %s  %s  %s: %s: %s", who, clean(b.Tool), refusal(b.Code), b.Code, clean(b.Reason)))
		}
		return fmt.Sprintf("  %s  %s %s", who, clean(b.Tool), brief(b.Args, 60))
	case journal.ToolError:
		return v.failure(who, b)
	case journal.MessageSent:
		return v.message(who, b)
	case journal.Failed:
		return v.paint(red, fmt.Sprintf("! %s  %s: %s", who, b.Code, clean(b.Message)))
	case journal.StateTransition:
		return fmt.Sprintf("  %s  state %s", who, clean(b.To))
	}
	return ""
}

// planned words an answer that is a plan, or was to be one.
func (v *lineView) planned(who string, a model.Answer) string {
	switch {
	case a.Fault != "":
		return v.paint(red, fmt.Sprintf("! %s  its plan does not hold: %s", who, clean(a.Fault)))
	case a.Finish != model.Planned:
		return ""
	}
	tools := make([]string, len(a.Plan))
	for i, step := range a.Plan {
		tools[i] = step.Tool
	}
	return fmt.Sprintf("  %s  plans to call %s", who, orNothing(tools))
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
	return v.paint(red, fmt.Sprintf("! %s  %s  %s", who, clean(b.Tool), brief(b.Result, 100)))
}

func (v *lineView) message(who string, b journal.MessageSent) string {
	from := b.Message.From
	if from == "user" {
		who = "user"
	}
	to := clean(b.Message.To)
	if name, ok := v.names[b.Message.To]; ok {
		to = name
	}
	line := fmt.Sprintf("  %s → %s  %s", who, to, brief(b.Message.Payload, 60))
	if b.Due != "" {
		line += "  (delivered at " + clean(b.Due) + ")"
	}
	return line
}

// name gives an agent's role, numbered when a role has more than one agent.
func (v *lineView) name(e journal.Event) string {
	id := string(e.Agent)
	if name, ok := v.names[id]; ok {
		return name
	}
	name, taken := clean(e.Role), 1
	for _, other := range v.names {
		if other == name || strings.HasPrefix(other, name+"#") {
			taken++
		}
	}
	if taken > 1 {
		name = fmt.Sprintf("%s#%d", name, taken)
	}
	v.names[id] = name
	return name
}

// The colours used, as terminals take them.
const (
	red   = "31"
	dim   = "2"
	green = "32"
)

func (v *lineView) paint(colour, text string) string {
	if !v.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func orNothing(tools []string) string {
	if len(tools) == 0 {
		return "nothing"
	}
	return strings.Join(tools, ", ")
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

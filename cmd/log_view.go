package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// logView prints one line for each event of the organization that has one: its time, its task and
// what happened.
type logView struct {
	out   io.Writer
	lines *lineView
}

// newLogView returns a view that prints JSON with --json, and lines otherwise.
func newLogView(c *common) view {
	if c.json {
		return jsonView{c.out}
	}
	lines := newLineView(&terminal{out: c.out})
	lines.colored = !c.plain() && isTerminal(c.out)
	lines.complete = true
	return &logView{out: c.out, lines: lines}
}

func (v *logView) learn(journal.Event) {}

func (v *logView) close() {}

func (v *logView) show(e journal.Event) error {
	line := v.lines.format(e)
	if line == "" {
		return nil
	}
	_, err := fmt.Fprintf(v.out, "%s  %-*s  %s\n", formatTime(e.At), shortLength, orDash(shortID(string(e.Task))), line)
	return err
}

// shortLength is how many characters of a task's id the log shows. They are the time at which the
// task was started, in milliseconds.
const shortLength = len("01a1fded-ba9c")

// shortID returns the beginning of the id of a task.
func shortID(id string) string { return textutil.Sanitize(textutil.Prefix(id, shortLength)) }

// suffixLength is how many characters the log shows of an agent's id. They are its end, since the
// ids of a task's agents begin alike.
const suffixLength = 6

// agentLabel returns the name of an agent in the log: the name of its role and the end of
// its id. It does not depend on the agents that were shown before. It is "" for a text
// that is no id, unless there is a role.
func agentLabel(id, role string) string {
	switch {
	case role == "" && !identity.IsID(id):
		return ""
	case role == "":
		role = "agent"
	case id == "":
		return textutil.Sanitize(role)
	}
	return textutil.Sanitize(role + "/" + id[max(0, len(id)-suffixLength):])
}

// callerLabel returns the name of a recorded caller with the name of its role in place of
// the role's id.
func callerLabel(recorded, role string) string {
	caller, external := identity.ParseCaller(recorded)
	switch {
	case !external:
		return textutil.Sanitize(recorded)
	case role == "":
		role = string(caller.Role)
	}
	return textutil.Sanitize(string(caller.User) + "@" + role)
}

// callerWithRole returns a caller and the role named as. The task has the permissions of that role
// in place of the caller's. If as is "", callerWithRole returns the caller only.
func callerWithRole(caller, as string) string {
	if as == "" {
		return caller
	}
	return caller + ", as " + textutil.Sanitize(as)
}

// formatLogOnly returns the line of an event that only the log shows; "" if it has none.
func (v *lineView) formatLogOnly(who string, e journal.Event) string {
	switch b := e.Body.(type) {
	case journal.TaskStarted:
		return fmt.Sprintf("+ task of %s  %s", callerWithRole(callerLabel(b.Caller, ""), b.As), textutil.TruncateWidth(textutil.Sanitize(b.Text), 80))
	case journal.TaskEnded:
		return v.formatEnd(b)
	case journal.ModelAnswered:
		return fmt.Sprintf("  %s  answers  %s", who, answerText(b))
	case journal.ToolResult:
		if lines := contentLines(b.Result); lines != nil {
			return fmt.Sprintf("  %s  %s → %s", who, textutil.Sanitize(b.Tool), textutil.TruncateWidth(textutil.Sanitize(strings.Join(lines, "; ")), 120))
		}
		return fmt.Sprintf("  %s  %s → %s", who, textutil.Sanitize(b.Tool), payloadText(b.Result, 60))
	case journal.RoleChanged:
		return fmt.Sprintf("* role %s %s by %s%s", textutil.Sanitize(e.Role), textutil.Sanitize(b.Change), callerLabel(b.By, ""), accessText(b))
	case journal.GroupRegistered:
		return fmt.Sprintf("+ group %s of %s  %s", textutil.Sanitize(b.Group), textutil.Sanitize(b.Owner), textutil.TruncateWidth(namesOrNothing(b.Tools), 80))
	case journal.GroupUnregistered:
		return fmt.Sprintf("- group %s of %s", textutil.Sanitize(b.Group), textutil.Sanitize(b.Owner))
	case journal.GroupOpened:
		return fmt.Sprintf("+ group %s is open%s  %s", textutil.Sanitize(b.Group), untilText(b.NextChange), textutil.TruncateWidth(namesOrNothing(b.Tools), 80))
	case journal.GroupClosed:
		return fmt.Sprintf("- group %s is closed%s", textutil.Sanitize(b.Group), untilText(b.NextChange))
	case journal.ItemChanged:
		return fmt.Sprintf("* item %s/%s %s by %s", textutil.Sanitize(b.Kind), textutil.Sanitize(b.Name), textutil.Sanitize(b.Change), callerLabel(b.By, ""))
	}
	return ""
}

// untilText returns how long a group stays open or closed; "" for always.
func untilText(next time.Time) string {
	if next.IsZero() {
		return ""
	}
	return " until " + formatTime(next)
}

// accessText returns what a changed role gains and loses; "" for nothing.
func accessText(b journal.RoleChanged) (text string) {
	var diff org.PermissionDiff
	if json.Unmarshal(b.Diff, &diff) != nil {
		return ""
	}
	for _, r := range diff.Roles {
		if r.ID != b.RoleID {
			continue
		}
		if len(r.Gains) > 0 {
			text += "  gains " + textutil.Sanitize(joinNames(r.Gains))
		}
		if len(r.Loses) > 0 {
			text += "  loses " + textutil.Sanitize(joinNames(r.Loses))
		}
	}
	return textutil.TruncateWidth(text, 200)
}

// formatEnd returns the line of the end of a task.
func (v *lineView) formatEnd(b journal.TaskEnded) string {
	if b.Status != string(org.Done) {
		return v.color(red, fmt.Sprintf("! task %s  %s: %s", textutil.Sanitize(b.Status), b.Code, textutil.TruncateWidth(textutil.Sanitize(b.Error), 80)))
	}
	if b.Incomplete != "" {
		return v.color(red, fmt.Sprintf("= task done, result incomplete (%s)  %s", textutil.Sanitize(string(b.Incomplete)), payloadText([]byte(resultText(b.Result)), 80)))
	}
	return v.color(green, "= task done  "+payloadText([]byte(resultText(b.Result)), 80))
}

// answerText describes an answer: its text or result, its calls and its tokens.
func answerText(b journal.ModelAnswered) string {
	a := b.Answer
	text := payloadText(a.Value, 60)
	if text == "" {
		text = textutil.TruncateWidth(textutil.Sanitize(a.Text), 60)
	}
	var parts []string
	if len(a.Calls) > 0 {
		parts = append(parts, counted(len(a.Calls), "call", "calls"))
	}
	if a.Usage.Input+a.Usage.Output > 0 {
		parts = append(parts, fmt.Sprintf("%d+%d tokens", a.Usage.Input, a.Usage.Output))
	}
	if len(parts) > 0 {
		text += "  (" + strings.Join(parts, ", ") + ")"
	}
	return strings.TrimSpace(text)
}

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/lineinput"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// questioner answers the questions of the tools of one task: a person at the terminal does, or all are
// declined. Its functions are called by one goroutine.
type questioner struct {
	out    io.Writer
	begin  func() (end func())                   // makes room for a question on the terminal; nil does nothing
	next   func(context.Context) (string, error) // reads a line that the person types; nil without a person
	isOpen func(ctx context.Context, id string) (bool, error)
	answer func(ctx context.Context, id string, a tool.Answer) error
}

// setPerson makes a person at the terminal answer; if in is no terminal, all is declined. Other
// output is held back while the person answers.
func (q *questioner) setPerson(in io.Reader, screen *terminal) {
	if isTerminalInput(in) {
		q.askAt(lineinput.New(in, maxAnswerLine), screen)
	}
}

// askAt makes a person answer who types lines and reads screen. A line that was typed for an earlier
// question is shown and not used.
func (q *questioner) askAt(lines *lineinput.Reader, screen *terminal) {
	q.next, q.out = lines.Next, promptWriter{screen}
	q.begin = func() (end func()) {
		end = screen.holdOutput()
		if text, late := lines.Late(); late {
			fmt.Fprintln(q.out, "typed for an earlier question, not used: "+textutil.Sanitize(textutil.Truncate(text, maxLateText)))
		}
		return end
	}
}

// remoteQuestioner returns what answers the questions of a task of another process, to which api
// returns the client.
func remoteQuestioner(api func() *client.Client, task string, out io.Writer) *questioner {
	q := &questioner{out: out}
	q.isOpen = func(ctx context.Context, id string) (bool, error) {
		list, err := api().ListToolQuestions(ctx, task)
		return slices.ContainsFunc(list.Questions, func(open client.ToolQuestion) bool { return open.ID == id }), err
	}
	q.answer = func(ctx context.Context, id string, a tool.Answer) error {
		_, err := api().AnswerToolQuestion(ctx, task, id, client.ToolAnswer(a))
		return err
	}
	return q
}

// maxAnswerLine is the size in bytes from which a line of an answer ends the input.
const maxAnswerLine = 64 << 10

// maxLateText is how many bytes are shown of a line that is not used.
const maxLateText = 200

// maxTries is how often a person may write an answer that does not fit.
const maxTries = 3

// handle answers the question of an event, if the question still waits for its answer. While a
// person answers, no other event is shown.
func (q *questioner) handle(ctx context.Context, e journal.Event) error {
	asked, ok := e.Body.(journal.QuestionAsked)
	if !ok || asked.ID == "" {
		return nil
	}
	open, err := q.isOpen(ctx, asked.ID)
	if err != nil || !open {
		return err
	}
	a := tool.Answer{Action: tool.Decline}
	if q.next != nil {
		timed, cancel := context.WithDeadline(ctx, asked.Until)
		defer cancel()
		a = q.ask(timed, asked)
		if ctx.Err() != nil { // the command ends; the question waits for others
			return nil
		}
	}
	err = q.answer(ctx, asked.ID, a)
	if errcode.CodeOf(err) == errcode.QuestionNotFound { // its time is over, or someone else was faster
		fmt.Fprintln(q.out, "the question is over")
		return nil
	}
	return err
}

// ask asks a person. The question is cancelled if the input ends, or if the answer does not fit
// three times.
func (q *questioner) ask(ctx context.Context, asked journal.QuestionAsked) tool.Answer {
	if q.begin != nil {
		defer q.begin()()
	}
	cancelled := tool.Answer{Action: tool.Cancel}
	question := tool.Question{Name: asked.Question, Message: asked.Message, Schema: asked.Schema, URL: asked.URL, Server: asked.Server}
	fmt.Fprintln(q.out, textutil.SanitizeLines(question.Attributed(asked.Tool)))
	if asked.URL != "" {
		fmt.Fprintf(q.out, "The address is %s; rolecall does not open it.\n", textutil.Sanitize(asked.URL))
	}
	switch line, err := q.read(ctx, "Accept? y, n, or c to cancel: "); {
	case err != nil || strings.HasPrefix(line, "c"):
		return cancelled
	case !isYes(line):
		return tool.Answer{Action: tool.Decline}
	}
	for range maxTries {
		content, err := q.readFields(ctx, question.Fields())
		if err != nil {
			return cancelled
		}
		a, err := question.CheckAnswer(tool.Answer{Action: tool.Accept, Content: content})
		if err == nil {
			return a
		}
		fmt.Fprintln(q.out, textutil.Sanitize(errcode.Message(err)))
	}
	return cancelled
}

// readFields reads a value for each field. A field that is left empty is missing from the content.
func (q *questioner) readFields(ctx context.Context, fields []tool.Field) (json.RawMessage, error) {
	content := map[string]json.RawMessage{}
	for _, f := range fields {
		line, err := q.read(ctx, fieldPrompt(f))
		if err != nil {
			return nil, err
		}
		if line != "" {
			content[f.Name] = fieldValue(f, line)
		}
	}
	return json.Marshal(content)
}

// read prints a prompt and reads a line without the space around it.
func (q *questioner) read(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(q.out, prompt)
	line, err := q.next(ctx)
	if err != nil {
		fmt.Fprintln(q.out)
	}
	return strings.TrimSpace(line), err
}

// fieldPrompt describes a field on one line.
func fieldPrompt(f tool.Field) string {
	text := f.Name
	if f.Title != "" && f.Title != f.Name {
		text += ", " + f.Title
	}
	if f.Description != "" {
		text += ": " + f.Description
	}
	var notes []string
	if len(f.Choices) > 0 {
		var values []string
		for _, c := range f.Choices {
			if c.Title != "" && c.Title != c.Value {
				values = append(values, c.Value+" ("+c.Title+")")
			} else {
				values = append(values, c.Value)
			}
		}
		notes = append(notes, "one of "+strings.Join(values, ", "))
		if f.Type == "array" {
			notes[0] = "any of " + strings.Join(values, ", ") + ", with commas"
		}
	} else if f.Type != "string" {
		notes = append(notes, f.Type)
	}
	switch {
	case f.Default != nil:
		notes = append(notes, "default "+string(f.Default))
	case !f.Required:
		notes = append(notes, "may be empty")
	}
	if len(notes) > 0 {
		text += " [" + strings.Join(notes, "; ") + "]"
	}
	return textutil.Sanitize(text) + ": "
}

// fieldValue returns what a person wrote as JSON of the type of a field.
func fieldValue(f tool.Field, line string) json.RawMessage {
	var value any = line
	switch f.Type {
	case "boolean":
		value = isYes(line)
	case "number", "integer":
		if json.Valid([]byte(line)) {
			return json.RawMessage(line)
		}
	case "array":
		list := []string{}
		for part := range strings.SplitSeq(line, ",") {
			list = append(list, strings.TrimSpace(part))
		}
		value = list
	}
	text, _ := json.Marshal(value) // texts always marshal
	return text
}

// isYes reports whether a line means yes.
func isYes(line string) bool {
	return slices.Contains([]string{"y", "yes", "true"}, strings.ToLower(line))
}

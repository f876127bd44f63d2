package human

import (
	"context"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// command is a word that begins with "/".
type command struct {
	name  string
	takes string // what has to follow, if anything; in brackets what may
	help  string
	run   func(q *dialog, ctx context.Context, rest string) (*model.Answer, error)
}

func commands() []command {
	return []command{
		{"/all", "", "show everything of the conversation", shows((*dialog).showAll)},
		{"/tools", "[NAME]", "tools with full descriptions; of one, its schema too", showTools},
		{"/system", "", "show the system prompt", shows(func(q *dialog) { q.block(q.request.System, whole) })},
		{"/call", "NAME", "call a tool by its name, on the list or not", callNamed},
		{"/more", "", "the next call is not the last of this answer", shows(another)},
		{"/drop", "", "forget the calls confirmed so far", shows(forget)},
		{"/say", "TEXT", "text to the user; the turn goes on", says(model.FinishContinue)},
		{"/end", "[TEXT]", "text that ends the turn, whatever it looks like", says(model.FinishEnd)},
		{"/wait", "", "nothing to say until a message comes", says(model.FinishWait)},
		{"/help", "", "this list", shows((*dialog).showHelp)},
	}
}

// command runs what a line names, or says that there is no such thing.
func (q *dialog) command(ctx context.Context, line string) (*model.Answer, error) {
	word, rest := words(line)
	for _, c := range commands() {
		switch {
		case c.name != word:
		case c.takes == "" && rest != "":
			q.line("nothing may follow %s; as text, the line begins with //", word)
			return nil, nil
		case c.takes != "" && c.takes[0] != '[' && rest == "":
			q.line("%s needs %s behind it", word, c.takes)
			return nil, nil
		default:
			return c.run(q, ctx, rest)
		}
	}
	q.line("there is no command %s; /help lists them, // begins a text with /", brief(word))
	return nil, nil
}

// shows makes a command of what gives no answer.
func shows(show func(*dialog)) func(*dialog, context.Context, string) (*model.Answer, error) {
	return func(q *dialog, _ context.Context, _ string) (*model.Answer, error) {
		show(q)
		return nil, nil
	}
}

// says makes a command of a way to finish.
func says(finish model.Finish) func(*dialog, context.Context, string) (*model.Answer, error) {
	return func(q *dialog, _ context.Context, rest string) (*model.Answer, error) {
		return q.finalAnswer(model.Answer{Text: rest, Finish: finish}), nil
	}
}

func callNamed(q *dialog, ctx context.Context, rest string) (*model.Answer, error) {
	name, mode := words(rest)
	switch mode {
	case "":
		return q.call(ctx, q.offer(name), byField)
	case "json":
		return q.call(ctx, q.offer(name), asJSON)
	}
	q.line("a tool's name is one word")
	return nil, nil
}

func showTools(q *dialog, _ context.Context, rest string) (*model.Answer, error) {
	shown := rest == ""
	for i, o := range q.tools {
		if rest == "" || rest == o.name || rest == strconv.Itoa(i+1) {
			q.describe(i+1, o, rest != "")
			shown = true
		}
	}
	if !shown {
		q.line("there is no tool %s", rest)
	}
	return nil, nil
}

func another(q *dialog) {
	q.more = true
	q.line("the next call is followed by another; choose it")
}

func forget(q *dialog) {
	q.line("forgotten calls: %d", len(q.calls))
	q.calls, q.more = nil, false
}

func (q *dialog) showHelp() {
	for _, text := range strings.Split(strings.Trim(help, "\n"), "\n") {
		q.line("%s", text)
	}
	for _, c := range commands() {
		q.line("  %-13s %s", c.name+" "+c.takes, c.help)
	}
}

const help = `
  text          the answer that ends the turn
  NUMBER, NAME  call a tool: its fields are asked one by one
  NUMBER json   call a tool with one JSON object for all fields
  //text        text that begins with /
in a field: enter leaves an optional one out, "" is the empty text,
/json asks for the whole object instead, /back calls nothing
`

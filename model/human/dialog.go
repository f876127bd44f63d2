package human

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// dialog is a request that the person is asked to answer.
type dialog struct {
	*screen
	keys    *lineReader
	request model.Request
	tools   []toolChoice
	names   func(id identity.AgentID, role string) string

	calls []model.Call // confirmed so far
	more  bool         // the next call to be confirmed is not the last
}

// run shows the question and takes lines until one completes the answer.
func (q *dialog) run(ctx context.Context) (*model.Answer, error) {
	if text, ok := q.keys.typedAhead(); ok {
		q.line("-- this was typed before the question below, and is not used:")
		q.head(text, "")
	}
	q.show()
	for {
		line, err := q.ask(ctx, q.asker()+">")
		if err != nil {
			return nil, err
		}
		answer, err := q.take(ctx, strings.TrimSpace(line))
		if answer != nil || err != nil {
			return answer, err
		}
	}
}

// ask prompts for a line. Nobody is asked what could not be shown.
func (q *dialog) ask(ctx context.Context, prompt string) (string, error) {
	if q.prompt(prompt); q.err != nil {
		return "", q.err
	}
	return q.keys.line(ctx)
}

// What a word may be when it is neither text nor on the list.
var (
	number   = regexp.MustCompile(`^[0-9]+$`)
	nameLike = regexp.MustCompile(`^[A-Za-z0-9]+([_.-][A-Za-z0-9]+)+$`)
)

// take acts on a line; the answer is nil when there is more to come.
func (q *dialog) take(ctx context.Context, line string) (*model.Answer, error) {
	switch {
	case line == "":
		return q.send(), nil
	case strings.HasPrefix(line, "//"):
		return q.end(line[1:]), nil
	case line[0] == '/':
		return q.command(ctx, line)
	}
	if o, mode, ok := q.findTool(line); ok {
		return q.call(ctx, o, mode)
	}
	switch {
	case number.MatchString(line):
		q.line("there is no tool %s; /end %s answers with this text", line, line)
	case nameLike.MatchString(line):
		return q.confirmWord(ctx, line)
	default:
		return q.end(line), nil
	}
	return nil, nil
}

// findTool finds the tool that a line names, by number or name. "json" behind it
// asks for the arguments at once.
func (q *dialog) findTool(line string) (o toolChoice, mode inputMode, ok bool) {
	word, rest := words(line)
	if rest == "json" {
		mode = asJSON
	} else if rest != "" {
		return o, mode, false
	}
	i := slices.IndexFunc(q.tools, func(o toolChoice) bool { return o.name == word })
	if n, err := strconv.Atoi(word); err == nil && 0 < n && n <= len(q.tools) {
		i = n - 1
	}
	if i < 0 {
		return o, mode, false
	}
	return q.tools[i], mode, true
}

// confirmWord asks what a word is that looks like a tool's name and is not listed:
// taken for text, a slip of a finger would end the turn.
func (q *dialog) confirmWord(ctx context.Context, word string) (*model.Answer, error) {
	q.line("%s is none of the tools listed", word)
	for {
		line, err := q.ask(ctx, "c = call it all the same, t = it is my answer, enter = neither:")
		if err != nil {
			return nil, err
		}
		switch strings.TrimSpace(line) {
		case "":
			return nil, nil
		case "c":
			return q.call(ctx, q.offer(word), byField)
		case "t":
			return q.end(word), nil
		}
		q.invalid(line)
	}
}

// offer gives the tool of a name, with a warning if it is not on the list.
func (q *dialog) offer(name string) toolChoice {
	for _, o := range q.tools {
		if o.name == name {
			return o
		}
	}
	q.line("warning: %s is not offered to this agent;", brief(name))
	q.line("the gate decides the call, and should refuse it")
	return toolChoice{name: name}
}

// call takes the person through one call. It completes the answer unless
// another call is to follow, or the person went back.
func (q *dialog) call(ctx context.Context, o toolChoice, mode inputMode) (*model.Answer, error) {
	args, err := q.arguments(ctx, o, mode)
	if err == nil {
		err = q.confirm(ctx, o.name, args)
	}
	switch {
	case err == errBack:
		q.line("nothing is called")
		return nil, nil
	case err != nil:
		return nil, err
	}
	q.calls = append(q.calls, model.Call{Name: o.name, Args: args})
	if q.more {
		q.more = false
		q.line("calls so far: %d; choose the next one, or enter sends them", len(q.calls))
		return nil, nil
	}
	return q.send(), nil
}

// confirm shows a call as it will be made, and gives errBack if it is not to be.
func (q *dialog) confirm(ctx context.Context, name string, args []byte) error {
	q.line("call %s", name)
	q.block(pretty(args), whole)
	for {
		line, err := q.ask(ctx, "enter = yes, n = no, /more = yes and another call:")
		if err != nil {
			return err
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "", "y", "yes":
			return nil
		case "/more":
			q.more = true
			return nil
		case "n", "no":
			return errBack
		}
		q.invalid(line)
	}
}

// invalid says why a question is asked again.
func (q *dialog) invalid(line string) {
	q.line("%s is none of these", brief(strings.TrimSpace(line)))
}

// send gives the calls confirmed so far as the answer.
func (q *dialog) send() *model.Answer {
	if len(q.calls) == 0 {
		q.line("type text, or the number of a tool; /help tells more")
		return nil
	}
	return &model.Answer{Calls: q.calls, Finish: model.FinishToolCalls}
}

// end gives the answer that ends the turn.
func (q *dialog) end(text string) *model.Answer {
	return q.finalAnswer(model.Answer{Text: text, Finish: model.FinishEnd})
}

// finalAnswer gives an answer without calls, which must not lose those confirmed.
func (q *dialog) finalAnswer(a model.Answer) *model.Answer {
	if len(q.calls) > 0 {
		q.line("calls wait: %d; enter sends them, /drop forgets them", len(q.calls))
		return nil
	}
	a.Text = strings.ToValidUTF8(a.Text, "\uFFFD")
	return &a
}

// words splits a line after its first word.
func words(line string) (first, rest string) {
	first, rest, _ = strings.Cut(line, " ")
	return first, strings.TrimSpace(rest)
}

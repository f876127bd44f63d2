package human

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/lineinput"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
)

// dialog is the exchange about one request, until it has an answer.
type dialog struct {
	*screen
	lines   *lineinput.Reader
	request model.Request
	tools   []toolChoice
	names   func(id identity.AgentID, role string) string
}

// run shows the request and reads lines until one completes the answer.
func (d *dialog) run(ctx context.Context) (*model.Answer, error) {
	if text, ok := d.lines.Late(); ok {
		d.line("-- typed before the request below, not used:")
		d.printHead(text, "")
	}
	d.showRequest()
	for {
		line, err := d.ask(ctx, d.agentName()+">")
		if err != nil {
			return nil, err
		}
		answer, err := d.handle(ctx, strings.TrimSpace(line))
		if answer != nil || err != nil {
			return answer, err
		}
	}
}

// ask shows a prompt and returns the next line. It reads nothing if the prompt
// could not be written.
func (d *dialog) ask(ctx context.Context, prompt string) (string, error) {
	if d.prompt(prompt); d.err != nil {
		return "", d.err
	}
	return d.lines.Next(ctx)
}

// toolLike matches a word that was probably meant as a tool: a number, or parts
// joined as in read_file. As the text of an answer, a typo would end the turn.
var toolLike = textutil.LazyPattern(`^([0-9]+|[A-Za-z0-9]+([_.-][A-Za-z0-9]+)+)$`)

// handle acts on a line. The answer is nil if the line does not complete one.
func (d *dialog) handle(ctx context.Context, line string) (*model.Answer, error) {
	switch {
	case line == "":
		d.line("type text, or the number of a tool; /help shows more")
		return nil, nil
	case strings.HasPrefix(line, "//"):
		return textAnswer(model.FinishEnd, line[1:]), nil
	case line[0] == '/':
		return d.command(line), nil
	}
	if t, ok := d.findTool(line); ok {
		return d.askArguments(ctx, t)
	}
	if toolLike().MatchString(line) {
		d.line("no tool %s; /end %[1]s answers with this text", shorten(line))
		return nil, nil
	}
	return textAnswer(model.FinishEnd, line), nil
}

const help = `text          answer, and end the turn
NUMBER, NAME  call a tool; its arguments are asked for as JSON
//text        answer with text that begins with /
/end [TEXT]   answer with TEXT, also if it looks like a tool or a command
/say TEXT     text to the user; the turn goes on
/wait         no answer until a message arrives
/all          show the whole conversation
/system       show what the runtime tells the agent
/help         this list`

// command runs a line that begins with "/". The answer is nil if it only shows
// something.
func (d *dialog) command(line string) *model.Answer {
	name, text, _ := strings.Cut(line, " ")
	switch text = strings.TrimSpace(text); {
	case name == "/end":
		return textAnswer(model.FinishEnd, text)
	case name == "/say" && text != "":
		return textAnswer(model.FinishContinue, text)
	case name == "/say":
		d.line("/say sends a text to the user; write it as /say TEXT")
	case line == "/wait":
		return textAnswer(model.FinishWait, "")
	case line == "/all":
		d.showItems(d.request.Items, d.printAll)
	case line == "/system":
		for _, text := range [...]string{d.request.System, d.request.Opening, d.request.Note} {
			if text != "" {
				d.printAll(text)
			}
		}
	case line == "/help":
		d.printAll(help)
	default:
		d.line("no command %s; /help lists them, // begins a text with /", shorten(line))
	}
	return nil
}

func textAnswer(finish model.FinishReason, text string) *model.Answer {
	return &model.Answer{Text: strings.ToValidUTF8(text, "\uFFFD"), Finish: finish}
}

// findTool returns the tool that word names, by its number in the list or by name.
func (d *dialog) findTool(word string) (toolChoice, bool) {
	i := slices.IndexFunc(d.tools, func(t toolChoice) bool { return t.name == word })
	if n, err := strconv.Atoi(word); err == nil && 0 < n && n <= len(d.tools) {
		i = n - 1
	}
	if i < 0 {
		return toolChoice{}, false
	}
	return d.tools[i], true
}

// askArguments asks for the arguments of t until they fit its schema. The answer is nil
// if the person goes back.
func (d *dialog) askArguments(ctx context.Context, t toolChoice) (*model.Answer, error) {
	d.showTool(t)
	for {
		in := &jsonInput{ctx: ctx, dialog: d}
		args, err := in.readValue()
		switch {
		case in.err == errBack:
			d.line("nothing is called")
			return nil, nil
		case in.err != nil:
			return nil, in.err
		case err == nil:
			err = t.check(args)
		}
		if err == nil {
			call := model.Call{Name: t.name, Args: args}
			return &model.Answer{Calls: []model.Call{call}, Finish: model.FinishToolCalls}, nil
		}
		d.line("these arguments cannot be used:")
		d.printHead(err.Error(), "")
	}
}

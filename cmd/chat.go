package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// chat is a conversation at the terminal with the first agent of an open task. The goroutine of run
// owns its fields.
type chat struct {
	c           *common
	api         *client.Client
	screen      *terminal
	live        bool // what is not complete yet is drawn on the screen, see chat_live.go
	interactive bool // a person at a terminal writes the lines
	view        *lineView
	signals     <-chan os.Signal
	start       func(ctx context.Context, text string) (identity.TaskID, error) // starts the open task

	task  identity.TaskID // "" until the first line
	agent string          // the first agent of the task

	questions *questioner      // of the task; nil until it has started
	lines     <-chan inputLine // of the input
	early     []inputLine      // messages that were typed before a question of a tool, taken from lines

	events      <-chan chatEvent // of the task; nil until it has started
	busy        bool             // the agent answers
	interrupted bool             // Ctrl-C was pressed since the prompt, or since the line was sent
	printed     string           // what is printed of the answer in progress
	midLine     io.Writer        // where the last output has not ended its line; nil if it has
	partial     string           // with live: the line of the answer that has not ended, printable
	progress    progress         // of the answer in progress; its usage counts the whole conversation
}

// chatEvent is an event of the task, or the error that ended the stream.
type chatEvent struct {
	journal.Event
	err error
}

func newChat(c *common, api *client.Client, screen *terminal, signals <-chan os.Signal) *chat {
	t := &chat{c: c, api: api, screen: screen, view: newLineView(screen), signals: signals, interactive: isTerminalInput(c.in)}
	if _, ok := screen.currentSize(); ok && isTerminal(c.out) && !c.plain() {
		t.live = true
	} else {
		screen.disableArea()
	}
	return t
}

// run talks until the input ends, Ctrl-C is pressed twice, or the task ends.
func (t *chat) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.lines = t.readLines(ctx)
	redraws, stop := t.redraws()
	defer stop()
	t.greet()
	t.prompt()
	for {
		if line, ok := t.nextEarly(); ok {
			if err := t.handleLine(ctx, line); err != nil {
				return err
			}
			continue
		}
		input := t.lines
		if t.busy {
			input = nil // lines wait until the answer is complete
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-redraws:
			t.redraw()
		case s := <-t.signals:
			if s != os.Interrupt || t.interrupt(ctx) {
				return t.end(ctx)
			}
		case line, ok := <-input:
			if !ok {
				return t.end(ctx)
			}
			if err := t.handleLine(ctx, line); err != nil {
				return err
			}
		case e := <-t.events:
			if e.err != nil {
				return e.err
			}
			if over, err := t.show(e.Event); over || err != nil {
				return err
			}
			if err := t.questions.handle(ctx, e.Event); err != nil {
				return err
			}
		}
	}
}

// maxChatLine is the largest size of a line of input in bytes.
const maxChatLine = 1 << 20

// inputLine is a line of input, or the error that ended it.
type inputLine struct {
	text string
	err  error
}

// maxEarlyLines is how many lines of a person are read before they are used. So a line that was typed
// before a question is known to be no answer.
const maxEarlyLines = 256

// readLines yields the lines of the input until they end or ctx does. A read of a terminal cannot be
// interrupted, so the goroutine may outlast ctx, until the process exits.
func (t *chat) readLines(ctx context.Context) <-chan inputLine {
	ahead := 0
	if t.interactive {
		ahead = maxEarlyLines
	}
	lines := make(chan inputLine, ahead)
	send := func(line inputLine) bool {
		select {
		case lines <- line:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(t.c.in)
		scanner.Buffer(nil, maxChatLine)
		for scanner.Scan() {
			if !send(inputLine{text: scanner.Text()}) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			send(inputLine{err: fmt.Errorf("read the next line: %w", err)})
		}
	}()
	return lines
}

// nextEarly returns the next line that was typed before a question of a tool. It reports false if there
// is none, or if the agent answers.
func (t *chat) nextEarly() (inputLine, bool) {
	if t.busy || len(t.early) == 0 {
		return inputLine{}, false
	}
	line := t.early[0]
	t.early = t.early[1:]
	return line, true
}

// handleLine sends a line to the agent. The conversation ends if that fails, or if the line could not be read.
func (t *chat) handleLine(ctx context.Context, line inputLine) error {
	err := line.err
	if err == nil {
		err = t.say(ctx, line.text)
	}
	if err != nil {
		return errors.Join(err, t.end(ctx))
	}
	return nil
}

// say sends a line to the agent. The first one starts the task.
func (t *chat) say(ctx context.Context, line string) error {
	t.midLine = nil // the terminal has echoed the line
	if strings.TrimSpace(line) == "" {
		t.prompt()
		return nil
	}
	t.markBusy()
	t.interrupted = false
	if t.task != "" {
		_, err := t.api.SendMessage(ctx, t.agent, client.MessageRequest{Text: line})
		return err
	}
	id, err := t.start(ctx, line)
	if err != nil {
		return err
	}
	task, err := t.api.FindTask(ctx, string(id))
	if err != nil {
		return err
	}
	t.task, t.agent = id, string(task.Agent)
	t.questions = remoteQuestioner(func() *client.Client { return t.api }, string(id), promptWriter{t.screen})
	if t.interactive {
		t.questions.next, t.questions.begin = t.nextLine, t.beginQuestion
	}
	t.events = t.follow(ctx)
	return nil
}

// beginQuestion makes room for the question of a tool. Other output is held back until end is called.
// The lines that were typed before are no answers.
func (t *chat) beginQuestion() (end func()) {
	t.breakLine()
	end = t.screen.holdOutput()
	for {
		select {
		case line, ok := <-t.lines:
			if ok {
				t.early = append(t.early, line)
				continue
			}
		default:
		}
		return end
	}
}

// nextLine returns the next line of the person, as the answer to a question of a tool. Ctrl-C and the
// end of the input cancel the question.
func (t *chat) nextLine(ctx context.Context) (string, error) {
	select {
	case line, ok := <-t.lines:
		if !ok {
			return "", io.EOF
		}
		return line.text, line.err
	case <-t.signals:
		return "", context.Canceled
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// follow yields the events of the task until it ends or ctx does.
func (t *chat) follow(ctx context.Context) <-chan chatEvent {
	events := make(chan chatEvent)
	go func() {
		for e, err := range t.api.TaskEvents(ctx, string(t.task), 0, journal.WaitForMore) {
			select {
			case events <- chatEvent{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

// show prints an event. It reports whether the conversation is over.
func (t *chat) show(e journal.Event) (over bool, err error) {
	t.progress.addUsage(e)
	if ended, ok := e.Body.(journal.TaskEnded); ok {
		return true, t.showEnd(ended)
	}
	if paused, ok := e.Body.(journal.TaskPaused); ok {
		t.note(fmt.Sprintf("the task is paused: %s; go on with: %s task retry %s%s", paused.Reason, programName(), t.task, t.c.dataFlag()))
		return true, errReported
	}
	if sent, ok := e.Body.(journal.MessageSent); ok && t.live && sent.Message.From == "user" {
		return false, nil // the person reads it above
	}
	if string(e.Agent) != t.agent || t.showOwn(e.Body) {
		t.note(t.view.format(e))
	}
	return false, nil
}

// showOwn prints what the agent of the conversation says. It reports whether the event has a
// line of its own, too.
func (t *chat) showOwn(body journal.EventBody) (line bool) {
	switch b := body.(type) {
	case journal.ModelDelta:
		t.showDelta(b)
	case journal.ModelAnswered:
		return t.showAnswer(b.Answer)
	case journal.MessageSent: // the person has just written it, or read it as the answer
		return b.Message.From != "user" && b.Message.To != "user"
	case journal.TurnFailed:
		if t.breakLine(); b.Code == errcode.TurnAborted {
			t.note("the answer is interrupted")
			t.endTurn()
			return false
		}
	}
	return true
}

// showDelta prints a part of an answer.
func (t *chat) showDelta(d journal.ModelDelta) {
	t.markBusy() // also when it goes on by itself, with a message of another agent
	if d.Restart {
		t.breakLine()
		t.printed = ""
	}
	t.write(d.Text)
	t.printed += d.Text
}

// showAnswer prints the rest of an answer. It reports as showOwn does.
func (t *chat) showAnswer(a model.Answer) (line bool) {
	switch {
	case a.Finish == model.FinishResult: // the end of the task has the same text
		return false
	case a.Finish.IsUnusable():
		t.finishUnusableAnswer(a)
		return a.Repair != model.RepairContinue // its text goes on
	}
	t.finishAnswer(a.Text)
	if a.Finish.EndsTurn() {
		t.endTurn()
	}
	return true
}

// showEnd prints how the task has ended.
func (t *chat) showEnd(e journal.TaskEnded) error {
	t.breakLine()
	if org.TaskStatus(e.Status) == org.Done {
		var text string
		if json.Unmarshal(e.Result, &text) != nil {
			text = string(e.Result)
		}
		t.finishAnswer(text)
		t.note("the agent has ended the conversation")
		return nil
	}
	t.note(fmt.Sprintf("the task has ended: %s: %s", e.Code, e.Error))
	return errReported
}

// markBusy notes that the agent answers.
func (t *chat) markBusy() {
	if !t.busy {
		t.busy, t.progress.start = true, time.Now()
	}
}

// endTurn asks for the next line.
func (t *chat) endTurn() {
	t.busy, t.interrupted, t.printed = false, false, ""
	t.redraw()
	t.prompt()
}

// greet tells a person at the terminal what a line is, and how to end.
func (t *chat) greet() {
	if t.interactive {
		t.note("each line is a message to the agent; Ctrl-C interrupts its answer, Ctrl-D ends the conversation")
	}
}

// prompt asks for a line if a person is at the terminal.
func (t *chat) prompt() {
	if t.interactive {
		t.breakLine()
		fmt.Fprint(t.c.err, "> ")
		t.midLine = t.c.err
	}
}

// interrupt handles Ctrl-C. It reports true for the second one, which ends the conversation.
func (t *chat) interrupt(ctx context.Context) bool {
	if t.interrupted {
		return true
	}
	t.interrupted = true
	if !t.busy || t.task == "" {
		t.note("press Ctrl-C again, or Ctrl-D, to end the conversation")
		return false
	}
	if _, err := t.api.AbortTurn(ctx, t.agent); err != nil && errcode.CodeOf(err) != errcode.Conflict {
		t.note(err.Error())
	}
	return false
}

// endTimeout limits how long the end of a conversation waits for the cancelled task.
const endTimeout = 10 * time.Second

// end cancels the task and prints where the conversation is recorded.
func (t *chat) end(ctx context.Context) error {
	t.breakLine()
	if t.task == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_, err := t.api.CancelTask(ctx, string(t.task), "the conversation has ended")
	if err == nil {
		t.note(fmt.Sprintf("the conversation is recorded: %s task show %s%s", programName(), t.task, t.c.dataFlag()))
	}
	return err
}

// finishAnswer completes the text of an answer and ends its line.
func (t *chat) finishAnswer(text string) {
	t.printRest(text)
	t.breakLine()
	t.printed = ""
}

// printRest prints what is missing of a text, of which parts are printed already. Parts may be
// missing, because they are sent without acknowledgement.
func (t *chat) printRest(text string) {
	rest, ok := strings.CutPrefix(text, t.printed)
	if !ok {
		t.breakLine()
		rest = text
	}
	t.write(rest)
}

// finishUnusableAnswer completes the text of an answer that cannot be used. What a continuation
// adds is printed on the same line.
func (t *chat) finishUnusableAnswer(a model.Answer) {
	switch {
	case a.Repair == model.RepairContinue:
		t.printRest(a.Text)
		t.printed = a.Text
	case strings.TrimSpace(a.Text) != "":
		t.finishAnswer(a.Text)
	}
}

// write prints a part of an answer on stdout.
func (t *chat) write(text string) {
	if text == "" {
		return
	}
	if t.live {
		t.writeLive(text)
		return
	}
	if t.midLine != t.c.out {
		t.breakLine()
	}
	if isTerminal(t.c.out) {
		text = textutil.SanitizeLines(text)
	}
	fmt.Fprint(t.c.out, text)
	if t.midLine = t.c.out; strings.HasSuffix(text, "\n") {
		t.midLine = nil
	}
}

// breakLine ends a line that has begun.
func (t *chat) breakLine() {
	if t.midLine != nil {
		fmt.Fprintln(t.midLine)
		t.midLine = nil
	}
	if t.partial != "" {
		line := t.partial + "\n"
		t.partial = ""
		t.draw(line)
	}
}

// note prints a line on stderr; "" prints nothing.
func (t *chat) note(line string) {
	if line == "" {
		return
	}
	t.breakLine()
	if line = textutil.Sanitize(line) + "\n"; t.live {
		t.draw(line)
		return
	}
	fmt.Fprint(t.c.err, line)
}

package cmd

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// eventOf returns an event of an agent in the role root, a second after its task began.
func eventOf(agent identity.AgentID, b journal.EventBody) journal.Event {
	return journal.Event{At: time.Unix(1000, 0), Agent: agent, Role: "root", Body: b}
}

// newTestTree returns a tree on a terminal, 12 seconds after the start of the task.
func newTestTree(t *testing.T, columns, rows int) (*treeView, *fakeTerminal) {
	f := newFakeTerminal(t, columns, rows)
	return newTreeView(newTerminal(f), func() time.Time { return time.Unix(1012, 0) }), f
}

// showAll shows events and draws what is not drawn yet.
func (v *treeView) showAll(t *testing.T, events ...journal.Event) {
	t.Helper()
	for _, e := range events {
		if err := v.show(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.draw(""); err != nil {
		t.Fatal(err)
	}
}

// Events that the tree does not show are printed above it.
func TestTreeView_Draws(t *testing.T) {
	const atWork, idle = "12s · 1 of 1 agent at work\n", "12s · 0 of 1 agent at work\n"
	log := "+ root  may call nothing\n"
	tests := []struct {
		name  string
		body  journal.EventBody
		added string // above the tree
		tree  string
	}{
		{"first text", journal.ModelDelta{Text: "he"}, "", "root  thinking  0 calls\n  │ he\n" + atWork},
		{"further text", journal.ModelDelta{Text: "llo"}, "", "root  thinking  0 calls\n  │ hello\n" + atWork},
		{"call", journal.ModelDelta{Tool: "read_file", Args: "{"}, "", "root  thinking  0 calls\n  │ hello\n  │ read_file {\n" + atWork},
		{"another try", journal.ModelDelta{Restart: true}, "", "root  thinking  0 calls\n" + atWork},
		{"note", journal.ModelDelta{Note: "retrying"}, "~ root  retrying\n", "root  thinking  0 calls\n" + atWork},
		{"plan", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, Plan: []model.PlanStep{{Tool: "read_file"}}}}, "  root  plans to call read_file\n", "root  thinking  0 calls\n" + atWork},
		{"invalid plan", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, PlanError: "not JSON"}}, "! root  invalid plan: not JSON\n", "root  thinking  0 calls\n" + atWork},
		{"summary", journal.ContextCompressed{Items: 7}, "  root  summarizes its first 7 entries\n", "root  thinking  0 calls\n" + atWork},
		{"refusal", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishToolCalls, Stop: model.Refusal}}, "~ root  the model refused to answer\n", "root  thinking  0 calls\n" + atWork},
		{"allowed call", journal.ToolCall{Call: "c", Tool: "read_file", Decision: journal.Allowed}, "", "root  calling read_file  1 call\n" + atWork},
		{"result of the call", journal.ToolResult{Call: "c"}, "", "root  thinking  1 call\n" + atWork},
		{"truncated answer", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, Stop: model.Length}}, "~ root  answer truncated at maxTokens\n", "root  waiting  1 call\n" + idle},
		{"a message wakes", journal.MessageSent{Message: model.Message{From: "user", To: "r", Payload: []byte(`{"text":"hi"}`)}}, "  user → root  hi\n", "root  thinking  1 call\n" + atWork},
		{"result", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishResult}}, "", "root  waiting  1 call\n" + idle},
		{"a delayed message does not", journal.MessageSent{Message: model.Message{From: "user", To: "r", Payload: []byte(`{"text":"hi"}`)}, Due: "later"}, "  user → root  hi  (due at later)\n", "root  waiting  1 call\n" + idle},
		{"dropped message", journal.MailDropped{Count: 1}, "~ root  the task ended with 1 unread message\n", "root  waiting  1 call\n" + idle},
		{"dropped messages", journal.MailDropped{Count: 3, Delayed: 1}, "~ root  the task ended with 3 unread messages\n", "root  waiting  1 call\n" + idle},
		{"failure", journal.TurnFailed{Code: errcode.TurnAborted, Message: "stop"}, "! root  turn_aborted: stop\n", "root  waiting (turn_aborted)  1 call\n" + idle},
		{"text again", journal.ModelDelta{Text: "half"}, "", "root  thinking  1 call\n  │ half\n" + atWork},
		{"failure while it writes", journal.TurnFailed{Code: errcode.TurnAborted, Message: "stop"}, "! root  turn_aborted: stop\n", "root  waiting (turn_aborted)  1 call\n" + idle},
		{"end of the task", journal.TaskEnded{}, "", "root  finished (turn_aborted)  1 call\n"},
	}
	view, terminal := newTestTree(t, 80, 30)
	view.showAll(t, eventOf("r", journal.AgentSpawned{}))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			terminal.t = t
			view.showAll(t, eventOf("r", tt.body))
			log += tt.added
			terminal.want(log + tt.tree)
		})
	}
}

// After a lost connection an answer in progress comes again from its start.
func TestTreeView_DropsPartialAnswers(t *testing.T) {
	view, terminal := newTestTree(t, 80, 30)
	view.showAll(t, eventOf("r", journal.AgentSpawned{}), eventOf("r", journal.ModelDelta{Text: "half"}))
	view.dropPartials()
	view.showAll(t, eventOf("r", journal.ModelDelta{Text: "ha"}))
	terminal.want("+ root  may call nothing\nroot  thinking  0 calls\n  │ ha\n12s · 1 of 1 agent at work\n")
}

// Nothing is written when nothing has changed.
func TestTreeView_WritesChangesOnly(t *testing.T) {
	writes := 0
	out := writerFunc(func(text []byte) (int, error) {
		writes++
		return len(text), nil
	})
	view := newTreeView(&terminal{out: out, size: func() screenSize { return screenSize{80, 24} }}, func() time.Time { return time.Unix(1012, 0) })
	view.showAll(t, eventOf("r", journal.AgentSpawned{}))
	writes = 0
	view.showAll(t, eventOf("r", journal.ToolCall{Call: "c", Tool: "read_file", Decision: journal.Allowed}))
	if view.showAll(t); writes != 1 {
		t.Errorf("%d writes, want 1", writes)
	}
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// The line below the tree counts what all answers took, also those of an earlier process.
func TestTreeView_ShowsTokensAndCost(t *testing.T) {
	view, terminal := newTestTree(t, 80, 30)
	usage := func(output int, estimated bool) journal.EventBody {
		return journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishToolCalls, Usage: model.TokenUsage{Input: 100, Output: output, Cost: 1_500_000, Currency: "EUR", Estimated: estimated}}}
	}
	view.learn(journal.Event{At: time.Unix(1, 0), Agent: "r", Role: "root", Body: usage(1, false)})
	view.showAll(t, eventOf("r", usage(2, false)), eventOf("r", journal.ContextCompressed{Usage: model.TokenUsage{Input: 7}}))
	terminal.want("  root  summarizes its first 0 entries\n12s · 210 tokens · cost 0.003000 EUR · 0 of 0 agents at work\n")
	view.showAll(t, eventOf("r", usage(3, true)))
	terminal.want("  root  summarizes its first 0 entries\n12s · 313 tokens, partly estimated · cost 0.004500 EUR · 0 of 0 agents at work\n")
}

// The time goes on while no event comes. close leaves the tree, and later text below it.
func TestTreeView_RedrawsUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeTerminal(t, 80, 30)
		s := newTerminal(f)
		view := newTreeView(s, time.Now)
		view.startRedraws()
		defer view.close()
		spawned := eventOf("r", journal.AgentSpawned{})
		spawned.At = time.Now()
		if err := view.show(spawned); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"0s", "3s", "1m03s", "1h01m"} {
			synctest.Wait()
			f.want("+ root  may call nothing\nroot  starting  0 calls\n" + want + " · 1 of 1 agent at work\n")
			time.Sleep(map[string]time.Duration{"0s": 3 * time.Second, "3s": time.Minute, "1m03s": time.Hour}[want])
		}
		view.close()
		fmt.Fprintln(s, "later")
		f.want("+ root  may call nothing\nroot  starting  0 calls\nlater\n")
	})
}

// The area fits on any terminal: no line wraps, and not more lines are drawn than it has rows.
// A fakeTerminal fails the test if the cursor leaves what is visible.
func TestTreeView_FitsAnyTerminal(t *testing.T) {
	for _, size := range []screenSize{{1, 1}, {2, 2}, {7, 3}, {20, 4}, {33, 5}, {80, 6}, {80, 24}, {200, 100}} {
		view, terminal := newTestTree(t, size.columns, size.rows)
		for i := range 30 {
			id := identity.AgentID(fmt.Sprint("agent", i))
			parent := identity.AgentID("")
			if i > 0 {
				parent = identity.AgentID(fmt.Sprint("agent", i-1))
			}
			view.showAll(t, eventOf(id, journal.AgentSpawned{Parent: parent}), eventOf(id, journal.ModelDelta{Text: strings.Repeat("漢字 and words ", i)}))
			view.mu.Lock()
			area := view.areaLines(size)
			view.mu.Unlock()
			if n := rowsOf(area, size.columns); n > size.rows-1 {
				t.Fatalf("%v: %d rows are drawn:\n%s", size, n, strings.Join(area, "\n"))
			}
		}
		view.showAll(t, eventOf("agent3", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd}}))
		if got := terminal.String(); size.columns > 30 && size.rows < 24 && !strings.Contains(got, "more agent") {
			t.Errorf("%v: nothing says how many agents are left out:\n%s", size, got)
		}
		view.close()
	}
}

// After a change of the size, the old area is erased and the new one fits.
func TestTreeView_FollowsResize(t *testing.T) {
	view, terminal := newTestTree(t, 80, 30)
	text := strings.TrimSpace(strings.Repeat("many words ", 9))
	view.showAll(t, eventOf("r", journal.AgentSpawned{}), eventOf("r", journal.ModelDelta{Text: text}))
	const log = "+ root  may call nothing\n"
	terminal.want(log + "root  thinking  0 calls\n  │ many words many words many words many words many words many words many\n  │ words many words many words\n12s · 1 of 1 agent at work\n")
	terminal.resize(30, 20)
	view.showAll(t, eventOf("r", journal.ModelDelta{Text: " more"}))
	terminal.want(log + "root  thinking  0 calls\n  │ many words many words\n  │ many words many words\n  │ many words many words\n  │ many words more\n12s · 1 of 1 agent at work\n")
	terminal.resize(80, 30)
	view.showAll(t, eventOf("r", journal.ModelDelta{Restart: true}))
	terminal.want(log + "root  thinking  0 calls\n12s · 1 of 1 agent at work\n")
}

// What a model generates cannot move the cursor, and a character that is cut does no harm.
func TestTreeView_GeneratedTextMovesNothing(t *testing.T) {
	view, terminal := newTestTree(t, 60, 30)
	view.showAll(t, eventOf("r", journal.AgentSpawned{}), eventOf("r", journal.ModelDelta{Text: "a\x1b[2J\x1b[H\rb\bc\u202ed\x9be\tf\xff"}))
	terminal.want("+ root  may call nothing\nroot  thinking  0 calls\n  │ a�[2J�[H b�c�d�e f�\n12s · 1 of 1 agent at work\n")
	view.showAll(t, eventOf("r", journal.ModelDelta{Text: strings.Repeat("漢", maxPartial)}))
	for _, s := range hostileStrings() {
		view.showAll(t, eventOf("r", journal.ModelDelta{Restart: true, Text: s, Tool: s, Args: s}))
	}
}

// While a person is asked, nothing is written between question and answer.
func TestTerminal_LockHoldsBackOutput(t *testing.T) {
	var out strings.Builder
	s := &terminal{out: &out}
	say := func(text string) {
		t.Helper()
		if err := s.update(text, nil); err != nil {
			t.Fatal(err)
		}
	}
	say("before\n")
	unlock := s.holdOutput()
	say("one\n")
	if _, err := (promptWriter{s}).Write([]byte("worker> ")); err != nil {
		t.Fatal(err)
	}
	say("two\n")
	if want := "before\nworker> "; out.String() != want {
		t.Errorf("while locked: %q, want %q", out.String(), want)
	}
	unlock()
	say("after\n")
	if want := "before\nworker> one\ntwo\nafter\n"; out.String() != want {
		t.Errorf("after unlock: %q, want %q", out.String(), want)
	}
	defer s.holdOutput()()
	say(strings.Repeat("x", maxBuffered+1))
	if !strings.HasSuffix(out.String(), "x") {
		t.Error("more than maxBuffered is held back")
	}
}

// A question is printed below what is drawn. What is drawn later comes below the question.
func TestTerminal_QuestionLeavesArea(t *testing.T) {
	fake := newFakeTerminal(t, 40, 10)
	s := newTerminal(fake)
	if err := s.update("log\n", []string{"tree 1"}); err != nil {
		t.Fatal(err)
	}
	release := s.holdOutput()
	if _, err := (promptWriter{s}).Write([]byte("Accept? y\n")); err != nil {
		t.Fatal(err)
	}
	release()
	if err := s.update("more\n", []string{"tree 2"}); err != nil {
		t.Fatal(err)
	}
	fake.want("log\ntree 1\nAccept? y\nmore\ntree 2\n")
}

// A person is asked one question at a time.
func TestTerminal_OneQuestionAtATime(t *testing.T) {
	s := &terminal{out: io.Discard}
	release := s.holdOutput()
	if s.asking.TryLock() {
		t.Fatal("a second question would be shown")
	}
	release()
	s.holdOutput()()
}

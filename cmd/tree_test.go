package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// writeRecorder records each Write.
type writeRecorder struct{ list []string }

func (w *writeRecorder) Write(text []byte) (int, error) {
	w.list = append(w.list, string(text))
	return len(text), nil
}

// take returns the writes since the last take, without cursor moves.
func (w *writeRecorder) take() []string {
	list := []string{}
	for _, text := range w.list {
		list = append(list, stripCursorMoves(text))
	}
	w.list = nil
	return list
}

// eventOf returns an event of an agent in the role root.
func eventOf(agent identity.AgentID, b journal.EventBody) journal.Event {
	return journal.Event{Agent: agent, Role: "root", Body: b}
}

// Events that the tree does not show are printed above it, and nothing is drawn without a
// change.
func TestTreeView_Draws(t *testing.T) {
	const tree = "root  thinking  0 calls\n"
	tests := []struct {
		name string
		body journal.EventBody
		want []string
	}{
		{"first text delta", journal.ModelDelta{Text: "he"}, []string{tree}},
		{"further text delta", journal.ModelDelta{Text: "llo"}, []string{}},
		{"call delta", journal.ModelDelta{Tool: "read_file", Args: "{"}, []string{}},
		{"note", journal.ModelDelta{Note: "retrying"}, []string{"~ root  retrying\n" + tree}},
		{"plan", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, Plan: []model.PlanStep{{Tool: "read_file"}}}}, []string{"  root  plans to call read_file\n" + tree}},
		{"invalid plan", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, PlanError: "not JSON"}}, []string{"! root  invalid plan: not JSON\n" + tree}},
		{"summary", journal.ContextCompressed{Items: 7}, []string{"  root  summarizes its first 7 entries\n" + tree}},
		{"refusal", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishToolCalls, Stop: model.Refusal}}, []string{"~ root  the model refused to answer\n" + tree}},
		{"allowed call", journal.ToolCall{Call: "c", Tool: "read_file", Decision: journal.Allowed}, []string{"root  calling read_file  1 calls\n"}},
		{"result of the call", journal.ToolResult{Call: "c"}, []string{"root  thinking  1 calls\n"}},
		{"truncated answer", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, Stop: model.Length}}, []string{"~ root  answer truncated at maxTokens\nroot  waiting  1 calls\n"}},
		{"thinking again", journal.ModelDelta{Text: "more"}, []string{"root  thinking  1 calls\n"}},
		{"result", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishResult}}, []string{"root  waiting  1 calls\n"}},
		{"dropped message", journal.MailDropped{Count: 1}, []string{"~ root  the task ended with 1 unread message\nroot  waiting  1 calls\n"}},
		{"dropped messages", journal.MailDropped{Count: 3, Delayed: 1}, []string{"~ root  the task ended with 3 unread messages\nroot  waiting  1 calls\n"}},
		{"failure", journal.TurnFailed{Code: errcode.TurnAborted, Message: "stop"}, []string{"! root  turn_aborted: stop\nroot  waiting (turn_aborted)  1 calls\n"}},
		{"end of the task", journal.TaskEnded{}, []string{"root  finished (turn_aborted)  1 calls\n"}},
	}
	var out writeRecorder
	view := &treeView{lines: newLineView(&terminal{out: &out, width: 80}, false)}
	if err := view.event(eventOf("r", journal.AgentSpawned{})); err != nil {
		t.Fatal(err)
	}
	out.take()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := view.event(eventOf("r", tt.body)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.take()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
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
	unlock := s.lock()
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
	defer s.lock()()
	say(strings.Repeat("x", maxBuffered+1))
	if !strings.HasSuffix(out.String(), "x") {
		t.Error("more than maxBuffered is held back")
	}
}

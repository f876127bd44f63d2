package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// writes keeps each Write.
type writes struct{ list []string }

func (w *writes) Write(text []byte) (int, error) {
	w.list = append(w.list, string(text))
	return len(text), nil
}

// take gives what was written since, without the moves.
func (w *writes) take() []string {
	list := []string{}
	for _, text := range w.list {
		list = append(list, withoutMoves(text))
	}
	w.list = nil
	return list
}

func of(agent identity.AgentID, b journal.Body) journal.Event {
	return journal.Event{Agent: agent, Role: "root", Body: b}
}

// What is not in the tree stands above it, and nothing is drawn for nothing.
func TestWhatATreeDraws(t *testing.T) {
	const tree = "root  answers  0 calls\n"
	tests := []struct {
		name string
		body journal.Body
		want []string
	}{
		{"the first piece of an answer changes what the agent does", journal.ModelDelta{Text: "he"}, []string{tree}},
		{"a further piece draws nothing", journal.ModelDelta{Text: "llo"}, []string{}},
		{"nor does a piece of a call", journal.ModelDelta{Tool: "read_file", Args: "{"}, []string{}},
		{"a note is said", journal.ModelDelta{Note: "it is asked again"}, []string{"~ root  it is asked again\n" + tree}},
		{"a plan is said", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, Plan: []model.Step{{Tool: "read_file"}}}}, []string{"  root  plans to call read_file\n" + tree}},
		{"what is no plan is said", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, PlanError: "no JSON"}}, []string{"! root  its plan does not hold: no JSON\n" + tree}},
		{"a summary is said", journal.ContextCompressed{Items: 7}, []string{"  root  sums up its first 7 entries\n" + tree}},
		{"a refusal is said", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishToolCalls, Stop: model.Refusal}}, []string{"~ root  its model refused to answer\n" + tree}},
		{"a call that is allowed counts", journal.ToolCall{Tool: "read_file", Decision: journal.Allowed}, []string{"root  read_file  1 calls\n"}},
		{"an end that was cut off is said", journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, Stop: model.Length}}, []string{"~ root  its answer was cut off at its length (maxTokens)\nroot  done  1 calls\n"}},
	}
	var out writes
	view := &treeView{lines: newLineView(&terminal{out: &out, width: 80}, false)}
	if err := view.event(of("r", journal.AgentSpawned{})); err != nil {
		t.Fatal(err)
	}
	out.take()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := view.event(of("r", tt.body)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.take()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// While a person is asked nobody writes between the question and the answer.
func TestAQuestionIsNotWrittenOver(t *testing.T) {
	var out strings.Builder
	s := &terminal{out: &out}
	say := func(text string) {
		t.Helper()
		if err := s.update(text, nil); err != nil {
			t.Fatal(err)
		}
	}
	say("before\n")
	over := s.lock()
	say("one\n")
	if _, err := (promptWriter{s}).Write([]byte("worker> ")); err != nil {
		t.Fatal(err)
	}
	say("two\n")
	if want := "before\nworker> "; out.String() != want {
		t.Errorf("while it is open: %q, want %q", out.String(), want)
	}
	over()
	say("after\n")
	if want := "before\nworker> one\ntwo\nafter\n"; out.String() != want {
		t.Errorf("after it: %q, want %q", out.String(), want)
	}
	defer s.lock()()
	say(strings.Repeat("x", maxHeld+1))
	if !strings.HasSuffix(out.String(), "x") {
		t.Error("more is kept back than may be")
	}
}

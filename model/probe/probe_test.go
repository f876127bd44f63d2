package probe_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/probe"
)

// fakeModel answers its requests with the deltas of its steps, in order.
type fakeModel struct {
	steps    []any // an error, or a list of deltas
	requests []model.Request
}

// Generate implements model.Model.
func (f *fakeModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		step := f.steps[len(f.requests)]
		f.requests = append(f.requests, r)
		if err, ok := step.(error); ok {
			yield(model.AnswerDelta{}, err)
			return
		}
		for _, delta := range step.([]model.AnswerDelta) {
			if !yield(delta, nil) {
				return
			}
		}
	}
}

var errBroken = errors.New("broken")

// answer returns deltas with parts of text and the whole answer.
func answer(a model.Answer, parts ...string) (list []model.AnswerDelta) {
	for _, text := range parts {
		list = append(list, model.AnswerDelta{Text: text})
	}
	return append(list, model.AnswerDelta{Answer: &a})
}

func call(name, args string) model.Answer {
	return model.Answer{Calls: []model.Call{{Name: name, Args: []byte(args)}}, Usage: model.TokenUsage{Input: 5, Output: 2}}
}

func TestAskModel_ReportsAbilities(t *testing.T) {
	ready := model.Answer{Text: "ready", Usage: model.TokenUsage{Input: 10, Output: 1}}
	right := call("remember_word", `{"word":"blue"}`)
	for _, test := range []struct {
		name  string
		steps []any
		want  probe.Report
	}{
		{"all", []any{answer(ready, "rea", "dy"), answer(right)}, probe.Report{Text: "ready", Streams: true, CalledTool: true, Usage: model.TokenUsage{Input: 15, Output: 3}}},
		{"whole answers", []any{answer(ready, "ready"), answer(right)}, probe.Report{Text: "ready", CalledTool: true, Usage: model.TokenUsage{Input: 15, Output: 3}}},
		{"another tool", []any{answer(ready), answer(call("blue", `{}`))}, probe.Report{Text: "ready", Usage: model.TokenUsage{Input: 15, Output: 3}}},
		{"no word", []any{answer(ready), answer(call("remember_word", `"blue"`))}, probe.Report{Text: "ready", Usage: model.TokenUsage{Input: 15, Output: 3}}},
		{"text in place of a call", []any{answer(ready), answer(ready)}, probe.Report{Text: "ready", Usage: model.TokenUsage{Input: 20, Output: 2}}},
		{"tools are rejected", []any{answer(ready), errBroken}, probe.Report{Text: "ready", ToolErr: errBroken, Usage: ready.Usage}},
		{"no answer", []any{errBroken}, probe.Report{Err: errBroken}},
	} {
		m := &fakeModel{steps: test.steps}
		got := probe.AskModel(t.Context(), m)
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(probe.Report{}, "Time"), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if len(m.requests) != len(test.steps) {
			t.Errorf("%s: %d requests, want %d", test.name, len(m.requests), len(test.steps))
		}
	}
}

func TestAskText_RejectsEmptyAnswers(t *testing.T) {
	for _, steps := range [][]any{{answer(model.Answer{})}, {answer(model.Answer{}, "a")}, {[]model.AnswerDelta{}}} {
		if got := probe.AskText(t.Context(), &fakeModel{steps: steps}); got.Err == nil {
			t.Errorf("got %+v", got)
		}
	}
}

func Example() {
	m := &fakeModel{steps: []any{
		answer(model.Answer{Text: "ready"}, "rea", "dy"),
		answer(call("remember_word", `{"word":"blue"}`)),
	}}
	r := probe.AskModel(context.Background(), m)
	fmt.Println(r.Err, r.Text, r.Streams, r.CalledTool)
	// Output: <nil> ready true true
}

package retry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/retry"
)

// broken is a model whose provider is down.
type broken struct{}

func (broken) Generate(context.Context, model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		yield(model.AnswerDelta{}, model.PermanentError(errcode.LLMCallFailed, errors.New("no such host"), "main is not reachable"))
	}
}

// working is a model that answers.
type working struct{}

func (working) Generate(context.Context, model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		yield(model.AnswerDelta{Answer: &model.Answer{Text: "Good day!", Finish: model.FinishEnd}}, nil)
	}
}

// A second model answers when the first fails.
func ExampleNewFallback() {
	main := retry.New(broken{}, retry.Config{Name: "main", Concurrency: 8})
	m := retry.NewFallback(nil, retry.Named{Name: "main", Model: main}, retry.Named{Name: "small", Model: working{}})
	for delta, err := range m.Generate(context.Background(), model.Request{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if delta.Answer != nil {
			fmt.Println(delta.Answer.Text)
		}
	}
	// Output: Good day!
}

package model_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/rolecall/rolecall/model"
)

// echo is a model that repeats the newest message.
type echo struct{}

func (echo) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		newest := r.Items[len(r.Items)-1].Message
		yield(model.AnswerDelta{Answer: &model.Answer{Value: newest.Payload, Finish: model.FinishEnd}}, nil)
	}
}

// A model gets the whole conversation and yields an answer.
func Example() {
	var m model.Model = echo{}
	hello := model.Item{Message: &model.Message{From: "user", Payload: []byte(`{"text":"hello"}`)}}
	for delta, err := range m.Generate(context.Background(), model.Request{Items: []model.Item{hello}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if delta.Answer != nil {
			fmt.Println(delta.Answer.Finish, string(delta.Answer.Value))
		}
	}
	// Output: end {"text":"hello"}
}

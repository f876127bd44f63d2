package rolecalltest

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Script is a model with the answers of agents by the names of their roles. Each agent gets
// the answers of its role in order. An agent without an answer left fails its turn. A Script
// keeps no state, so that it goes on after a restart. It is safe for concurrent use.
type Script map[string][]rolecall.ModelAnswer

// Generate implements rolecall.Model.
func (s Script) Generate(ctx context.Context, r rolecall.ModelRequest) iter.Seq2[model.AnswerDelta, error] {
	return rolecall.ModelFunc(s.answer).Generate(ctx, r)
}

func (s Script) answer(_ context.Context, r rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
	given := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			given++
		}
	}
	if list := s[r.Self.Role]; given < len(list) {
		return list[given], nil
	}
	return rolecall.ModelAnswer{}, errcode.New(errcode.LLMCallFailed, "the script has no answer %d for the role %q", given+1, r.Self.Role)
}

// Call returns an answer that calls a tool. It panics if args does not marshal to JSON.
func Call(name string, args any) rolecall.ModelAnswer {
	text, err := json.Marshal(args)
	if err != nil {
		panic("rolecalltest: the arguments of " + name + " are not JSON: " + err.Error())
	}
	return rolecall.ModelAnswer{Finish: rolecall.FinishToolCalls, Calls: []rolecall.ModelCall{{Name: name, Args: text}}}
}

// End returns an answer that ends the turn of its agent with a text.
func End(text string) rolecall.ModelAnswer {
	return rolecall.ModelAnswer{Finish: rolecall.FinishEnd, Text: text}
}

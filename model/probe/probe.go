// Package probe asks a model two short questions and reports what it can do: answer,
// stream its answer, and call a tool.
//
//	report := probe.AskModel(ctx, openai.New(config))
//	if report.Err != nil {
//		return report.Err // the model does not answer
//	}
//
// It sends each request once and runs no tool.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// Report is what a model did. If Err is set, only Err and Time have values.
type Report struct {
	Err        error            // why it does not answer; nil if it does
	Text       string           // of its first answer
	Streams    bool             // the first answer came in several parts
	CalledTool bool             // it called the tool that it was asked to call
	ToolErr    error            // why the second question has no answer; nil if it has
	Time       time.Duration    // of the first answer
	Usage      model.TokenUsage // of both answers; zero if the server does not report it
}

// errEmpty is the error for an answer without content.
var errEmpty = errors.New("the model returned an empty answer")

// AskModel asks m both questions. It asks the second one only if the first is answered.
func AskModel(ctx context.Context, m model.Model) Report {
	r := AskText(ctx, m)
	if r.Err != nil {
		return r
	}
	answer, _, err := ask(ctx, m, toolQuestion())
	if err != nil {
		r.ToolErr = err
		return r
	}
	r.CalledTool, r.Usage = callsTool(answer), r.Usage.Add(answer.Usage)
	return r
}

// AskText asks m the first question only.
func AskText(ctx context.Context, m model.Model) (r Report) {
	began := time.Now()
	first, parts, err := ask(ctx, m, question("Answer with one word: ready"))
	r.Time = time.Since(began)
	if err == nil && first.Text == "" && len(first.Calls) == 0 {
		err = errEmpty
	}
	if err != nil {
		r.Err = err
		return r
	}
	r.Text, r.Streams, r.Usage = first.Text, parts > 1, first.Usage
	return r
}

// ask returns the answer to a request, and the number of its parts that came before it
// was complete.
func ask(ctx context.Context, m model.Model, r model.Request) (answer *model.Answer, parts int, err error) {
	for delta, err := range m.Generate(ctx, r) {
		switch {
		case err != nil:
			return nil, 0, err
		case delta.Answer != nil:
			return delta.Answer, parts, nil
		case delta.Text != "" || delta.Args != "":
			parts++
		}
	}
	return nil, 0, errEmpty
}

// question returns a request with one message of the user.
func question(text string) model.Request {
	payload, _ := json.Marshal(map[string]string{"text": text}) // a text always marshals
	return model.Request{
		System: "You are tested. Do exactly what the message says.",
		Items:  []model.Item{{Message: &model.Message{From: "user", Payload: payload}}},
	}
}

// toolName is the tool that a model is asked to call.
const toolName = "remember_word"

// toolQuestion returns a request that offers the tool and asks for a call.
func toolQuestion() model.Request {
	r := question("Call the tool " + toolName + ` with the word "blue". Do not answer with text.`)
	r.Tools = []string{toolName}
	r.ToolJSON, _ = tool.MarshalTools([]tool.Definition{{
		Name: toolName, Description: "Remembers a word.",
		Input: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string","description":"The word."}},"required":["word"]}`),
	}}) // a constant marshals
	return r
}

// callsTool reports whether an answer calls the tool with a word.
func callsTool(a *model.Answer) bool {
	for _, c := range a.Calls {
		if c.Name == toolName && gjson.GetBytes(c.Args, "word").Type == gjson.String {
			return true
		}
	}
	return false
}

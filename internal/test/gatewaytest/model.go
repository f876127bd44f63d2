package gatewaytest

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/rolecall/rolecall/model"
)

// ModelFunc is a model that answers for all agents with a pure function of the
// request.
type ModelFunc func(r model.Request) model.Answer

// Generate implements model.Model.
func (m ModelFunc) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		a := m(r)
		for _, item := range r.Items {
			if item.Message != nil {
				a.MessagesRead++
			}
		}
		yield(model.AnswerDelta{Answer: &a}, nil)
	}
}

// EndAnswer returns an answer that ends the turn.
func EndAnswer(text string) model.Answer { return model.Answer{Finish: model.FinishEnd, Text: text} }

// ToolCallAnswer returns an answer that calls one tool.
func ToolCallAnswer(name string, args any) model.Answer {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: name, Args: text}}}
}

// LastResultField returns a field of the last tool result.
func LastResultField(r model.Request, field string) string {
	for i := len(r.Items) - 1; i >= 0; i-- {
		if res := r.Items[i].Result; res != nil {
			var v map[string]any
			_ = json.Unmarshal(res.Content, &v)
			text, _ := v[field].(string)
			return text
		}
	}
	return ""
}

// CountAnswers returns the number of the agent's answers so far.
func CountAnswers(r model.Request) int {
	n := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			n++
		}
	}
	return n
}

// TeamModel makes root spawn a clerk. The clerk stores an artifact, calls a
// tool that it does not have, and reports the error; then root answers "done".
func TeamModel(r model.Request) model.Answer {
	brief := map[string]any{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
	switch step := CountAnswers(r); {
	case r.Self.Role == "clerk" && step == 0:
		return ToolCallAnswer("put_artifact", map[string]any{"type": "text", "content": "figures"})
	case r.Self.Role == "clerk" && step == 1:
		return ToolCallAnswer("run_command", map[string]any{"command": "true"})
	case r.Self.Role == "clerk":
		return EndAnswer(LastResultField(r, "error"))
	case step == 0:
		return ToolCallAnswer("create_role", map[string]any{"name": "clerk", "rolePrompt": "file", "toolGroups": []string{"artifact", "workspace"}})
	case step == 1:
		return ToolCallAnswer("spawn_agent_with_task", map[string]any{"roleId": LastResultField(r, "id"), "taskBrief": brief, "initialMessage": "go"})
	}
	for _, item := range r.Items {
		if m := item.Message; m != nil && m.From != "user" {
			return EndAnswer("done")
		}
	}
	return model.Answer{Finish: model.FinishWait}
}

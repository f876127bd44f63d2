package gateway_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// The caller that started a task reads and answers what its tools ask over the API. Another caller
// learns nothing of it.
func TestToolQuestions_AnsweredOverAPI(t *testing.T) {
	f := newFixture(t, func(r model.Request) model.Answer {
		for _, item := range r.Items {
			if item.Result != nil {
				return model.Answer{Finish: model.FinishEnd, Text: string(item.Result.Content)}
			}
		}
		return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: "deploy", Args: json.RawMessage(`{}`)}}}
	})
	schema := json.RawMessage(`{"type":"object","properties":{"machine":{"type":"string","default":"db-1"}}}`)
	deploy, err := tool.New("deploy", "asks", func(ctx context.Context, _ struct{}) (string, error) {
		a, err := tool.Ask(ctx, tool.Question{Name: "where", Message: "Which machine?", Schema: schema, Server: "ops"})
		return string(a.Action) + string(a.Content), err
	}, &tool.Options{Asks: tool.AsksMidway})
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "ops", deploy)
	role, other := f.AddRole(t, "worker", "ops"), f.AddRole(t, "other", "ops")
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "go", Role: "worker", Caller: identity.ByCaller("ann", role.ID)})
	if err != nil {
		t.Fatal(err)
	}
	ann, eve, task := f.WithCaller(t, role.ID).LocalClient(), f.WithCaller(t, other.ID).LocalClient(), string(id)
	for e, err := range ann.TaskEvents(t.Context(), task, 0, true) {
		if err != nil {
			t.Fatal(err)
		}
		if _, asked := e.Body.(journal.QuestionAsked); asked {
			break
		}
	}
	list, err := ann.ListToolQuestions(t.Context(), task)
	if err != nil || len(list.Questions) != 1 || list.Questions[0].Message != "Which machine?" || list.Questions[0].Server != "ops" || string(list.Questions[0].Schema) != string(schema) {
		t.Fatalf("%+v, %v", list, err)
	}
	question := list.Questions[0].ID
	if _, err := eve.ListToolQuestions(t.Context(), task); errcode.CodeOf(err) != errcode.TaskNotFound {
		t.Errorf("another caller lists: %v", err)
	}
	for _, try := range []struct {
		as       *client.Client
		question string
		answer   client.ToolAnswer
		want     errcode.Code
	}{
		{eve, question, client.ToolAnswer{Action: tool.Accept}, errcode.TaskNotFound},
		{ann, "none", client.ToolAnswer{Action: tool.Accept}, errcode.QuestionNotFound},
		{ann, question, client.ToolAnswer{Action: "perhaps"}, errcode.InvalidArguments},
		{ann, question, client.ToolAnswer{Action: tool.Accept, Content: json.RawMessage(`{"machine":1}`)}, errcode.InvalidArguments},
		{ann, question, client.ToolAnswer{Action: tool.Accept}, ""},
		{ann, question, client.ToolAnswer{Action: tool.Accept}, errcode.QuestionNotFound},
	} {
		if _, err := try.as.AnswerToolQuestion(t.Context(), task, try.question, try.answer); errcode.CodeOf(err) != try.want {
			t.Errorf("%s %+v: %v, want %q", try.question, try.answer, err, try.want)
		}
	}
	done, err := f.Runtime.WaitTask(t.Context(), id)
	if err != nil || string(done.Result) != `"\"accept{\\\"machine\\\":\\\"db-1\\\"}\""` {
		t.Errorf("%s, %v", done.Result, err)
	}
}

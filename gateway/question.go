package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// listToolQuestions returns the questions of a task that wait for an answer.
func (a *api) listToolQuestions(r *http.Request) (any, error) {
	task, err := a.ownTask(r)
	if err != nil {
		return nil, err
	}
	return a.questionsOf(task.ID), nil
}

// answerToolQuestion answers a question of a task, and returns the questions that
// still wait.
//
// Errors: the errors of runtime.Runtime.AnswerQuestion.
func (a *api) answerToolQuestion(r *http.Request) (any, error) {
	answer, err := decode[wire.ToolAnswer](r)
	if err != nil {
		return nil, err
	}
	task, err := a.ownTask(r)
	if err != nil {
		return nil, err
	}
	if err := a.rt.AnswerQuestion(auth.SenderOf(r), task.ID, r.PathValue("question"), tool.Answer(answer)); err != nil {
		return nil, err
	}
	return a.questionsOf(task.ID), nil
}

// questionsOf converts the open questions of a task.
func (a *api) questionsOf(task identity.TaskID) wire.ToolQuestions {
	out := wire.ToolQuestions{Questions: []wire.ToolQuestion{}}
	for _, q := range a.rt.ListQuestions(task) {
		out.Questions = append(out.Questions, wire.ToolQuestion{
			ID: q.ID, Agent: q.Agent, Call: q.Call, Tool: q.Tool, Server: q.Server, Message: q.Message, Schema: q.Schema, URL: q.URL, Asked: q.Asked, Until: q.Until,
		})
	}
	return out
}

package runtime_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// impossible is a schema that no value fits.
var impossible = json.RawMessage(`{"not":{}}`)

// addCounter adds a role whose agents' results must fit a schema.
func (fx *fixture) addCounter(t *testing.T, schema json.RawMessage) org.Role {
	t.Helper()
	role, err := fx.CreateRole(t.Context(), newCall(identity.ByOperator("test")), org.RoleSpec{Name: "counter", Result: &org.ResultSpec{Schema: schema}})
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// hireCounter returns the answers of a root that passes on what its agent of the role counter
// reports.
func hireCounter(r model.Request) model.Answer {
	switch answerCount(r) {
	case 0:
		return callTools("find_role_by_name", obj{"name": "counter"})
	case 1:
		return callTools("spawn_agent_with_task", obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief(), "initialMessage": "go"})
	}
	if got := lastReport(r); got != nil {
		return model.Answer{Finish: model.FinishEnd, Value: got}
	}
	return waitForMessage()
}

// The schema of a role holds for a task whose first agent has the role, unless the task has
// its own.
func TestRoleResult_OfFirstAgent(t *testing.T) {
	for name, c := range map[string]struct {
		role, task json.RawMessage
		answers    []string // the last one repeats
		want       string
		code       errcode.Code
		asked      int
	}{
		"an object":          {countSchema, nil, []string{`{"count":3}`}, `{"count":3}`, "", 1},
		"after words":        {countSchema, nil, []string{"three", `{"count":3}`}, `{"count":3}`, "", 2},
		"a number":           {json.RawMessage(`{"type":"integer"}`), nil, []string{"3"}, `3`, "", 1},
		"a list":             {json.RawMessage(`{"type":"array","items":{"type":"integer"}}`), nil, []string{`[1, 2]`}, `[1,2]`, "", 1},
		"a text":             {json.RawMessage(`{"enum":["yes","no"]}`), nil, []string{"perhaps", "yes"}, `"yes"`, "", 2},
		"a quoted text":      {json.RawMessage(`{"enum":["yes","no"]}`), nil, []string{`"yes"`}, `"yes"`, "", 1},
		"the task's":         {countSchema, json.RawMessage(`{"type":"integer"}`), []string{"3"}, `3`, "", 1},
		"impossible":         {impossible, nil, []string{"3"}, "", errcode.InvalidResult, 2},
		"the task's is free": {impossible, json.RawMessage(`{}`), []string{"3"}, `3`, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer {
				asked++
				return endWith(c.answers[min(asked, len(c.answers))-1])
			}))
			fx.addCounter(t, c.role)
			fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "count", Role: "counter", Schema: c.task}), c.want, c.code)
			if asked != c.asked {
				t.Errorf("the model was asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// The parent of an agent gets the result that its role wants, or the error invalid_result.
func TestRoleResult_OfAgentBelow(t *testing.T) {
	script := func(value string) model.Answer {
		return model.Answer{Finish: model.FinishResult, Value: json.RawMessage(value)}
	}
	for name, c := range map[string]struct {
		schema  json.RawMessage
		answers []model.Answer // the last one repeats
		want    string         // in the result of the task
		asked   int
	}{
		"at once":            {countSchema, []model.Answer{endWith("```json\n{\"count\": 3}\n```")}, `{"count":3}`, 1},
		"after words":        {countSchema, []model.Answer{endWith("three"), endWith(`{"count":3}`)}, `{"count":3}`, 2},
		"after calls":        {countSchema, []model.Answer{endWith("three"), callTools("get_context_status", obj{}), endWith(`{"count":3}`)}, `{"count":3}`, 3},
		"never":              {countSchema, []model.Answer{endWith("three")}, `"errorType":"invalid_result"`, 2},
		"impossible":         {impossible, []model.Answer{endWith("3")}, `"errorType":"invalid_result"`, 2},
		"of a script":        {countSchema, []model.Answer{script(`{"count":3}`)}, `{"count":3}`, 1},
		"of a script, wrong": {countSchema, []model.Answer{script(`{"count":"3"}`)}, `"errorType":"invalid_result"`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
				if r.Self.Role == "root" {
					return hireCounter(r)
				}
				if !strings.Contains(r.System, string(c.schema)) {
					t.Errorf("the prompt does not name the schema:\n%s", r.System)
				}
				asked++
				return c.answers[min(asked, len(c.answers))-1]
			}))
			fx.addCounter(t, c.schema)
			task := fx.run(t, org.TaskSpec{Text: "count"})
			if !strings.Contains(string(task.Result), c.want) || asked != c.asked {
				t.Errorf("got %s after %d answers, want %s after %d", task.Result, asked, c.want, c.asked)
			}
		})
	}
}

// An agent that has given a typed result, or failed to, is asked once more again in its next
// turn.
func TestRoleResult_EachTurnIsCorrectedOnce(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role != "root" {
			return endWith("three")
		}
		reports := 0
		for _, m := range messages(r) {
			if m.From != "user" {
				reports++
			}
		}
		switch {
		case reports == 1 && lastItemIsMessage(r):
			return callTools("send_message", obj{"to": messages(r)[len(messages(r))-1].From, "payload": obj{"text": "again"}})
		case reports == 1:
			return waitForMessage()
		case reports == 2:
			return endWith("done")
		}
		return hireCounter(r)
	}))
	fx.addCounter(t, countSchema)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "count"}), `"done"`, "")
	corrections, failures := 0, 0
	for _, m := range bodiesOf[journal.MessageReceived](t, fx) {
		if m.Message.From == "rolecall" {
			corrections++
		}
	}
	for _, f := range bodiesOf[journal.TurnFailed](t, fx) {
		if f.Code == errcode.InvalidResult {
			failures++
		}
	}
	if corrections != 2 || failures != 2 {
		t.Errorf("%d corrections and %d failures, want 2 and 2", corrections, failures)
	}
}

// A script that returns a wrong value after its first message reads the second one in another
// turn.
func TestRoleResult_WrongValueKeepsLaterMessages(t *testing.T) {
	turns, sent := 0, make(chan struct{})
	allSent := sync.OnceFunc(func() { close(sent) })
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role != "root" {
			if answerCount(r) == 0 { // with the next request it gets all messages
				<-sent
				return callTools("get_context_status", obj{})
			}
			turns++
			return model.Answer{Finish: model.FinishResult, Value: json.RawMessage(`"three"`), MessagesRead: turns}
		}
		reports := 0
		for _, m := range messages(r) {
			if m.From != "user" {
				reports++
			}
		}
		switch {
		case answerCount(r) == 2:
			id := lastResult(r)["id"]
			return callTools("send_message", obj{"to": id, "payload": obj{"text": "second"}}, "send_message", obj{"to": id, "payload": obj{"text": "third"}})
		case reports == 3:
			return endWith("done")
		case answerCount(r) > 2:
			allSent()
			return waitForMessage()
		}
		return hireCounter(r)
	}))
	fx.addCounter(t, countSchema)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "count"}), `"done"`, "")
	if turns != 3 {
		t.Errorf("%d turns, want 3", turns)
	}
}

// An open task has no result, so the schema of its role does not count.
func TestRoleResult_NotOfOpenTask(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if strings.Contains(r.System, "Your result") {
			t.Errorf("the prompt names the schema:\n%s", r.System)
		}
		return model.Answer{Finish: model.FinishResult, Value: json.RawMessage(`"over"`)}
	}))
	fx.addCounter(t, countSchema)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "talk", Role: "counter", Open: true}), `"over"`, "")
}

func TestCreateRole_RejectsResultSchema(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer { return endWith("x") }))
	for _, schema := range []string{``, `{`, `[]`, `true`, `{"type":"strong"}`, `{"description":"` + strings.Repeat("x", 20_000) + `"}`} {
		_, err := fx.CreateRole(t.Context(), newCall(identity.ByOperator("test")), org.RoleSpec{Name: "counter", Result: &org.ResultSpec{Schema: json.RawMessage(schema)}})
		if errcode.CodeOf(err) != errcode.InvalidRole {
			t.Errorf("%.60s: %v", schema, err)
		}
	}
}

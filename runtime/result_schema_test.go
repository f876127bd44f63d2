package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

var countSchema = json.RawMessage(`{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"],"additionalProperties":false}`)

// A language model whose result does not fit is asked once more.
func TestResult_FitsSchema(t *testing.T) {
	for name, c := range map[string]struct {
		answers []model.Answer // the last one repeats
		want    string
		code    errcode.Code
		asked   int
	}{
		"at once":                {[]model.Answer{endWith(`{"count": 3}`)}, `{"count":3}`, "", 1},
		"in a code fence":        {[]model.Answer{endWith("```json\n{\"count\":3}\n```")}, `{"count":3}`, "", 1},
		"as a value":             {[]model.Answer{{Finish: model.FinishEnd, Value: json.RawMessage(`{"count":3}`)}}, `{"count":3}`, "", 1},
		"after words":            {[]model.Answer{endWith("There are three."), endWith(`{"count":3}`)}, `{"count":3}`, "", 2},
		"after a wrong type":     {[]model.Answer{endWith(`{"count":"3"}`), endWith(`{"count":3}`)}, `{"count":3}`, "", 2},
		"a key twice":            {[]model.Answer{endWith(`{"count":1,"count":3}`)}, "", errcode.InvalidResult, 2},
		"never":                  {[]model.Answer{endWith("There are three.")}, "", errcode.InvalidResult, 2},
		"deep":                   {[]model.Answer{endWith(strings.Repeat("[", 100_000))}, "", errcode.InvalidResult, 2},
		"of a script":            {[]model.Answer{{Finish: model.FinishResult, Value: json.RawMessage(`{"count":3}`)}}, `{"count":3}`, "", 1},
		"of a script, not":       {[]model.Answer{{Finish: model.FinishResult, Value: json.RawMessage(`{"count":"3"}`)}}, "", errcode.InvalidResult, 1},
		"of a script, nothing":   {[]model.Answer{{Finish: model.FinishResult}}, "", errcode.InvalidResult, 1},
		"a fence without an end": {[]model.Answer{endWith("```json"), endWith("```")}, "", errcode.InvalidResult, 2},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
				if !strings.Contains(r.Opening, string(countSchema)) {
					t.Errorf("the prompt does not name the schema:\n%s", r.Opening)
				}
				asked++
				return c.answers[min(asked, len(c.answers))-1]
			}))
			fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "count", Schema: countSchema}), c.want, c.code)
			if asked != c.asked {
				t.Errorf("the model was asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// A retry tells the agent again why its result does not fit, and asks its model.
func TestResult_RetryAsksAgain(t *testing.T) {
	for _, restart := range []bool{false, true} {
		asked := 0
		cfg := fixtureConfig{dir: fastTempDir(t), model: answerFunc(func(r model.Request) model.Answer {
			if asked++; asked > 1 && (!lastItemIsMessage(r) || !strings.Contains(string(r.Items[len(r.Items)-1].Message.Payload), "does not fit its schema")) {
				t.Errorf("request %d does not end with the reason", asked)
			}
			if asked < 5 {
				return endWith(`{"count":"three"}`)
			}
			return endWith(`{"count":3}`)
		})}
		fx := cfg.open(t)
		task := fx.run(t, org.TaskSpec{Text: "count", Schema: countSchema})
		for _, want := range []int{2, 3, 4} { // asked at first twice, then once for each retry
			fx.wantResult(t, task, "", errcode.InvalidResult)
			if asked != want {
				t.Fatalf("the model was asked %d times, want %d", asked, want)
			}
			if restart {
				fx.shutdown(t)
				fx = cfg.open(t)
			}
			if err := fx.RetryTask(t.Context(), task.ID, operator, org.ModelAllowance{}); err != nil {
				t.Fatal(err)
			}
			task = fx.wait(t, task.ID)
		}
		fx.wantResult(t, task, `{"count":3}`, "")
	}
}

// The schema of a task is for its first agent only.
func TestResult_AgentsBelowAreFree(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "worker":
			if strings.Contains(r.System+r.Opening, "Your result") {
				t.Errorf("the prompt of the worker names the schema:\n%s", r.Opening)
			}
			return endWith("worked")
		case answerCount(r) < 2:
			return delegate(r, "worker")
		case lastItemIsMessage(r):
			return endWith(`{"count":1}`)
		}
		return waitForMessage()
	}))
	fx.wantResult(t, fx.run(t, org.TaskSpec{Schema: countSchema}), `{"count":1}`, "")
}

func TestStartTask_RejectsResultSchema(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer { return endWith("x") }))
	for _, schema := range []string{``, `{`, `[]`, `"x"`, `true`, `{"type":"strong"}`, `{"type":"object","$ref":"https://example.com/x"}`,
		`{"type":"object","properties":{"a":{"pattern":"("}}}`, `{"type":"object","description":"` + strings.Repeat("x", 20_000) + `"}`} {
		_, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: identity.ByOperator("test"), Schema: json.RawMessage(schema)})
		if errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%.60s: %v", schema, err)
		}
	}
}

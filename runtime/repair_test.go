package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/replay"
	"github.com/rolecall/rolecall/org"
)

// answered is a language model that returns these answers in order, then repeats the last.
type answered struct {
	modelRequests
	answers []model.Answer
}

// language returns the model.
func (s *answered) language() model.Model {
	return withWindow(100_000, s.model(func(_ context.Context, _ model.Request, n int) (model.Answer, error) {
		return s.answers[min(n, len(s.answers)-1)], nil
	}))
}

// cut returns an answer that ended early.
func cut(why model.StopReason, text string) model.Answer {
	return model.Answer{Finish: model.FinishEnd, Stop: why, Text: text}
}

// writtenLook is a call of find_role_by_name, which root has, written as text.
const writtenLook = `{"name": "find_role_by_name", "arguments": {"name": "x"}}`

func TestRepair_AnswersOfFirstAgent(t *testing.T) {
	for _, c := range []struct {
		name       string
		answers    []model.Answer
		result     string
		incomplete model.StopReason
		code       errcode.Code
		record     string // finish and repair of the recorded answers
	}{
		{"whole", []model.Answer{endWith("a")}, `"a"`, "", "", "end"},
		{"cut once: the parts are joined", []model.Answer{cut(model.Length, "one, tw"), endWith("o, three")}, `"one, two, three"`, "", "", "repair(continue) end"},
		{"cut twice: incomplete", []model.Answer{cut(model.Length, "one, tw"), cut(model.Length, "o, th")}, `"one, two, th"`, model.Length, "", "repair(continue) end"},
		{"cut, and nothing to add", []model.Answer{cut(model.Length, "one"), endWith(" ")}, `"one "`, "", "", "repair(continue) end"},
		{"cut, then refused", []model.Answer{cut(model.Length, "one"), cut(model.Refusal, " No.")}, `"one No."`, model.Refusal, "", "repair(continue) end"},
		{"cut, then a call", []model.Answer{cut(model.Length, "one"), callTools("find_role_by_name", obj{"name": "x"}), endWith("two")}, `"two"`, "", "", "repair(continue) calls end"},
		{"refused", []model.Answer{cut(model.Refusal, "No.")}, `"No."`, model.Refusal, "", "end"},
		{"filtered", []model.Answer{cut(model.ContentFilter, "So f")}, `"So f"`, model.ContentFilter, "", "end"},
		{"empty once", []model.Answer{endWith(""), endWith("a")}, `"a"`, "", "", "repair(answer) end"},
		{"blank twice", []model.Answer{endWith(" \n"), endWith("\t")}, "", "", errcode.InvalidAnswer, "repair(answer) invalid(answer)"},
		{"empty, then cut once", []model.Answer{endWith(""), cut(model.Length, "one, "), endWith("two")}, `"one, two"`, "", "", "repair(answer) repair(continue) end"},
		{"call as text once", []model.Answer{endWith(writtenLook), callTools("find_role_by_name", obj{"name": "x"}), endWith("a")}, `"a"`, "", "", "repair(call) calls end"},
		{"call as text twice", []model.Answer{endWith(writtenLook), endWith("```json\n" + writtenLook + "\n```")}, "", "", errcode.InvalidAnswer, "repair(call) invalid(call)"},
		{"call as text in two parts", []model.Answer{cut(model.Length, writtenLook[:20]), endWith(writtenLook[20:]), endWith("a")}, `"a"`, "", "", "repair(continue) repair(call) end"},
		{"repairs of two answers", []model.Answer{endWith(""), callTools("find_role_by_name", obj{"name": "x"}), endWith(""), endWith("a")}, `"a"`, "", "", "repair(answer) calls repair(answer) end"},
		{"JSON that names no tool of the agent", []model.Answer{endWith(`{"name":"Ada","arguments":{}}`)}, `"{\"name\":\"Ada\",\"arguments\":{}}"`, "", "", "end"},
		{"a finish of the runtime", []model.Answer{{Finish: model.FinishRepair, Repair: model.RepairAnswer}}, "", "", errcode.LLMCallFailed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &answered{answers: c.answers}
			fx := openFixture(t, "", m.language())
			task := fx.run(t, org.TaskSpec{Text: "go"})
			fx.wantResult(t, task, c.result, c.code)
			if got := fx.answersOnRecord(t); task.Incomplete != c.incomplete || got != c.record {
				t.Errorf("incomplete %q, answers %s; want %q, %s", task.Incomplete, got, c.incomplete, c.record)
			}
			ended := eventsOf[journal.TaskEnded](t, fx)
			if got := ended[len(ended)-1].Body.(journal.TaskEnded).Incomplete; got != c.incomplete {
				t.Errorf("the event of the end has incomplete %q", got)
			}
			if asked := len(m.all()); asked != len(strings.Fields(c.record)) && c.record != "" {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// answersOnRecord lists the finishes of the recorded answers, with their repairs.
func (fx *fixture) answersOnRecord(t *testing.T) string {
	var list []string
	for _, e := range eventsOf[journal.ModelAnswered](t, fx) {
		a := e.Body.(journal.ModelAnswered).Answer
		text := string(a.Finish)
		if a.Repair != "" {
			text += "(" + string(a.Repair) + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// Models that are not language models mean what they say.
func TestRepair_OnlyLanguageModels(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer { return endWith("") }))
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go"}), `""`, "")
}

// The model reads why it is asked again, and afterwards only the answer that could be used.
func TestRepair_Conversation(t *testing.T) {
	m := &answered{answers: []model.Answer{cut(model.Length, "one, "), endWith("two")}}
	fx := openFixture(t, "", m.language())
	fx.run(t, org.TaskSpec{Text: "go"})
	var got []string
	for _, turn := range chat.BuildTurns(m.all()[1]) {
		got = append(got, fmt.Sprint(turn.Role, turn.Text))
	}
	want := []string{"0go", "1one, ", "0Your answer was cut at its maximum length. Continue exactly where it stops. Repeat nothing."}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// After invalid_answer a retry asks as if there had been no answer, with a repair of its own.
func TestRepair_Retry(t *testing.T) {
	m := &answered{answers: []model.Answer{endWith(""), endWith(""), endWith(""), endWith("a")}}
	fx := openFixture(t, "", m.language())
	task := fx.run(t, org.TaskSpec{Text: "go"})
	fx.wantResult(t, task, "", errcode.InvalidAnswer)
	if err := fx.RetryTask(t.Context(), task.ID, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, task.ID), `"a"`, "")
	if turns := chat.BuildTurns(m.all()[2]); len(turns) != 1 || turns[0].Text != "go" {
		t.Errorf("asked again with %+v", turns)
	}
}

// A parent reads why the answer of its agent is not whole.
func TestRepair_ParentReadsIncomplete(t *testing.T) {
	number := json.RawMessage(`{"type":"integer"}`)
	for _, c := range []struct {
		name   string
		worker []model.Answer
		schema json.RawMessage
		want   string
	}{
		{"cut", []model.Answer{cut(model.Length, "one, "), cut(model.Length, "two")}, nil, `{"text":"one, two","incomplete":"length"}`},
		{"filtered", []model.Answer{cut(model.ContentFilter, "So f")}, nil, `{"text":"So f","incomplete":"content_filter"}`},
		{"whole", []model.Answer{endWith("a")}, nil, `{"text":"a"}`},
		{"empty", []model.Answer{endWith("")}, nil, `"errorType":"invalid_answer"`},
		{"typed, and filtered twice", []model.Answer{cut(model.ContentFilter, "1")}, number, `"message":"the result is incomplete (content_filter)"`},
		{"typed, and filtered once", []model.Answer{cut(model.ContentFilter, "1"), endWith("2")}, number, `2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			worker := &answered{answers: c.worker}
			answer := worker.language().(windowModel).Model.(modelFunc)
			fx := openFixture(t, "", withWindow(100_000, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
				if r.Self.Role == "counter" {
					return answer(ctx, r)
				}
				return hireCounter(r), nil
			})))
			spec := org.RoleSpec{Name: "counter"}
			if c.schema != nil {
				spec.Result = &org.ResultSpec{Schema: c.schema}
			}
			if _, err := fx.CreateRole(t.Context(), newCall(operator), spec); err != nil {
				t.Fatal(err)
			}
			task := fx.run(t, org.TaskSpec{Text: "go"})
			if !strings.Contains(string(task.Result), c.want) {
				t.Errorf("the parent read %s, want %s\n%s", task.Result, c.want, fx.eventLog(t))
			}
		})
	}
}

// A JSON result that looks like a call stays a result where the role wants it.
func TestRepair_SchemaWantsWhatLooksLikeCall(t *testing.T) {
	m := &answered{answers: []model.Answer{endWith(writtenLook)}}
	fx := openFixture(t, "", m.language())
	schema := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name"]}`)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go", Schema: schema}), `{"name":"find_role_by_name","arguments":{"name":"x"}}`, "")
}

// The parts of a typed result are joined before it is compared with its schema.
func TestRepair_TypedResultInTwoParts(t *testing.T) {
	m := &answered{answers: []model.Answer{cut(model.Length, `{"count":`), endWith(`3}`)}}
	fx := openFixture(t, "", m.language())
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go", Schema: countSchema}), `{"count":3}`, "")
	if n := len(m.all()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// An agent may say nothing while an agent below it works, and reads its answer then.
func TestRepair_EmptyWhileAgentBelowWorks(t *testing.T) {
	said := make(chan struct{})
	var once sync.Once
	m := withWindow(100_000, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		switch {
		case r.Self.Parent != "":
			<-said
			return endWith("done"), nil
		case lastReport(r) != nil:
			return endWith("read " + string(lastReport(r))), nil
		case answerCount(r) == 2:
			defer once.Do(func() { close(said) })
			return endWith(" "), nil
		}
		return delegate(r, "clerk"), nil
	}))
	fx := openFixture(t, "", m)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go"}), `"read {\"text\":\"done\"}"`, "")
	if got := fx.answersOnRecord(t); strings.Contains(got, "repair") || !strings.Contains(got, "wait") {
		t.Errorf("recorded %s", got)
	}
}

// Wherever the process ends, the answer is continued after the restart.
func TestRepair_SurvivesCrashes(t *testing.T) {
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			cfg := fixtureConfig{dir: fastTempDir(t)}
			id := cfg.startCutTask(t)
			cfg.model = withWindow(100_000, answerFunc(continueList))
			ended := cfg.crashAtCommit(t, id, n, after)
			fx := cfg.open(t)
			if !ended {
				fx.resume(t, id)
			}
			task := fx.wait(t, id)
			if fx.wantResult(t, task, `"one, two"`, ""); task.Incomplete != "" {
				t.Errorf("commit %d: incomplete %s", n, task.Incomplete)
			}
			if fx.shutdown(t); ended && after {
				return
			}
		}
		if t.Failed() || n > 20 {
			t.Fatalf("stopped at commit %d", n)
		}
	}
}

// startCutTask starts a task and shuts down before its model has answered.
func (cfg fixtureConfig) startCutTask(t *testing.T) identity.TaskID {
	t.Helper()
	asked := make(chan struct{})
	cfg.model = withWindow(100_000, modelFunc(func(ctx context.Context, _ model.Request) (model.Answer, error) {
		close(asked)
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}))
	fx := cfg.open(t)
	id := fx.start(t, org.TaskSpec{Text: "go"})
	<-asked
	fx.shutdown(t)
	return id
}

// continueList answers with the beginning of a list, and continues it if it is asked to.
func continueList(r model.Request) model.Answer {
	if answerCount(r) == 0 {
		return cut(model.Length, "one, ")
	}
	return endWith("two")
}

// A recording of a repaired answer plays without its model.
func TestRepair_Replay(t *testing.T) {
	var file strings.Builder
	recorder := replay.NewRecorder(&file, nil)
	fx := openFixture(t, "", recorder.Wrap(withWindow(100_000, answerFunc(continueList))))
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go"}), `"one, two"`, "")
	player, err := replay.New("run.jsonl", []byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	again := openFixture(t, "", player)
	again.wantResult(t, again.run(t, org.TaskSpec{Text: "go"}), `"one, two"`, "")
	if got, want := again.answersOnRecord(t), fx.answersOnRecord(t); got != want || got != "repair(continue) end" {
		t.Errorf("played %s, recorded %s", got, want)
	}
}

// Only a text that is nothing but a call of one of the agent's tools counts as one.
func TestRepair_TextsThatCall(t *testing.T) {
	const look = `{"name":"find_role_by_name","arguments":{"name":"x"}}`
	for _, c := range []struct {
		text  string
		calls bool
	}{
		{look, true},
		{" \n" + look + "\n", true},
		{"```json\n" + look + "\n```", true},
		{"```\n" + look + "\n```", true},
		{"<tool_call>\n" + look + "\n</tool_call>", true},
		{"<tool_call>" + look + "</tool_call>\n<tool_call>" + look + "</tool_call>", true},
		{"<tool_call>" + look, true},
		{"[" + look + "," + look + "]", true},
		{`{"tool_calls":[` + look + `]}`, true},
		{`{"tool_calls":[{"id":"1","type":"function","function":` + look + `}]}`, true},
		{`{"name":"find_role_by_name","arguments":"{\"name\":\"x\"}"}`, true},
		{`{"type":"function","name":"find_role_by_name","parameters":{}}`, true},
		{`functions.find_role_by_name({"name":"x"})`, true},
		{"functions.find_role_by_name(\n  name=\"x\"\n);", true},
		{"<function=find_role_by_name>{\"name\":\"x\"}</function>", true},
		{"<tool_call>\n<function=find_role_by_name>\n<parameter=name>\nx\n</parameter>\n</function>\n</tool_call>", true},
		{`[TOOL_CALLS]find_role_by_name{"name":"x"}`, true},
		{`[TOOL_CALLS]find_role_by_name[ARGS]{"name":"x"}`, true},
		{"[TOOL_CALLS][" + look + "]", true},
		{"<|python_tag|>" + look, true},
		{"<function_call>" + look + "</function_call>", true},
		{`｛「name」：「find_role_by_name」，「arguments」：｛｝｝`, true},

		{"I call " + look, false},
		{look + " and more", false},
		{`{"name":"run_command","arguments":{}}`, false}, // not a tool of the agent
		{`{"name":"find_role_by_name"}`, false},
		{`{"name":"find_role_by_name","arguments":[1]}`, false},
		{`{"name":"find_role_by_name","arguments":{},"found":true}`, false},
		{`{"function":{"name":"find_role_by_name","arguments":{}},"found":true}`, false},
		{`[` + look + `,{"name":"other"}]`, false},
		{`[]`, false},
		{`[1,` + look + `]`, false},
		{`functions.run_command({})`, false},
		{`functions.find_role_by_name()`, true},
		{`functions.find_role_by_name(twice) found nothing (sorry)`, false},
		{`find_role_by_name{"name":"x"}`, false}, // without a mark
		{"<function=run_command></function>", false},
		{"<tool_call>" + look + "</tool_call> and more", false},
		{"Then <tool_call>" + look + "</tool_call>", false},
		{`Call functions.find_role_by_name({}) first.`, false},
		{"find_role_by_name", false},
		{"<tool_call></tool_call>", false},
		{`"` + strings.Repeat("x", 70<<10) + `"`, false},
	} {
		m := &answered{answers: []model.Answer{endWith(c.text), endWith("done")}}
		fx := openFixture(t, "", m.language())
		fx.run(t, org.TaskSpec{Text: "go"})
		if got := fx.answersOnRecord(t) == "repair(call) end"; got != c.calls {
			t.Errorf("%.100s: recorded %s", c.text, fx.answersOnRecord(t))
		}
		fx.shutdown(t)
	}
}

// A message that arrives while an answer is continued is read after it.
func TestRepair_MessageWaitsForContinuation(t *testing.T) {
	var fx *fixture
	var read []int // messages that the model had with each request
	m := withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		read = append(read, len(messages(r)))
		switch len(read) {
		case 1:
			if _, err := fx.SendMessage(context.Background(), newCall(operator), string(r.Self.ID), json.RawMessage(`{"text":"and three"}`), 0); err != nil {
				return model.Answer{}, err
			}
			return cut(model.Length, "one, "), nil
		case 2:
			return endWith("two"), nil
		}
		return endWith("three"), nil
	}))
	fx = openFixture(t, "", m)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go"}), `"three"`, "")
	if !slices.Equal(read, []int{1, 1, 2}) {
		t.Errorf("the model read %v messages", read)
	}
	if got := fx.answersOnRecord(t); got != "repair(continue) end end" {
		t.Errorf("recorded %s", got)
	}
}

// An answer that is continued stays in the conversation when the rest is summarized.
func TestRepair_ContinuesAfterCompression(t *testing.T) {
	beginning := strings.Repeat("one ", 3000)
	var asked []model.Request
	var fx *fixture
	fx = openFixture(t, "", withWindow(9000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		asked = append(asked, r)
		switch len(asked) {
		case 1:
			long := string(mustJSON(obj{"text": strings.Repeat("long ", 3300)}))
			_, err := fx.SendMessage(context.Background(), newCall(operator), string(r.Self.ID), json.RawMessage(long), 0)
			return endWith("ready"), err
		case 2:
			return cut(model.Length, beginning), nil
		case 3:
			return endWith("Summary."), nil
		}
		return endWith("two"), nil
	})))
	task := fx.run(t, org.TaskSpec{Text: "go"})
	fx.wantResult(t, task, string(mustJSON(beginning+"two")), "")
	if len(eventsOf[journal.ContextCompressed](t, fx)) != 1 || len(asked) != 4 {
		t.Fatalf("asked %d times\n%s", len(asked), fx.eventLog(t))
	}
	turns := chat.BuildTurns(asked[3])
	if n := len(turns); n < 3 || turns[n-2].Text != beginning || !strings.HasPrefix(turns[n-1].Text, "Your answer was cut") {
		t.Errorf("asked with %.300v", turns)
	}
}

package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// askFixture has the tool deploy, which asks for the name of a machine, and a role whose agent calls
// it once.
type askFixture struct {
	*fixture
	spec org.TaskSpec
}

func openAskFixture(t *testing.T, c fixtureConfig, ask func(ctx context.Context) (any, error)) askFixture {
	t.Helper()
	if c.model == nil {
		c.model = answerFunc(func(r model.Request) model.Answer {
			if len(results(r)) == 0 {
				return callTools("deploy", obj{})
			}
			return endWith(string(results(r)[0].Content))
		})
	}
	c.tools = []tool.Tool{newTool(t, "deploy", tool.Options{Asks: tool.AsksMidway}, func(ctx context.Context, _ obj) (any, error) { return ask(ctx) })}
	fx, spec := c.open(t), org.TaskSpec{Role: "worker", Text: "deploy"}
	if _, found := fx.Org().FindRole("worker"); found != nil {
		spec = fx.roleTask(t, org.RoleSpec{Prompt: "p", Use: groupSet("probe")})
	}
	return askFixture{fx, spec}
}

// within lets questions wait for so long.
func within(d time.Duration) func(*runtime.Config) {
	return func(c *runtime.Config) { c.QuestionTimeout = d }
}

const machineSchema = `{"type":"object","properties":{"machine":{"type":"string"},"force":{"type":"boolean","default":false}},"required":["machine"]}`

// askMachine asks for a machine.
func askMachine(ctx context.Context) (any, error) {
	a, err := tool.Ask(ctx, tool.Question{Message: "Which machine?", Schema: json.RawMessage(machineSchema)})
	return string(a.Action) + " " + string(a.Content), err
}

// waitQuestion waits until a task asks, and returns the question.
func (fx askFixture) waitQuestion(t *testing.T, task identity.TaskID) runtime.Question {
	t.Helper()
	fx.waitEvent(t, func(e journal.Event) bool { _, asked := e.Body.(journal.QuestionAsked); return asked && e.Task == task })
	list := fx.ListQuestions(task)
	if len(list) != 1 {
		t.Fatalf("the task has %d questions", len(list))
	}
	return list[0]
}

// quoted returns the result of a task whose agent ended with the JSON of a result.
func quoted(text string) string { return string(mustJSON(string(mustJSON(text)))) }

func yes(content string) tool.Answer {
	return tool.Answer{Action: tool.Accept, Content: json.RawMessage(content)}
}

// The person who started the task answers what a tool asks. Only that person and the operator see
// the question, and it is answered once.
func TestQuestion_AnsweredByStarter(t *testing.T) {
	fx := openAskFixture(t, fixtureConfig{}, askMachine)
	role, err := fx.Org().FindRole("worker")
	if err != nil {
		t.Fatal(err)
	}
	ann := identity.ByCaller("ann", role.ID)
	spec := fx.spec
	spec.Caller = ann
	task := fx.start(t, spec)
	q := fx.waitQuestion(t, task)
	if q.Tool != "deploy" || q.Message != "Which machine?" || q.Agent == "" || !q.Until.After(q.Asked) {
		t.Errorf("%+v", q)
	}
	for name, try := range map[string]struct {
		by     identity.Principal
		task   identity.TaskID
		id     string
		answer tool.Answer
		want   errcode.Code
	}{
		"another caller":       {identity.ByCaller("eve", role.ID), task, q.ID, yes(`{"machine":"x"}`), errcode.TaskNotFound},
		"an agent":             {identity.ByAgent(q.Agent), task, q.ID, yes(`{"machine":"x"}`), errcode.TaskNotFound},
		"nobody":               {identity.Principal{}, task, q.ID, yes(`{"machine":"x"}`), errcode.TaskNotFound},
		"another task":         {ann, "other", q.ID, yes(`{"machine":"x"}`), errcode.TaskNotFound},
		"another question":     {ann, task, "other", yes(`{"machine":"x"}`), errcode.QuestionNotFound},
		"an answer that is no": {ann, task, q.ID, yes(`{"machine":1}`), errcode.InvalidArguments},
		"no action":            {ann, task, q.ID, tool.Answer{}, errcode.InvalidArguments},
	} {
		if err := fx.AnswerQuestion(try.by, try.task, try.id, try.answer); errcode.CodeOf(err) != try.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fx.AnswerQuestion(ann, task, q.ID, yes(`{"machine":"db-1","x":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := fx.AnswerQuestion(ann, task, q.ID, yes(`{"machine":"db-2"}`)); errcode.CodeOf(err) != errcode.QuestionNotFound {
		t.Errorf("the second answer: %v", err)
	}
	fx.wantResult(t, fx.wait(t, task), quoted(`accept {"force":false,"machine":"db-1"}`), "")
	answered := bodiesOf[journal.QuestionAnswered](t, fx.fixture)
	if len(answered) != 1 || answered[0].By != ann.String() || string(answered[0].Content) != `{"force":false,"machine":"db-1"}` || len(fx.ListQuestions(task)) > 0 {
		t.Errorf("%+v", answered)
	}
}

// A question without an answer is declined at its deadline, and the call goes on.
func TestQuestion_DeclinedInTime(t *testing.T) {
	fx := openAskFixture(t, fixtureConfig{configure: within(10 * time.Millisecond)}, askMachine)
	task := fx.run(t, fx.spec)
	fx.wantResult(t, task, quoted("decline "), "")
	answered := bodiesOf[journal.QuestionAnswered](t, fx.fixture)
	if len(answered) != 1 || answered[0].Action != tool.Decline || answered[0].By != "" || answered[0].Reason == "" {
		t.Errorf("%+v", answered)
	}
	asked := bodiesOf[journal.QuestionAsked](t, fx.fixture)[0]
	if err := fx.AnswerQuestion(operator, task.ID, asked.ID, yes(`{"machine":"late"}`)); errcode.CodeOf(err) != errcode.QuestionNotFound {
		t.Errorf("a late answer: %v", err)
	}
}

// The end of a task ends its question.
func TestQuestion_EndsWithTask(t *testing.T) {
	fx := openAskFixture(t, fixtureConfig{}, askMachine)
	task := fx.start(t, fx.spec)
	q := fx.waitQuestion(t, task)
	if err := fx.CancelTask(t.Context(), task, "enough"); err != nil {
		t.Fatal(err)
	}
	fx.wait(t, task)
	fx.waitEvent(t, func(e journal.Event) bool {
		b, ok := e.Body.(journal.QuestionAnswered)
		return ok && b.Action == tool.Cancel
	})
	if err := fx.AnswerQuestion(operator, task, q.ID, yes(`{"machine":"x"}`)); errcode.CodeOf(err) != errcode.QuestionNotFound {
		t.Errorf("an answer after the end: %v", err)
	}
}

// A function that goes on after the end of its task is told so when it asks.
func TestQuestion_AfterTask(t *testing.T) {
	ended, asked := make(chan struct{}), make(chan error, 1)
	fx := openAskFixture(t, fixtureConfig{}, func(ctx context.Context) (any, error) {
		_, _ = askMachine(ctx)
		<-ended
		_, err := askMachine(ctx)
		asked <- err
		return nil, err
	})
	task := fx.start(t, fx.spec)
	fx.waitQuestion(t, task)
	if err := fx.CancelTask(t.Context(), task, "enough"); err != nil {
		t.Fatal(err)
	}
	fx.wait(t, task)
	close(ended)
	if err := <-asked; errcode.CodeOf(err) != errcode.InputUnavailable || !strings.Contains(err.Error(), "the task has ended") {
		t.Errorf("got %v", err)
	}
}

// A call whose question waits at a crash is handled by its effect class: a tool that may have acted
// is not called again.
func TestQuestion_Interrupted(t *testing.T) {
	dir := fastTempDir(t)
	calls := 0
	fx := openAskFixture(t, fixtureConfig{dir: dir}, func(ctx context.Context) (any, error) { calls++; return askMachine(ctx) })
	task := fx.start(t, fx.spec)
	fx.waitQuestion(t, task)
	fx.shutdown(t)
	again := openAskFixture(t, fixtureConfig{dir: dir}, func(ctx context.Context) (any, error) { calls++; return askMachine(ctx) })
	again.resume(t, task)
	if done := again.wait(t, task); calls != 1 || !json.Valid(done.Result) || len(again.ListQuestions(task)) > 0 {
		t.Errorf("%d calls, %s", calls, done.Result)
	}
	if failed := bodiesOf[journal.ToolError](t, again.fixture); len(failed) != 1 || failed[0].Code != errcode.ToolInterrupted {
		t.Errorf("%+v", failed)
	}
}

// The tools of one task ask at most 100 questions, and none for what only a client has.
func TestQuestion_Limits(t *testing.T) {
	asked := 0
	calls := answerFunc(func(r model.Request) model.Answer {
		if len(results(r)) < 10 {
			return callTools("deploy", obj{"n": len(results(r))})
		}
		return endWith("done")
	})
	fx := openAskFixture(t, fixtureConfig{model: calls, configure: within(time.Nanosecond)}, func(ctx context.Context) (any, error) {
		for {
			if _, err := tool.Ask(ctx, tool.Question{Message: "?"}); err != nil {
				return asked, nil
			}
			asked++
		}
	})
	fx.run(t, fx.spec)
	if asked != 100 {
		t.Errorf("the task asked %d questions", asked)
	}
	other := openAskFixture(t, fixtureConfig{}, func(ctx context.Context) (any, error) {
		_, err := tool.ListRoots(ctx)
		return string(errcode.CodeOf(err)), nil
	})
	other.wantResult(t, other.run(t, other.spec), quoted(string(errcode.InputUnavailable)), "")
}

// Of several answers to each of many open questions, one counts: the one that was told so. An answer
// by another task of the same caller counts for nothing.
func TestQuestion_ManyAtOnce(t *testing.T) {
	const answers = 3 // to each question
	tasks := short.Count(50, 1000)
	fx := openAskFixture(t, fixtureConfig{}, askMachine)
	role, err := fx.Org().FindRole("worker")
	if err != nil {
		t.Fatal(err)
	}
	ann, list := identity.ByCaller("ann", role.ID), make([]identity.TaskID, tasks)
	fx.spec.Caller = ann
	for i := range list {
		list[i] = fx.start(t, fx.spec)
	}
	open := 0
	fx.waitEvent(t, func(e journal.Event) bool {
		if _, asked := e.Body.(journal.QuestionAsked); asked {
			open++
		}
		return open == tasks
	})
	var told sync.Map // what counts, by call
	var answering sync.WaitGroup
	for i, task := range list {
		for _, q := range fx.ListQuestions(task) {
			if err := fx.AnswerQuestion(ann, list[(i+1)%tasks], q.ID, yes(`{"machine":"other"}`)); errcode.CodeOf(err) != errcode.QuestionNotFound {
				t.Errorf("by another task: %v", err)
			}
			for n := range answers {
				answering.Go(func() {
					err := fx.AnswerQuestion(ann, task, q.ID, yes(fmt.Sprintf(`{"force":true,"machine":"%d"}`, n)))
					if err == nil {
						if _, twice := told.LoadOrStore(q.Call, fmt.Sprintf(`{"force":true,"machine":"%d"}`, n)); twice {
							t.Errorf("two answers to %s count", q.ID)
						}
					} else if errcode.CodeOf(err) != errcode.QuestionNotFound {
						t.Error(err)
					}
				})
			}
		}
	}
	answering.Wait()
	for _, task := range list {
		fx.wait(t, task)
		if n := len(fx.ListQuestions(task)); n > 0 {
			t.Errorf("%d questions are left", n)
		}
	}
	answered := bodiesOf[journal.QuestionAnswered](t, fx.fixture)
	for _, a := range answered {
		if want, _ := told.Load(a.Call); string(a.Content) != want {
			t.Errorf("%s is answered with %s, and %v counts", a.Call, a.Content, want)
		}
	}
	if len(answered) != tasks {
		t.Errorf("%d answers", len(answered))
	}
}

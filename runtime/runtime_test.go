package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestNew_NamesMissingField(t *testing.T) {
	_, err := runtime.New(runtime.Config{})
	if err == nil || !strings.Contains(err.Error(), "Config.Store") {
		t.Errorf("without a store: %v", err)
	}
	store := &hookStore{}
	if _, err = runtime.New(runtime.Config{Store: store}); err == nil || !strings.Contains(err.Error(), "Config.Groups") {
		t.Errorf("without groups: %v", err)
	}
	if _, err = runtime.New(runtime.Config{Store: store, Groups: toolgroups.NewManager()}); err == nil || !strings.Contains(err.Error(), "Config.Model") {
		t.Errorf("without models: %v", err)
	}
}

func TestRuntime_TaskEndsWithRootsLastAnswer(t *testing.T) {
	fx := openFixture(t, t.TempDir(), answerFunc(func(r model.Request) model.Answer { return endWith("hello " + r.Self.Role) }))
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "greet"}), `"hello root"`, "")
}

// delegateWithDenial is a root that delegates to a worker. The worker calls one
// tool that it has and one that it does not have.
func delegateWithDenial(r model.Request) model.Answer {
	switch {
	case r.Self.Role == "root":
		return delegate(r, "worker", "artifact")
	case answerCount(r) == 0:
		return callTools("put_artifact", obj{"type": "text", "content": "x"}, "read_file", obj{"path": "x"})
	}
	return endWith(fmt.Sprint(lastResult(r)["error"]))
}

func TestRuntime_DeniesToolOutsideRole(t *testing.T) {
	fx := openFixture(t, t.TempDir(), answerFunc(delegateWithDenial))
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go"}), `{"text":"tool_not_available"}`, "")
	var denied []string
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		if c.Decision == journal.Denied {
			denied = append(denied, c.Tool+" "+string(c.Code)+" "+c.Reason)
		}
	}
	if len(denied) != 1 || !strings.Contains(denied[0], "read_file tool_not_available tool read_file is not available") {
		t.Errorf("denials on record: %q", denied)
	}
}

func TestRuntime_TaskWithoutActiveAgentStalls(t *testing.T) {
	fx := openFixture(t, t.TempDir(), answerFunc(func(model.Request) model.Answer { return waitForMessage() }))
	task := fx.run(t, org.TaskSpec{Text: "wait"})
	fx.wantResult(t, task, "", "task_stalled")
	if task.Status != org.Failed {
		t.Errorf("the task is %s, want failed", task.Status)
	}
}

func TestResume_ContinuesTask(t *testing.T) {
	dir := fastTempDir(t)
	reached := make(chan struct{})
	fx := openFixture(t, dir, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "worker" {
			close(reached)
			<-ctx.Done()
		}
		return delegateWithDenial(r), ctx.Err()
	}))
	id := fx.start(t, org.TaskSpec{Text: "go"})
	fx.waitReached(t, id, reached)
	fx.shutdown(t)

	fx = openFixture(t, dir, answerFunc(delegateWithDenial))
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), `{"text":"tool_not_available"}`, "")
}

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

func TestNewNamesTheFieldThatIsMissing(t *testing.T) {
	_, err := runtime.New(runtime.Config{})
	if err == nil || !strings.Contains(err.Error(), "Config.Store") {
		t.Errorf("without a store: %v", err)
	}
	store := &between{}
	if _, err = runtime.New(runtime.Config{Store: store}); err == nil || !strings.Contains(err.Error(), "Config.Groups") {
		t.Errorf("without groups: %v", err)
	}
	if _, err = runtime.New(runtime.Config{Store: store, Groups: toolgroups.NewManager()}); err == nil || !strings.Contains(err.Error(), "Config.Model") {
		t.Errorf("without models: %v", err)
	}
}

func TestATaskEndsWithItsRootsLastAnswer(t *testing.T) {
	h := open(t, t.TempDir(), brain(func(r model.Request) model.Answer { return end("hello " + r.Self.Role) }))
	h.want(t, h.run(t, org.TaskSpec{Text: "greet"}), `"hello root"`, "")
}

// team is a root that makes a role, spawns a worker, waits for its report and
// passes it on; the worker tries a tool it has and one it has not.
func team(r model.Request) model.Answer {
	switch {
	case r.Self.Role == "root":
		return manage(r, "worker", "artifact")
	case answers(r) == 0:
		return do("put_artifact", obj{"type": "text", "content": "x"}, "read_file", obj{"path": "x"})
	}
	return end(fmt.Sprint(last(r)["error"]))
}

func TestAnAgentIsDeniedWhatItsRoleHasNotAndTheRunGoesOn(t *testing.T) {
	h := open(t, t.TempDir(), brain(team))
	h.want(t, h.run(t, org.TaskSpec{Text: "go"}), `{"text":"tool_not_available"}`, "")
	var denied []string
	for _, c := range said[journal.ToolCall](t, h) {
		if c.Decision == journal.Denied {
			denied = append(denied, c.Tool+" "+string(c.Code)+" "+c.Reason)
		}
	}
	if len(denied) != 1 || !strings.Contains(denied[0], "read_file tool_not_available tool read_file is not available") {
		t.Errorf("denials on record: %q", denied)
	}
}

func TestATaskThatWaitsForNobodyStalls(t *testing.T) {
	h := open(t, t.TempDir(), brain(func(model.Request) model.Answer { return wait() }))
	task := h.run(t, org.TaskSpec{Text: "wait"})
	h.want(t, task, "", "task_stalled")
	if task.Status != org.Failed {
		t.Errorf("the task is %s, want failed", task.Status)
	}
}

func TestARestartedProcessGoesOnWhereItWas(t *testing.T) {
	dir := scratch(t)
	reached := make(chan struct{})
	h := open(t, dir, mind(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "worker" {
			close(reached)
			<-ctx.Done()
		}
		return team(r), ctx.Err()
	}))
	id := h.start(t, org.TaskSpec{Text: "go"})
	h.reach(t, id, reached)
	h.leave(t)

	h = open(t, dir, brain(team))
	h.resume(t, id)
	h.want(t, h.wait(t, id), `{"text":"tool_not_available"}`, "")
}

package runtime_test

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// killAtResult returns a store that stops when the result of a tool is recorded.
func killAtResult(tool string, reached chan struct{}) func(journal.Store) journal.Store {
	return func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			for _, e := range b.Events {
				if r, ok := e.Body.(journal.ToolResult); ok && r.Tool == tool {
					close(reached)
					return 0, errKilled
				}
			}
			return s.Commit(ctx, b)
		}}
	}
}

// A call that names an agent has its effect once, also if the process ended before its result
// was recorded. The name of a terminated agent still stands for that agent then.
func TestAgentName_RepeatedCallFindsAgent(t *testing.T) {
	for name, call := range map[string]model.Answer{
		"terminate_agent": callTools("terminate_agent", obj{"agentId": "worker-1"}),
		"send_message":    callTools("send_message", obj{"to": "worker-1", "payload": "go"}),
	} {
		t.Run(name, func(t *testing.T) {
			var worker any
			m := answerFunc(func(r model.Request) model.Answer {
				if r.Self.Role != "root" {
					return waitForMessage()
				}
				switch answerCount(r) {
				case 0:
					return callTools("spawn_agent", obj{"roleId": "worker", "taskBrief": taskBrief()})
				case 1:
					worker = lastResult(r)["id"]
					return call
				}
				return model.Answer{Finish: model.FinishEnd, Value: mustJSON(lastResult(r))}
			})
			dir, reached := fastTempDir(t), make(chan struct{})
			first := fixtureConfig{dir: dir, model: m, wrapStore: killAtResult(name, reached)}.open(t)
			first.declare(t, org.RoleSpec{Name: "worker", Use: groupSet()})
			id := first.start(t, org.TaskSpec{})
			first.waitReached(t, id, reached)
			first.shutdown(t)

			second := fixtureConfig{dir: dir, model: m}.open(t)
			second.resume(t, id)
			result := decodeObject(second.wait(t, id).Result)
			if got := result["terminatedAgentId"]; name == "terminate_agent" && got != worker || result["error"] != nil {
				t.Errorf("got %v, want the agent %v", result, worker)
			}
			if n := len(bodiesOf[journal.AgentTerminated](t, second)); name == "terminate_agent" && n != 1 {
				t.Errorf("%d terminations on record", n)
			}
			sent := 0
			for _, e := range bodiesOf[journal.MessageSent](t, second) {
				if identity.IsID(e.Message.To) && e.Message.To == worker {
					sent++
				}
			}
			if name == "send_message" && sent != 1 {
				t.Errorf("%d messages on record", sent)
			}
		})
	}
}

// Messages have the name of their sender, and the answers of agents too.
func TestAgentName_IsInMessages(t *testing.T) {
	var names []string
	fx := fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "worker":
			names = append(names, messages(r)[0].FromName)
			return endWith("done")
		case answerCount(r) == 0:
			return callTools("spawn_agent_with_task", obj{"roleId": "worker", "taskBrief": taskBrief(), "initialMessage": "go"})
		case lastReport(r) == nil:
			return waitForMessage()
		}
		list := messages(r)
		names = append(names, list[0].FromName, list[len(list)-1].FromName)
		return endWith("all done")
	})}.open(t)
	fx.declare(t, org.RoleSpec{Name: "worker", Use: groupSet()})
	fx.run(t, org.TaskSpec{})
	if got := string(mustJSON(names)); got != `["root","","worker-1"]` {
		t.Errorf("got %s, want the names of root, of the user and of the worker", got)
	}
}

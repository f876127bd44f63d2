package runtime_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// hasIntent reports whether a batch has the intent of a call of a tool.
func hasIntent(b *journal.Batch, name string) bool {
	return slices.ContainsFunc(b.Events, func(e journal.Event) bool {
		c, ok := e.Body.(journal.ToolCall)
		return ok && c.Tool == name && c.Decision == journal.Allowed
	})
}

// A call whose tool is revoked between the decision and the commit of its
// intent does not run, and the model reads the reason.
func TestRuntime_RevokedBeforeIntentDoesNotRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		revoke func(fx *fixture, role identity.RoleID) error
		reads  string
	}{
		{"the role changes", func(fx *fixture, role identity.RoleID) error {
			_, _, err := fx.UpdateRole(operator, role, org.RoleSpec{Use: groupSet("artifact")}, false)
			return err
		}, `["tool_not_available","{\"artifactRef\":`},
		{"the group is unregistered", func(fx *fixture, _ identity.RoleID) error {
			return grouptest.UnregisterGroup(fx.GroupManager(), "test", "probe")
		}, `["unknown_tool","{\"artifactRef\":`},
		{"the role is deleted", func(fx *fixture, role identity.RoleID) error {
			_, err := fx.DeleteRole(operator, role, false)
			return err
		}, `["tool_not_available","tool_not_available"]`},
		{"a change without effect on permissions", func(fx *fixture, role identity.RoleID) error {
			_, _, err := fx.UpdateRole(operator, role, org.RoleSpec{Prompt: "new"}, false)
			return err
		}, `["\"ran\"","{\"artifactRef\":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran int
			poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { ran++; return "ran", nil })
			var fx *fixture
			var first sync.Once
			fx = fixtureConfig{
				tools: []tool.Tool{poke},
				model: answerOnce(callTools("poke", obj{}, "put_artifact", obj{"type": "t", "content": 1})),
				wrapStore: func(s journal.Store) journal.Store {
					return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
						if hasIntent(b, "poke") {
							first.Do(func() {
								role, _ := fx.Org().RoleByName("worker")
								if err := c.revoke(fx, role.ID); err != nil {
									t.Error(err)
								}
							})
						}
						return s.Commit(ctx, b)
					}}
				},
			}.open(t)
			task := fx.run(t, fx.workerTask(t, ""))
			if got := string(task.Result); len(got) < len(c.reads) || got[:len(c.reads)] != c.reads {
				t.Errorf("the model reads %s, want %s…\n%s", got, c.reads, fx.eventLog(t))
			}
			if started := len(eventsOf[journal.ToolResult](t, fx)) > 0 && hasIntentEvent(fx.events(t), "poke"); (ran == 1) != started || ran > 1 {
				t.Errorf("ran %d times; on record as started: %v", ran, started)
			}
		})
	}
}

func hasIntentEvent(list []journal.Event, name string) bool {
	return hasIntent(&journal.Batch{Events: list}, name)
}

// After UnregisterGroup has returned no call of the group's tools starts. Calls that
// started before are recorded before.
func TestUnregister_NoCallStartsAfterwards(t *testing.T) {
	free := make(chan struct{})
	poke := newTool(t, "poke", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return "ran", nil })
	fx := fixtureConfig{tools: []tool.Tool{poke}, model: blockingRoot(free, func(_ context.Context, r model.Request) (model.Answer, error) {
		if n := answerCount(r); n > 0 && outcomes(r)[n-1] != `"ran"` {
			return endWith(outcomes(r)[n-1]), nil
		}
		return callTools("poke", obj{}), nil
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	var agents []identity.AgentID
	for _, name := range []string{"a", "b", "c", "d"} {
		agents = append(agents, fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: name, Use: groupSet("probe")}))
	}
	for _, a := range agents {
		fx.send(t, a, `"go"`)
	}
	fx.waitEvent(t, func(e journal.Event) bool { r, ok := e.Body.(journal.ToolResult); return ok && r.Tool == "poke" })
	if err := grouptest.UnregisterGroup(fx.GroupManager(), "test", "probe"); err != nil {
		t.Fatal(err)
	}
	close(free)
	fx.wait(t, id)
	gone := eventsOf[journal.GroupUnregistered](t, fx)
	for _, e := range eventsOf[journal.ToolCall](t, fx) {
		if c := e.Body.(journal.ToolCall); c.Decision == journal.Allowed && e.Seq > gone[0].Seq {
			t.Errorf("after the group was unregistered: %s", mustJSON(e))
		}
	}
	for _, m := range bodiesOf[journal.MessageSent](t, fx) {
		if m.Message.From != "user" && m.Message.To != "user" && string(m.Message.Payload) != `{"text":"unknown_tool"}` {
			t.Errorf("an agent ends with %s, want unknown_tool", m.Message.Payload)
		}
	}
}

func TestRegister_RestoresGroupForRoles(t *testing.T) {
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return "ran", nil })
	var fx *fixture
	fx = fixtureConfig{tools: []tool.Tool{poke}, model: answerFunc(func(r model.Request) model.Answer {
		switch answerCount(r) {
		case 1:
			if err := grouptest.UnregisterGroup(fx.GroupManager(), "test", "probe"); err != nil {
				t.Error(err)
			}
		case 2:
			if _, err := grouptest.RegisterGroup(fx.GroupManager(), "test", toolgroups.Group{ID: "probe", Tools: []tool.Tool{poke}}); err != nil {
				t.Error(err)
			}
		case 3:
			return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r))}
		}
		return callTools("poke", obj{})
	})}.open(t)
	fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `["\"ran\"","unknown_tool","\"ran\""]`, "")
}

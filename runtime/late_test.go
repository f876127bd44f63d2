package runtime_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func intends(b *journal.Batch, name string) bool {
	return slices.ContainsFunc(b.Events, func(e journal.Event) bool {
		c, ok := e.Body.(journal.ToolCall)
		return ok && c.Tool == name && c.Decision == journal.Allowed
	})
}

// What is revoked between the decision about a call and the commit of its
// intent does not run, and the model reads why.
func TestWhatIsRevokedBeforeTheIntentCommitsDoesNotRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		revoke func(h *house, role identity.RoleID) error
		reads  string
	}{
		{"the role changes", func(h *house, role identity.RoleID) error {
			_, _, err := h.UpdateRole(operator, role, org.RoleSpec{Use: use("artifact")}, false)
			return err
		}, `["tool_not_available","{\"artifactRef\":`},
		{"the group goes", func(h *house, _ identity.RoleID) error { return h.Unregister("test", "probe") }, `["unknown_tool","{\"artifactRef\":`},
		{"the role goes", func(h *house, role identity.RoleID) error {
			_, err := h.DeleteRole(operator, role, false)
			return err
		}, `["tool_not_available","tool_not_available"]`},
		{"a change that matters to nobody", func(h *house, role identity.RoleID) error {
			_, _, err := h.UpdateRole(operator, role, org.RoleSpec{Prompt: "new"}, false)
			return err
		}, `["\"ran\"","{\"artifactRef\":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran int
			poke := probe(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { ran++; return "ran", nil })
			var h *house
			var first sync.Once
			h = plan{
				tools: []tool.Tool{poke},
				model: once(do("poke", obj{}, "put_artifact", obj{"type": "t", "content": 1})),
				store: func(s journal.Store) journal.Store {
					return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
						if intends(b, "poke") {
							first.Do(func() {
								role, _ := h.Org().RoleNamed("worker")
								if err := c.revoke(h, role.ID); err != nil {
									t.Error(err)
								}
							})
						}
						return s.Commit(ctx, b)
					}}
				},
			}.open(t)
			task := h.run(t, h.bound(t, ""))
			if got := string(task.Result); len(got) < len(c.reads) || got[:len(c.reads)] != c.reads {
				t.Errorf("the model reads %s, want %s…\n%s", got, c.reads, h.story(t))
			}
			if started := len(happened[journal.ToolResult](t, h)) > 0 && intendsAny(h.events(t), "poke"); (ran == 1) != started || ran > 1 {
				t.Errorf("ran %d times; on record as started: %v", ran, started)
			}
		})
	}
}

func intendsAny(list []journal.Event, name string) bool {
	return intends(&journal.Batch{Events: list}, name)
}

// Once Unregister has returned, no call of the group's tools starts; what
// started before is on record before.
func TestAfterUnregisterNoCallStarts(t *testing.T) {
	free := make(chan struct{})
	poke := probe(t, "poke", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return "ran", nil })
	h := plan{tools: []tool.Tool{poke}, model: busyRoot(free, func(_ context.Context, r model.Request) (model.Answer, error) {
		if n := answers(r); n > 0 && outcomes(r)[n-1] != `"ran"` {
			return end(outcomes(r)[n-1]), nil
		}
		return do("poke", obj{}), nil
	})}.open(t)
	id := h.start(t, org.TaskSpec{})
	var agents []identity.AgentID
	for _, name := range []string{"a", "b", "c", "d"} {
		agents = append(agents, h.hire(t, h.top(t, id), org.RoleSpec{Name: name, Use: use("probe")}))
	}
	for _, a := range agents {
		h.tell(t, a, `"go"`)
	}
	h.until(t, func(e journal.Event) bool { r, ok := e.Body.(journal.ToolResult); return ok && r.Tool == "poke" })
	if err := h.Unregister("test", "probe"); err != nil {
		t.Fatal(err)
	}
	close(free)
	h.wait(t, id)
	gone := happened[journal.GroupUnregistered](t, h)
	for _, e := range happened[journal.ToolCall](t, h) {
		if c := e.Body.(journal.ToolCall); c.Decision == journal.Allowed && e.Seq > gone[0].Seq {
			t.Errorf("after the end of the group: %s", encode(e))
		}
	}
	for _, m := range said[journal.MessageSent](t, h) {
		if m.Message.From != "user" && m.Message.To != "user" && string(m.Message.Payload) != `{"text":"unknown_tool"}` {
			t.Errorf("an agent ends with %s, want unknown_tool", m.Message.Payload)
		}
	}
}

func TestAGroupThatComesBackIsTheirsAgain(t *testing.T) {
	poke := probe(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return "ran", nil })
	var h *house
	h = plan{tools: []tool.Tool{poke}, model: brain(func(r model.Request) model.Answer {
		switch answers(r) {
		case 1:
			if err := h.Unregister("test", "probe"); err != nil {
				t.Error(err)
			}
		case 2:
			if _, err := h.Register("test", toolgroups.Group{ID: "probe", Tools: []tool.Tool{poke}}); err != nil {
				t.Error(err)
			}
		case 3:
			return model.Answer{Finish: model.FinishEnd, Value: encode(outcomes(r))}
		}
		return do("poke", obj{})
	})}.open(t)
	h.want(t, h.run(t, h.bound(t, "")), `["\"ran\"","unknown_tool","\"ran\""]`, "")
}

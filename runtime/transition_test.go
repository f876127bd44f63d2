package runtime_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Recorded cases of TrustGraph's state transitions after a successful call, for an agent
// and for a caller. The field ours is what is expected where rolecall differs.
func TestMoveState_TrustGraphCases(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "state_transition.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := gjson.GetBytes(data, "transition").Array()
	if len(cases) != 5 {
		t.Fatalf("got %d cases, want 5", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Get("id").Str, func(t *testing.T) {
			current, want := c.Get("current").Str, c.Get("expected").Str
			if ours := c.Get("ours"); ours.Exists() {
				want = ours.Str
			}
			poke := newTool(t, "poke", tool.Options{State: c.Get("config.state").Str}, func(context.Context, obj) (any, error) { return "ok", nil })
			fx := fixtureConfig{tools: []tool.Tool{poke}, model: answerFunc(func(r model.Request) model.Answer {
				if answerCount(r) == 0 {
					return callTools("poke", obj{})
				}
				return endWith("done")
			})}.open(t)
			spec := fx.roleTask(t, org.RoleSpec{Use: groupSet("probe")})
			spec.State = current
			task := fx.run(t, spec)
			agent, err := fx.AgentRecord(t.Context(), task.Top)
			if err != nil {
				t.Fatal(err)
			}
			if got := toolgroups.StateName(agent.State); got != want {
				t.Errorf("the agent is in the state %q, want %q", got, want)
			}
			ann := fx.createCaller(t, "probe")
			fx.Org().SetCallerState(ann, current)
			fx.invoke(t, ann, "poke", obj{})
			if _, got := fx.Org().ResolveView(identity.ByCaller(ann.User, ann.Role)); got != want {
				t.Errorf("the caller is in the state %q, want %q", got, want)
			}
		})
	}
}

// An agent without a state that calls a tool which leads to no state, by name, stays
// where it is: there is no transition to record.
func TestMoveState_UndefinedIsNoState(t *testing.T) {
	reset := newTool(t, "reset", tool.Options{State: toolgroups.UndefinedState}, func(context.Context, obj) (any, error) { return "ok", nil })
	open := newTool(t, "open", tool.Options{State: "open"}, func(context.Context, obj) (any, error) { return "ok", nil })
	fx := fixtureConfig{tools: []tool.Tool{reset, open}, model: answerFunc(func(r model.Request) model.Answer {
		if list := []string{"reset", "open", "reset"}; answerCount(r) < len(list) {
			return callTools(list[answerCount(r)], obj{})
		}
		return endWith("done")
	})}.open(t)
	fx.run(t, fx.roleTask(t, org.RoleSpec{Use: groupSet("probe")}))
	var got []string
	for _, b := range bodiesOf[journal.StateTransition](t, fx) {
		got = append(got, b.From+" > "+b.To)
	}
	if diff := cmp.Diff([]string{"undefined > open", "open > undefined"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, b := range bodiesOf[journal.TaskStarted](t, fx) {
		if b.State != toolgroups.UndefinedState {
			t.Errorf("a task began in %q", b.State)
		}
	}
}

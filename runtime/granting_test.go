package runtime_test

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// The event of a call names the group through which the role has the tool, here a toolset
// and not the group that owns the tool.
func TestToolCall_NamesGrantingGroup(t *testing.T) {
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return 1, nil })
	fx := fixtureConfig{model: answerOnce(callTools("poke", obj{})), tools: []tool.Tool{poke}}.open(t)
	if _, err := grouptest.RegisterGroup(fx.GroupManager(), toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"poke"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet("kit")}); err != nil {
		t.Fatal(err)
	}
	fx.run(t, org.TaskSpec{Role: "worker"})
	calls := bodiesOf[journal.ToolCall](t, fx)
	if len(calls) != 1 || calls[0].Decision != journal.Allowed || calls[0].Group != "kit" {
		t.Errorf("got the calls %+v", calls)
	}
}

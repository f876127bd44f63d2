package runtime_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// stubHours are hours that never change by themselves.
type stubHours struct{}

func (stubHours) Zone() string          { return "UTC" }
func (stubHours) Spans() []string       { return []string{"mon 08:00-09:00"} }
func (stubHours) NextChange() time.Time { return time.Time{} }

// A call that was allowed while a group was open does not run if the group closes before its
// intent commits, and it is recorded as denied after the closing. The closing is recorded once,
// with a later epoch.
func TestRuntime_ClosedBeforeIntentDoesNotRun(t *testing.T) {
	var ran int
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { ran++; return "ran", nil })
	var fx *fixture
	var owner *toolgroups.Owner
	var first sync.Once
	closeGroup := func() {
		if err := fx.GroupManager().Update(func(tx *toolgroups.Tx) error { return tx.SwitchGroup(owner, "office", false) }); err != nil {
			t.Error(err)
		}
	}
	fx = fixtureConfig{
		tools: []tool.Tool{poke}, model: answerOnce(callTools("poke", obj{})),
		wrapStore: func(s journal.Store) journal.Store {
			return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
				if hasIntent(b, "poke") {
					first.Do(closeGroup)
				}
				return s.Commit(ctx, b)
			}}
		},
	}.open(t)
	var err error
	owner, err = grouptest.ClaimOwner(fx.GroupManager(), toolgroups.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.RegisterGroup(toolgroups.Group{ID: "office", Refs: []string{"poke"}, Hours: stubHours{}, Open: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "worker", Use: groupSet("office")}); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.run(t, org.TaskSpec{Role: "worker"}), `["tool_not_available"]`, "")
	if ran != 0 || hasIntentEvent(fx.events(t), "poke") {
		t.Errorf("ran %d times\n%s", ran, fx.eventLog(t))
	}
	opened, closed, calls := eventsOf[journal.GroupOpened](t, fx), eventsOf[journal.GroupClosed](t, fx), eventsOf[journal.ToolCall](t, fx)
	if len(opened) != 1 || len(closed) != 1 || len(calls) != 1 {
		t.Fatalf("%d opened, %d closed, %d calls\n%s", len(opened), len(closed), len(calls), fx.eventLog(t))
	}
	before, after := opened[0].Body.(journal.GroupOpened), closed[0].Body.(journal.GroupClosed)
	if !slices.Equal(before.Tools, []string{"poke"}) || after.Epoch <= before.Epoch || calls[0].Seq < closed[0].Seq || calls[0].Body.(journal.ToolCall).Epoch < after.Epoch {
		t.Errorf("opened %+v, closed %+v, call %+v", before, after, calls[0].Body)
	}
}

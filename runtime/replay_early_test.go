package runtime_test

import (
	"context"
	"os"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model/replay"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// earlyTask returns the task of testdata/early.jsonl. In it root hires two agents. The planner
// makes three plans, of which one is invalid. The looker makes four equal calls, is warned, and
// its conversation is compressed.
func earlyTask(t *testing.T, fx *fixture) org.TaskSpec {
	t.Helper()
	fx.declare(t, org.RoleSpec{Name: "planner", Prompt: "You plan.", Use: groupSet("probe", "org_management"), Pattern: org.Plan})
	fx.declare(t, org.RoleSpec{Name: "looker", Prompt: "You look.", Use: groupSet("probe")})
	return org.TaskSpec{Text: "look around"}
}

func earlyTools(t *testing.T) []tool.Tool {
	t.Helper()
	return []tool.Tool{newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })}
}

// A recording of an earlier version, whose system prompts had the assignment, the plan and all
// notes, is played.
func TestReplay_OfEarlierRecording(t *testing.T) {
	recording, err := os.ReadFile("testdata/early.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	m, err := replay.New("early.jsonl", recording)
	if err != nil {
		t.Fatal(err)
	}
	fx := fixtureConfig{tools: earlyTools(t), model: m}.open(t)
	fx.wantResult(t, fx.run(t, earlyTask(t, fx)), `"all done"`, "")
	if n := len(bodiesOf[journal.ContextCompressed](t, fx)); n != 1 {
		t.Errorf("%d compressions, want 1\n%s", n, fx.eventLog(t))
	}
}

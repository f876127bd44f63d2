package runtime_test

import (
	"context"
	"iter"
	"os"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
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
	fx := fixtureConfig{tools: earlyTools(t), model: &orderedModel{WindowWrapper: model.WindowWrapper{Model: m}, asked: make(chan struct{})}}.open(t)
	fx.wantResult(t, fx.run(t, earlyTask(t, fx)), `"all done"`, "")
	if n := len(bodiesOf[journal.ContextCompressed](t, fx)); n != 1 {
		t.Errorf("%d compressions, want 1\n%s", n, fx.eventLog(t))
	}
}

// orderedModel answers agents that root has hired only when root waits for them, as it did in the
// recording: else their messages arrive one step earlier.
type orderedModel struct {
	model.WindowWrapper
	mu    sync.Mutex // guards what follows
	steps int        // requests of root
	asked chan struct{}
}

// Generate implements model.Model.
func (m *orderedModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	switch r.Self.Role {
	case "planner":
		m.waitForRoot(ctx, 2)
	case "looker":
		m.waitForRoot(ctx, 4)
	default:
		m.countStep()
	}
	return m.WindowWrapper.Generate(ctx, r)
}

func (m *orderedModel) countStep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	close(m.asked)
	m.asked = make(chan struct{})
}

// waitForRoot waits for the request of root with this number.
func (m *orderedModel) waitForRoot(ctx context.Context, step int) {
	for {
		m.mu.Lock()
		steps, asked := m.steps, m.asked
		m.mu.Unlock()
		if steps >= step {
			return
		}
		select {
		case <-asked:
		case <-ctx.Done():
			return
		}
	}
}

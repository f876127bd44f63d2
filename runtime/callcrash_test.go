package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// crashPoint is where in the course of a call the process is killed. The gate's
// steps have no effects outside the process (see the gate's tests), so a crash
// at any of them equals one before the intent is recorded. A change of the
// workflow state is in the commit of the outcome.
type crashPoint int

const (
	crashNever crashPoint = iota - 1
	crashBeforeIntent
	crashAfterIntent
	crashBeforeEffect
	crashAfterEffect
	crashBeforeOutcome
	crashAfterOutcome
	crashPointCount // number of crash points
)

func (p crashPoint) String() string {
	return [...]string{"before its intent is recorded", "after its intent is recorded", "before its effect", "after its effect",
		"before its outcome is recorded", "after its outcome is recorded"}[p]
}

// killableProcess is the store of a process that is killed at a crash point of
// one tool's call. From then on every step of the process blocks. After
// release, at the end of the test, it still has no effects.
type killableProcess struct {
	journal.Store
	effects *effectCounter
	tool    string
	at      crashPoint

	killed, released      chan struct{}
	killOnce, releaseOnce sync.Once
}

func (v *killableProcess) release() { v.releaseOnce.Do(func() { close(v.released) }) }

// reached kills the process if this is its crash point, and blocks if it is
// killed.
func (v *killableProcess) reached(at crashPoint, name string) {
	if v.at == at && v.tool == name {
		v.effects.mu.Lock() // waits for running effects
		v.killOnce.Do(func() { close(v.killed) })
		v.effects.mu.Unlock()
	}
	v.blockIfKilled()
}

// blockIfKilled returns at once unless the process is killed.
func (v *killableProcess) blockIfKilled() {
	if v.isKilled() {
		<-v.released
	}
}

func (v *killableProcess) isKilled() bool {
	select {
	case <-v.killed:
		return true
	default:
		return false
	}
}

// Commit implements journal.Log.
func (v *killableProcess) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	before, after := crashBeforeOutcome, crashAfterOutcome
	if hasIntent(b, v.tool) {
		before, after = crashBeforeIntent, crashAfterIntent
	} else if !hasOutcome(b, v.tool) {
		before, after = crashPointCount, crashPointCount
	}
	if v.reached(before, v.tool); v.isKilled() {
		return 0, errKilled
	}
	seq, err := v.Store.Commit(ctx, b)
	if v.reached(after, v.tool); v.isKilled() {
		return 0, errKilled
	}
	return seq, err
}

// hasOutcome reports whether a batch has the outcome of a call of a tool.
func hasOutcome(b *journal.Batch, name string) bool {
	return slices.ContainsFunc(b.Events, func(e journal.Event) bool {
		switch o := e.Body.(type) {
		case journal.ToolResult:
			return o.Tool == name
		case journal.ToolError:
			return o.Tool == name
		}
		return false
	})
}

// effectCounter counts the effects of tools in all processes of a case.
type effectCounter struct {
	mu     sync.Mutex
	byTool map[string]map[identity.CallID]int // by tool; guarded by mu
}

// count counts an effect, unless the process is killed.
func (c *effectCounter) count(v *killableProcess, name string, id identity.CallID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.isKilled() {
		return
	}
	if c.byTool[name] == nil {
		c.byTool[name] = map[identity.CallID]int{}
	}
	c.byTool[name][id]++
}

// totals returns how many calls of a tool had effects, and the number of
// effects.
func (c *effectCounter) totals(name string) (calls, acts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.byTool[name] {
		acts += n
	}
	return len(c.byTool[name]), acts
}

// String returns the counts as text, for comparison.
func (c *effectCounter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.byTool)
}

// tool creates a tool with crash points before and after its effect.
func (c *effectCounter) tool(t *testing.T, v *killableProcess, name string, o tool.Options) tool.Tool {
	return newTool(t, name, o, func(ctx context.Context, _ obj) (any, error) {
		call, _ := tool.CurrentCall(ctx)
		v.reached(crashBeforeEffect, name)
		c.count(v, name, call.ID)
		v.reached(crashAfterEffect, name)
		return name + " done", nil
	})
}

// crashCase kills a process at a crash point of a tool's call, and optionally
// the next process at a second point.
type crashCase struct {
	tool    string
	at      []crashPoint
	revoked bool // the role loses its groups before the last process resumes the task

	dir     string
	effects effectCounter
	killed  []crashProcess
}

// crashProcess is a process of a crashCase.
type crashProcess struct {
	*fixture
	*killableProcess
}

func (c *crashCase) String() string {
	text := fmt.Sprint(c.tool, " ", c.at[0])
	for _, at := range c.at[1:] {
		text += fmt.Sprint(", then ", at)
	}
	if c.revoked {
		text += ", and revoked meanwhile"
	}
	return text
}

// openProcess opens the data directory as a new process. The model calls the
// tool between read-only calls, and then one that the tool's new state allows.
func (c *crashCase) openProcess(t *testing.T, at crashPoint) crashProcess {
	t.Helper()
	v := &killableProcess{effects: &c.effects, tool: c.tool, at: at, killed: make(chan struct{}), released: make(chan struct{})}
	p := crashProcess{fixtureConfig{
		dir: c.dir, model: answerOnce(callTools("glance", obj{}, c.tool, obj{}, "glance", obj{}, "publish", obj{})),
		tools: []tool.Tool{
			c.effects.tool(t, v, "glance", tool.Options{Effect: tool.ReadOnly}),
			c.effects.tool(t, v, "look", tool.Options{Effect: tool.ReadOnly, State: "moved"}),
			c.effects.tool(t, v, "mark", tool.Options{Effect: tool.Idempotent, State: "moved"}),
			c.effects.tool(t, v, "strike", tool.Options{State: "moved"}),
			c.effects.tool(t, v, "publish", tool.Options{States: []string{"moved"}}),
		},
		wrapStore: func(s journal.Store) journal.Store { v.Store = s; return v },
	}.open(t), v}
	t.Cleanup(p.release)
	return p
}

// kill runs a process until it is killed at a crash point, and closes its
// store. It returns false if the task ends before.
func (c *crashCase) kill(t *testing.T, at crashPoint) bool {
	t.Helper()
	p := c.openProcess(t, at)
	if len(p.Org().ListTasks()) == 0 {
		p.start(t, p.workerTask(t, ""))
	} else {
		p.resume(t, p.Org().ListTasks()[0].ID)
	}
	over := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(over)
		_, _ = p.WaitTask(ctx, p.Org().ListTasks()[0].ID)
	}()
	select {
	case <-p.killed:
	case <-over:
	}
	cancel()
	<-over
	if !p.isKilled() {
		p.shutdown(t)
		return false
	}
	if err := p.store.Close(); err != nil {
		t.Error(err)
	}
	c.killed = append(c.killed, p)
	return true
}

// resumeLast completes the task in a last process and returns both.
func (c *crashCase) resumeLast(t *testing.T) (crashProcess, org.Task) {
	t.Helper()
	p := c.openProcess(t, crashNever)
	if c.revoked {
		role, _ := p.Org().RoleByName("worker")
		if _, _, err := p.UpdateRole(operator, role.ID, org.RoleSpec{Use: groupSet("artifact")}, false); err != nil {
			t.Fatal(err)
		}
	}
	id := p.Org().ListTasks()[0].ID
	p.resume(t, id)
	return p, p.wait(t, id)
}

// releaseKilled lets the killed processes continue and checks that they have no
// effects.
func (c *crashCase) releaseKilled(t *testing.T) {
	t.Helper()
	before := c.effects.String()
	for _, p := range c.killed {
		p.release()
		p.fixture.Close()
	}
	if after := c.effects.String(); after != before {
		t.Errorf("killed processes had effects: %s, before %s", after, before)
	}
}

// expectedCall is the expected outcome of the call, derived from the crash
// points alone.
type expectedCall struct {
	acts    int  // number of effects
	unknown bool // the outcome is tool_interrupted: it started, may not be repeated, and its effect is unknown
	ended   bool // the outcome was recorded before the last process
}

func (c *crashCase) expected() (f expectedCall) {
	started := false
	for _, at := range c.at {
		again := !started || c.tool != "strike"
		if again && at >= crashAfterEffect {
			f.acts++
		}
		f.unknown = f.unknown || !again
		f.ended = at == crashAfterOutcome
		started = started || at >= crashAfterIntent
	}
	f.unknown = c.tool == "strike" && started && !(f.ended && !f.unknown)
	if !f.ended && !f.unknown && !c.revoked {
		f.acts++
	}
	return f
}

// The process is killed at every crash point of a call, and the next process at
// every point again. A Mutating tool acts at most once and an Idempotent one as
// one call. A reported success has happened, and the workflow state changes
// with it. A revoked call is denied and has no effect.
func TestRuntime_CrashAtAnyPointOfCall(t *testing.T) {
	cases := short.SampleList(t, 30, crashCases())
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) { c.run(t) })
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "gate", Claim: "after a crash at any step of a call no effect is repeated or invented and no permission is added",
		Goal: "every crash point, twice, for each effect class", Observed: fmt.Sprintf("%d crashes", len(cases)), Passed: !t.Failed(),
	})
}

// crashCases lists one crash or two at every crash point of a call, for each effect
// class, with and without a revocation between them.
func crashCases() []*crashCase {
	var list []*crashCase
	for _, name := range []string{"look", "mark", "strike"} {
		for first := range crashPointCount {
			for second := crashNever; second < crashPointCount; second++ {
				if !reachable(name, first, second) {
					continue
				}
				for _, revoked := range []bool{false, true} {
					c := &crashCase{tool: name, at: []crashPoint{first}, revoked: revoked, effects: effectCounter{byTool: map[string]map[identity.CallID]int{}}}
					if second != crashNever {
						c.at = append(c.at, second)
					}
					list = append(list, c)
				}
			}
		}
	}
	return list
}

// reachable reports whether a second process comes to a crash point after a
// crash at the first. A completed call is not repeated, and a Mutating call
// gets its outcome at once.
func reachable(name string, first, second crashPoint) bool {
	switch {
	case second == crashNever || first == crashBeforeIntent:
		return true
	case first == crashAfterOutcome:
		return false
	}
	return name != "strike" || second >= crashBeforeOutcome
}

func (c *crashCase) run(t *testing.T) {
	c.dir = fastTempDir(t)
	for _, at := range c.at {
		if !c.kill(t, at) {
			t.Fatalf("no process was killed %v", at)
		}
	}
	before := c.effects.String()
	p, task := c.resumeLast(t)
	c.releaseKilled(t)
	var outcomes []string
	if err := json.Unmarshal(task.Result, &outcomes); err != nil || len(outcomes) != 4 {
		t.Fatalf("the task ended with %s %v", task.Result, task.Error)
	}
	c.checkOutcome(t, p.fixture, outcomes)
	p.checkCalls(t)
	if c.revoked {
		c.checkDenied(t, p.fixture, before)
	}
	if t.Failed() {
		t.Log(p.eventLog(t))
	}
	p.shutdown(t)
}

func (c *crashCase) checkOutcome(t *testing.T, fx *fixture, outcomes []string) {
	t.Helper()
	f, moves := c.expected(), 0
	want := string(errcode.ToolNotAvailable)
	switch {
	case f.ended && !f.unknown, !f.unknown && !c.revoked:
		want, moves = fmt.Sprintf("%q", c.tool+" done"), 1
	case f.ended, !c.revoked:
		want = string(errcode.ToolInterrupted)
	}
	if outcomes[1] != want {
		t.Errorf("the call ended with %s, want %s", outcomes[1], want)
	}
	if calls, acts := c.effects.totals(c.tool); acts != f.acts || calls > 1 {
		t.Errorf("%s acted %d times in %d calls, want %d times in one", c.tool, acts, calls, f.acts)
	}
	publishes := moves
	if c.revoked {
		publishes = 0
	}
	if _, acts := c.effects.totals("publish"); acts != publishes || (outcomes[3] == `"publish done"`) != (publishes == 1) {
		t.Errorf("publish acted %d times and ended with %s, want %d", acts, outcomes[3], publishes)
	}
	task := fx.Org().ListTasks()[0]
	agent, err := fx.AgentRecord(t.Context(), task.Top)
	if got := len(bodiesOf[journal.StateTransition](t, fx)); err != nil || got != moves || (agent.State == "moved") != (moves == 1) {
		t.Errorf("the state moved %d times and is %q (%v), want %d", got, agent.State, err, moves)
	}
}

// checkDenied checks that after the revocation no call was allowed and no tool
// acted.
func (c *crashCase) checkDenied(t *testing.T, fx *fixture, before string) {
	t.Helper()
	if after := c.effects.String(); after != before {
		t.Errorf("after the tools were revoked they acted: %s, before %s", after, before)
	}
	revoked := false
	for _, e := range fx.events(t) {
		switch b := e.Body.(type) {
		case journal.RoleChanged:
			revoked = b.Change == "updated"
		case journal.ToolCall:
			if revoked && b.Decision == journal.Allowed {
				t.Errorf("%s was allowed after it was revoked", b.Tool)
			}
		}
	}
}

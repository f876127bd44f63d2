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
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// spot is where on a call's way its process is killed. Of the gate's steps
// nothing leaves the process (gate: TestCall_CrashAtStepHasNoEffect),
// so that a crash before or after any of them is one before the intent. The
// move of the workflow state is in the commit of the outcome.
type spot int

const (
	nowhere spot = iota - 1
	beforeIntent
	afterIntent
	beforeEffect
	afterEffect
	beforeOutcome
	afterOutcome
	spots // how many there are
)

func (p spot) String() string {
	return [...]string{"before its intent is recorded", "after its intent is recorded", "before its effect", "after its effect",
		"before its outcome is recorded", "after its outcome is recorded"}[p]
}

// victim is a process that is killed at a spot of the call of a tool: there,
// and wherever it would come to from then on, it stands still. Released, at
// the end of the test, it still has no effect.
type victim struct {
	journal.Store
	tally *tally
	tool  string
	at    spot

	dead, released chan struct{}
	die, rise      sync.Once
}

func (v *victim) release() { v.rise.Do(func() { close(v.released) }) }

// reached kills the process if this is the spot.
func (v *victim) reached(at spot, name string) {
	if v.at == at && v.tool == name {
		v.tally.mu.Lock() // nothing acts from now on
		v.die.Do(func() { close(v.dead) })
		v.tally.mu.Unlock()
	}
	v.stand()
}

// stand returns when the process is alive.
func (v *victim) stand() {
	if v.died() {
		<-v.released
	}
}

func (v *victim) died() bool {
	select {
	case <-v.dead:
		return true
	default:
		return false
	}
}

// Commit implements journal.Log.
func (v *victim) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	before, after := beforeOutcome, afterOutcome
	if intends(b, v.tool) {
		before, after = beforeIntent, afterIntent
	} else if !outcomeOf(b, v.tool) {
		before, after = spots, spots
	}
	if v.reached(before, v.tool); v.died() {
		return 0, errKilled
	}
	seq, err := v.Store.Commit(ctx, b)
	if v.reached(after, v.tool); v.died() {
		return 0, errKilled
	}
	return seq, err
}

// outcomeOf says whether a batch holds the outcome of a call of a tool.
func outcomeOf(b *journal.Batch, name string) bool {
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

// tally counts what tools did in all processes of a case.
type tally struct {
	mu    sync.Mutex
	count map[string]map[identity.CallID]int // by tool; guarded by mu
}

// act counts what a tool does; a dead process does nothing.
func (c *tally) act(v *victim, name string, id identity.CallID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.died() {
		return
	}
	if c.count[name] == nil {
		c.count[name] = map[identity.CallID]int{}
	}
	c.count[name][id]++
}

// of gives how many calls of a tool acted, and how often all in all.
func (c *tally) of(name string) (calls, acts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.count[name] {
		acts += n
	}
	return len(c.count[name]), acts
}

// String says what acted how often.
func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.count)
}

// tool makes one that may be killed before and after its effect.
func (c *tally) tool(t *testing.T, v *victim, name string, o tool.Options) tool.Tool {
	return probe(t, name, o, func(ctx context.Context, _ obj) (any, error) {
		call, _ := tool.Current(ctx)
		v.reached(beforeEffect, name)
		c.act(v, name, call.ID)
		v.reached(afterEffect, name)
		return name + " done", nil
	})
}

// crime is one case: a process is killed at a spot of the call of a tool, and
// maybe the next one too, at a spot of the call that is taken up again.
type crime struct {
	tool    string
	at      []spot
	revoked bool // the role loses the tools before the last process goes on

	dir   string
	tally tally
	dead  []corpse
}

// corpse is a process that was killed.
type corpse struct {
	*house
	*victim
}

func (c *crime) String() string {
	text := fmt.Sprint(c.tool, " ", c.at[0])
	for _, at := range c.at[1:] {
		text += fmt.Sprint(", then ", at)
	}
	if c.revoked {
		text += ", and revoked meanwhile"
	}
	return text
}

// process opens the data directory as a new process. The call of the tool
// stands among others that read, and before one that only its state allows.
func (c *crime) process(t *testing.T, at spot) corpse {
	t.Helper()
	v := &victim{tally: &c.tally, tool: c.tool, at: at, dead: make(chan struct{}), released: make(chan struct{})}
	p := corpse{plan{
		dir: c.dir, model: once(do("glance", obj{}, c.tool, obj{}, "glance", obj{}, "publish", obj{})),
		tools: []tool.Tool{
			c.tally.tool(t, v, "glance", tool.Options{Effect: tool.ReadOnly}),
			c.tally.tool(t, v, "look", tool.Options{Effect: tool.ReadOnly, State: "moved"}),
			c.tally.tool(t, v, "mark", tool.Options{Effect: tool.Idempotent, State: "moved"}),
			c.tally.tool(t, v, "strike", tool.Options{State: "moved"}),
			c.tally.tool(t, v, "publish", tool.Options{States: []string{"moved"}}),
		},
		store: func(s journal.Store) journal.Store { v.Store = s; return v },
	}.open(t), v}
	t.Cleanup(p.release)
	return p
}

// kill has a process work up to its end at a spot; the kernel lets go of its
// file. False when it never comes there.
func (c *crime) kill(t *testing.T, at spot) bool {
	t.Helper()
	p := c.process(t, at)
	if len(p.Org().Tasks()) == 0 {
		p.start(t, p.bound(t, ""))
	} else {
		p.resume(t, p.Org().Tasks()[0].ID)
	}
	over := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(over)
		_, _ = p.Wait(ctx, p.Org().Tasks()[0].ID)
	}()
	select {
	case <-p.dead:
	case <-over:
	}
	cancel()
	<-over
	if !p.died() {
		p.leave(t)
		return false
	}
	if err := p.store.Close(); err != nil {
		t.Error(err)
	}
	c.dead = append(c.dead, p)
	return true
}

// resume has a last process end the task, and gives it.
func (c *crime) resume(t *testing.T) (corpse, org.Task) {
	t.Helper()
	p := c.process(t, nowhere)
	if c.revoked {
		role, _ := p.Org().RoleNamed("worker")
		if _, _, err := p.UpdateRole(operator, role.ID, org.RoleSpec{Use: use("artifact")}, false); err != nil {
			t.Fatal(err)
		}
	}
	id := p.Org().Tasks()[0].ID
	p.resume(t, id)
	return p, p.wait(t, id)
}

// bury lets the dead go on, each to its end, and looks that they do nothing.
func (c *crime) bury(t *testing.T) {
	t.Helper()
	before := c.tally.String()
	for _, p := range c.dead {
		p.release()
		p.house.Close()
	}
	if after := c.tally.String(); after != before {
		t.Errorf("the dead acted: %s, before %s", after, before)
	}
}

// fate is what becomes of the call: worked out from where processes died alone.
type fate struct {
	acts    int  // how often it acts
	unknown bool // it started, may not be repeated, and nobody knows more
	ended   bool // its outcome was on record before the last process
}

func (c *crime) fate() (f fate) {
	started := false
	for _, at := range c.at {
		again := !started || c.tool != "strike"
		if again && at >= afterEffect {
			f.acts++
		}
		f.unknown = f.unknown || !again
		f.ended = at == afterOutcome
		started = started || at >= afterIntent
	}
	f.unknown = c.tool == "strike" && started && !(f.ended && !f.unknown)
	if !f.ended && !f.unknown && !c.revoked {
		f.acts++
	}
	return f
}

// Whatever spot on the way of a call a process is killed at, and the next one
// too, a Mutating tool acts once at most and an Idempotent one as one call; who
// is told of a success has it, and the workflow state moves with it. What was
// revoked meanwhile is denied and has no effect.
func TestACrashAnywhereOnTheWayOfACall(t *testing.T) {
	cases := 0
	for _, name := range []string{"look", "mark", "strike"} {
		for first := range spots {
			for second := nowhere; second < spots; second++ {
				if !comesTo(name, first, second) {
					continue
				}
				for _, revoked := range []bool{false, true} {
					c := &crime{tool: name, at: []spot{first}, revoked: revoked, tally: tally{count: map[string]map[identity.CallID]int{}}}
					if second != nowhere {
						c.at = append(c.at, second)
					}
					cases++
					t.Run(c.String(), func(t *testing.T) { c.play(t) })
				}
			}
		}
	}
	soakreport.Report(t, soakreport.Result{
		Part: "gate", Claim: "a crash before and after every step of a call repeats nothing, invents nothing and gives nobody more",
		Goal: "every spot, twice, by effect", Observed: fmt.Sprintf("%d crashes", cases), Passed: !t.Failed(),
	})
}

// comesTo says whether a process comes to the second spot when the last one was
// killed at the first: what has ended is not taken up again, and what may not
// be repeated has an outcome at once.
func comesTo(name string, first, second spot) bool {
	switch {
	case second == nowhere || first == beforeIntent:
		return true
	case first == afterOutcome:
		return false
	}
	return name != "strike" || second >= beforeOutcome
}

func (c *crime) play(t *testing.T) {
	c.dir = scratch(t)
	for _, at := range c.at {
		if !c.kill(t, at) {
			t.Fatalf("no process was killed %v", at)
		}
	}
	before := c.tally.String()
	p, task := c.resume(t)
	c.bury(t)
	var outcomes []string
	if err := json.Unmarshal(task.Result, &outcomes); err != nil || len(outcomes) != 4 {
		t.Fatalf("the task ended with %s %v", task.Result, task.Error)
	}
	c.checkOutcome(t, p.house, outcomes)
	p.checkCalls(t)
	if c.revoked {
		c.checkDenied(t, p.house, before)
	}
	if t.Failed() {
		t.Log(p.story(t))
	}
	p.leave(t)
}

func (c *crime) checkOutcome(t *testing.T, h *house, outcomes []string) {
	t.Helper()
	f, moves := c.fate(), 0
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
	if calls, acts := c.tally.of(c.tool); acts != f.acts || calls > 1 {
		t.Errorf("%s acted %d times as %d calls, want %d times as one", c.tool, acts, calls, f.acts)
	}
	publishes := moves
	if c.revoked {
		publishes = 0
	}
	if _, acts := c.tally.of("publish"); acts != publishes || (outcomes[3] == `"publish done"`) != (publishes == 1) {
		t.Errorf("publish acted %d times and ended with %s, want %d", acts, outcomes[3], publishes)
	}
	task := h.Org().Tasks()[0]
	agent, err := h.AgentRecord(t.Context(), task.Top)
	if got := len(said[journal.StateTransition](t, h)); err != nil || got != moves || (agent.State == "moved") != (moves == 1) {
		t.Errorf("the state moved %d times and is %q (%v), want %d", got, agent.State, err, moves)
	}
}

// checkDenied checks that nothing was allowed and nothing acted after the
// tools were revoked.
func (c *crime) checkDenied(t *testing.T, h *house, before string) {
	t.Helper()
	if after := c.tally.String(); after != before {
		t.Errorf("after the tools were revoked they acted: %s, before %s", after, before)
	}
	revoked := false
	for _, e := range h.events(t) {
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

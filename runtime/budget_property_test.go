package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// quantityNames are the quantities of a budget, in the order in which tallies list them.
var quantityNames = []string{"requests", "tokens", "cost", "calls"}

// budgetOracle computes the budgets of a task from its events, as plainly as possible.
type budgetOracle struct {
	limits map[string]int64 // of the task
	order  []identity.AgentID
	parent map[identity.AgentID]identity.AgentID
	name   map[identity.AgentID]string
	budget map[identity.AgentID]map[string]int64
	part   map[identity.AgentID]map[string]int64 // what the parent has given of it
	used   map[identity.AgentID]map[string]int64
	done   map[identity.AgentID]bool // has answered or failed
	ended  map[identity.AgentID]bool
	warned map[warnedLimit]int64 // the limits of which a warning is on record
	twice  []warnedLimit         // of which there are two warnings
}

// warnedLimit is what a warning is about.
type warnedLimit struct {
	owner    identity.AgentID
	quantity string
}

// readOracle reads the events of a task.
func readOracle(t *testing.T, fx *fixture, id identity.TaskID, limits map[string]int64) *budgetOracle {
	t.Helper()
	_ = fx.Flush()
	o := &budgetOracle{
		limits: map[string]int64{}, parent: map[identity.AgentID]identity.AgentID{}, name: map[identity.AgentID]string{},
		budget: map[identity.AgentID]map[string]int64{}, part: map[identity.AgentID]map[string]int64{}, used: map[identity.AgentID]map[string]int64{},
		done: map[identity.AgentID]bool{}, ended: map[identity.AgentID]bool{}, warned: map[warnedLimit]int64{},
	}
	for q, n := range limits {
		o.limits[q] = n
	}
	task, err := fx.TaskRecord(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range fx.store.FollowTask(t.Context(), id, task.FirstSeq, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		o.read(e)
	}
	return o
}

func (o *budgetOracle) read(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		o.order = append(o.order, e.Agent)
		o.parent[e.Agent], o.name[e.Agent], o.used[e.Agent] = b.Parent, b.Name, map[string]int64{}
		if b.Budget == nil && b.Most == nil {
			return
		}
		part, most := recordedAmounts(b.Budget), recordedAmounts(b.Most)
		o.part[e.Agent], o.budget[e.Agent] = part, map[string]int64{}
		for _, q := range quantityNames {
			o.budget[e.Agent][q] = max(part[q], most[q])
			if part[q] > 0 && most[q] > 0 {
				o.budget[e.Agent][q] = min(part[q], most[q])
			}
		}
	case journal.AgentTerminated:
		o.ended[e.Agent] = true
	case journal.ModelAnswered:
		used := o.used[e.Agent]
		used["requests"] += int64(b.Unanswered) + 1
		used["tokens"] += int64(b.Answer.Usage.Input + b.Answer.Usage.Output)
		used["cost"] += int64(b.Answer.Usage.Cost)
		o.done[e.Agent] = o.done[e.Agent] || b.Answer.Finish == model.FinishEnd
	case journal.ToolCall:
		if b.Decision == journal.Allowed {
			o.used[e.Agent]["calls"]++
		}
	case journal.TurnFailed:
		o.used[e.Agent]["requests"] += int64(b.Unanswered)
		o.done[e.Agent] = true
	case journal.BudgetWarning:
		w := warnedLimit{b.Owner, b.Quantity}
		if o.warned[w] == b.Limit {
			o.twice = append(o.twice, w)
		}
		o.warned[w] = b.Limit
	case journal.TaskRetried:
		for w := range o.warned {
			if w.quantity == "requests" {
				delete(o.warned, w)
			}
		}
		o.limits["tokens"] += b.Tokens
		o.limits["cost"] += b.Cost
		o.limits["requests"] += b.Requests
		o.limits["calls"] += b.Calls
		for _, used := range o.used {
			used["requests"] = 0
		}
	}
}

// recordedAmounts returns a recorded budget by quantity.
func recordedAmounts(b *journal.ModelBudget) map[string]int64 {
	if b == nil {
		return map[string]int64{}
	}
	return map[string]int64{"requests": b.Requests, "tokens": b.Tokens, "cost": b.Cost, "calls": b.Calls}
}

// reserves reports whether the budget of the parent has a reserved part for an agent.
func (o *budgetOracle) reserves(id identity.AgentID, q string) bool {
	return o.part[id][q] > 0 && !o.done[id]
}

// owner returns the agent whose budget an agent uses, "" for that of the task.
func (o *budgetOracle) owner(id identity.AgentID) identity.AgentID {
	for ; id != ""; id = o.parent[id] {
		if o.budget[id] != nil && !o.ended[id] {
			return id
		}
	}
	return ""
}

// limit returns a limit of an agent, or of the task.
func (o *budgetOracle) limit(owner identity.AgentID, q string) int64 {
	if owner == "" {
		return o.limits[q]
	}
	return o.budget[owner][q]
}

// spent returns what an owner and those below it have used, and with kept what is reserved for them.
func (o *budgetOracle) spent(owner identity.AgentID, q string, kept bool) (total int64) {
	for _, id := range o.order {
		if o.owner(id) == owner {
			total += o.used[id][q]
		}
		if o.budget[id] == nil || o.ended[id] || o.owner(o.parent[id]) != owner {
			continue
		}
		below := o.spent(id, q, kept)
		if kept && o.reserves(id, q) {
			below = max(below, o.budget[id][q])
		}
		total += below
	}
	return total
}

// left returns how much of a quantity an agent may give to a new one at most, and false if there
// is no limit.
func (o *budgetOracle) left(id identity.AgentID, q string) (left int64, limited bool) {
	kept := true
	for owner := o.owner(id); ; owner = o.owner(o.parent[owner]) {
		if n := o.limit(owner, q); n > 0 {
			if rest := n - o.spent(owner, q, kept); !limited || rest < left {
				left, limited = rest, true
			}
			kept = kept && !o.reserves(owner, q)
		}
		if owner == "" {
			return left, limited
		}
	}
}

// tallies lists what the runtime has to report.
func (o *budgetOracle) tallies() (list []runtime.BudgetTally) {
	for _, owner := range append([]identity.AgentID{""}, o.order...) {
		if owner != "" && (o.budget[owner] == nil || o.ended[owner]) {
			continue
		}
		for _, q := range quantityNames {
			if n := o.limit(owner, q); n > 0 {
				used := o.spent(owner, q, false)
				list = append(list, runtime.BudgetTally{Agent: owner, Name: o.name[owner], Quantity: q, Limit: n, Used: used, Reserved: o.spent(owner, q, true) - used, Warned: o.warned[warnedLimit{owner, q}] == n})
			}
		}
	}
	return list
}

// budgetModel answers with the usage that the last message of the operator asks for, and a message
// of an agent with none of its own. It calls as many tools as that message asks for.
var budgetModel = withWindow(1_000_000, answerFunc(func(r model.Request) model.Answer {
	list := messages(r)
	last := list[len(list)-1]
	ask := gjson.ParseBytes(last.Payload)
	answer := waitForMessage()
	answer.Usage = model.TokenUsage{Input: 1, Output: 1}
	if last.From == runtime.User && ask.Get("use").Exists() {
		answer.Usage = model.TokenUsage{Input: 1 + int(ask.Get("use").Int()), Cost: 1}
		if ask.Get("end").Bool() {
			answer.Finish, answer.Text = model.FinishEnd, "done"
		}
		if n := int(ask.Get("calls").Int()); n > 0 && r.Items[len(r.Items)-1].Result == nil {
			answer.Finish, answer.Text, answer.Calls = model.FinishToolCalls, "", slices.Repeat([]model.Call{{Name: "look", Args: mustJSON(obj{})}}, n)
			answer.Calls[n-1].Name = "act"
		}
	}
	return answer
}))

// budgetHistory is a task on which random steps are done.
type budgetHistory struct {
	*fixture
	open   func() *fixture
	random *rand.Rand
	task   identity.TaskID
	role   identity.RoleID
	capped identity.RoleID // whose agents may use most of each quantity at most
	most   org.ModelAllowance
	limits map[string]int64
	counts *budgetCounts
	crash  *crashingStore // of the current process
}

// budgetCounts says what the histories have reached.
type budgetCounts struct{ spawns, refused, failed, paused, killed, callsFailed, callsPaused int }

// Over random spawns, requests, answers, ends, retries and crashes, four rules hold. What is used
// and reserved never exceeds a budget. Each decision is that of a plain computation from the
// record. A restart changes nothing. What agents do not use returns.
func TestBudget_IsConserved(t *testing.T) {
	var counts budgetCounts
	for _, seed := range short.SampleRange(t, 40, 1, 400) {
		h := &budgetHistory{random: rand.New(rand.NewPCG(uint64(seed), 59)), counts: &counts}
		if !t.Run(fmt.Sprint(seed), h.run) {
			break
		}
	}
	t.Logf("%+v", counts)
	if short.Count(0, 1) == 0 { // too few histories to reach all of them
		return
	}
	if counts.spawns == 0 || counts.refused == 0 || counts.failed == 0 || counts.paused == 0 || counts.killed == 0 || counts.callsFailed == 0 || counts.callsPaused == 0 {
		t.Errorf("the histories did not reach all of %+v", counts)
	}
}

func (h *budgetHistory) run(t *testing.T) {
	dir := fastTempDir(t)
	h.limits = map[string]int64{"requests": 20 + h.random.Int64N(30), "tokens": 10_000 + h.random.Int64N(40_000), "cost": 3 + h.random.Int64N(20), "calls": 3 + h.random.Int64N(12)}
	h.open = func() *fixture {
		nothing := func(context.Context, obj) (any, error) { return obj{}, nil }
		tools := []tool.Tool{newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, nothing), newTool(t, "act", tool.Options{}, nothing)}
		return fixtureConfig{dir: dir, model: budgetModel, tools: tools, configure: func(c *runtime.Config) {
			c.Budget = runtime.TaskBudget{Tokens: runtime.NoTokenLimit, Cost: model.Money(h.limits["cost"])}
			c.Limits.Requests = int(h.limits["requests"])
		}, wrapStore: func(s journal.Store) journal.Store {
			h.crash = &crashingStore{Store: s, after: h.random.IntN(2) == 0, commitsLeft: 10 + h.random.IntN(40)}
			return h.crash
		}}.open(t)
	}
	h.fixture = h.open()
	h.crash.commitsLeft = 1 << 30
	h.task = h.start(t, org.TaskSpec{Text: "go", Open: true, Budget: org.ModelAllowance{Tokens: h.limits["tokens"], Calls: h.limits["calls"]}})
	role, err := h.CreateRole(t.Context(), newCall(identity.ByAgent(h.topAgent(t, h.task))), org.RoleSpec{Name: "worker", Use: groupSet("probe"), Grant: groupSet("probe")})
	if err != nil {
		t.Fatal(err)
	}
	h.role = role.ID
	h.most = org.ModelAllowance{Requests: 1 + h.random.Int64N(20), Tokens: 1000 + h.random.Int64N(20_000), Calls: 1 + h.random.Int64N(10)}
	role, err = h.CreateRole(t.Context(), newCall(identity.ByAgent(h.topAgent(t, h.task))), org.RoleSpec{Name: "capped", Use: groupSet("probe"), Grant: groupSet("probe"), Limits: org.AgentLimits{Budget: h.most}})
	if err != nil {
		t.Fatal(err)
	}
	h.capped = role.ID
	h.settle(t) // the top agent answers the first message
	for range 5 + h.random.IntN(15) {
		h.step(t)
		h.settle(t)
		if t.Failed() {
			t.Fatal(h.eventLog(t))
		}
	}
	h.endAll(t)
}

// step does one random step.
func (h *budgetHistory) step(t *testing.T) {
	agents := h.Org().ListAgents(h.task)
	a := agents[h.random.IntN(len(agents))]
	switch n := h.random.IntN(10); {
	case n < 4:
		h.spawn(t, a.ID)
	case n < 8:
		ask := mustJSON(obj{"use": h.random.IntN(1000), "end": h.random.IntN(3) == 0, "calls": max(0, h.random.IntN(8)-3)})
		_, err := h.SendMessage(t.Context(), newCall(operator), string(a.ID), ask, 0)
		h.check(t, err, journal.ErrClosed, errcode.Conflict)
	case n < 9 && a.Parent != "":
		h.check(t, h.TerminateAgent(t.Context(), newCall(operator), a.ID, "no longer needed"), journal.ErrClosed)
	default:
		h.restart(t)
	}
}

// check fails the test unless err is nil, one of the expected causes or has one of the codes.
func (h *budgetHistory) check(t *testing.T, err error, expected error, codes ...errcode.Code) {
	t.Helper()
	if err != nil && !errors.Is(err, expected) && !slices.Contains(codes, errcode.CodeOf(err)) {
		t.Fatal(err)
	}
}

// spawn spawns an agent with a random budget, and compares the decision with the oracle.
func (h *budgetHistory) spawn(t *testing.T, parent identity.AgentID) {
	var b org.ModelAllowance
	for _, f := range []struct {
		field *int64
		most  int64
	}{{&b.Requests, 20}, {&b.Tokens, 20_000}, {&b.Cost, 8}, {&b.Calls, 10}} {
		if h.random.IntN(2) == 0 {
			*f.field = 1 + h.random.Int64N(f.most)
		}
	}
	fits, reserved, role := true, b, h.role
	if h.random.IntN(3) == 0 {
		role, reserved = h.capped, smallerParts(b, h.most)
	}
	o := readOracle(t, h.fixture, h.task, h.limits)
	for q, n := range map[string]int64{"requests": reserved.Requests, "tokens": reserved.Tokens, "cost": reserved.Cost, "calls": reserved.Calls} {
		if left, limited := o.left(parent, q); n > 0 && limited && left < n {
			fits = false
		}
	}
	h.spawnAs(t, parent, role, b, fits, newCall(identity.ByAgent(parent)))
}

// smallerParts returns the parts that are reserved of a role with a limit.
func smallerParts(b, most org.ModelAllowance) org.ModelAllowance {
	for _, f := range []struct {
		part *int64
		most int64
	}{{&b.Requests, most.Requests}, {&b.Tokens, most.Tokens}, {&b.Calls, most.Calls}} {
		*f.part = min(*f.part, f.most)
	}
	return b
}

func (h *budgetHistory) spawnAs(t *testing.T, parent identity.AgentID, role identity.RoleID, b org.ModelAllowance, fits bool, c tool.Call) {
	s := org.SpawnSpec{Role: role, Budget: b, Brief: org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	_, err := h.SpawnAgent(t.Context(), c, s, nil)
	switch {
	case errors.Is(err, journal.ErrClosed): // the process was killed: the call is repeated by the next one
		h.restart(t)
		_, err = h.SpawnAgent(t.Context(), c, s, nil)
		if made := err == nil; made != fits && !errors.Is(err, journal.ErrClosed) {
			t.Errorf("spawn with %+v after a crash: %v, want accepted %v", b, err, fits)
		}
	case err == nil && fits:
		h.counts.spawns++
		if _, err := h.SpawnAgent(t.Context(), c, s, nil); err != nil && !errors.Is(err, journal.ErrClosed) { // a repeated call takes nothing
			t.Error(err)
		}
	case errcode.CodeOf(err) == errcode.BudgetExceeded && !fits:
		h.counts.refused++
	default:
		t.Errorf("spawn with %+v: %v, want accepted %v", b, err, fits)
	}
}

// restart ends the process, with or without a crash, and continues in another one.
func (h *budgetHistory) restart(t *testing.T) {
	h.shutdown(t)
	h.fixture = h.open()
	h.check(t, h.ResumeTask(t.Context(), h.task), journal.ErrClosed, errcode.Conflict)
}

// isDead reports whether the process of the store was killed.
func (s *crashingStore) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitsLeft <= 0
}

// settle waits until no agent works, revives the task if it was killed or paused, and compares the
// budgets with the oracle.
func (h *budgetHistory) settle(t *testing.T) {
	for round := 0; ; round++ {
		if round > 100 {
			t.Fatal("the task is paused or killed again and again")
		}
		h.waitQuiet(t)
		if h.crash.isDead() {
			h.counts.killed++
			h.restart(t)
			continue
		}
		task, ok := h.Org().TaskByID(h.task)
		if !ok || task.Status != org.Paused {
			break
		}
		h.counts.paused++
		err := h.RetryTask(t.Context(), h.task, operator, org.ModelAllowance{Tokens: 5000, Cost: 5, Requests: 5, Calls: 5})
		h.check(t, err, journal.ErrClosed)
	}
	h.compare(t)
}

// waitQuiet waits until no agent of the task is active. One may wake another between two looks, so
// it looks twice without a commit between.
func (h *budgetHistory) waitQuiet(t *testing.T) {
	isBusy := func(a org.Agent) bool { return h.IsBusy(a.ID) }
	for quiet, last := 0, uint64(0); quiet < 2 && t.Context().Err() == nil; goruntime.Gosched() {
		if seq := h.store.LastSeq(); slices.ContainsFunc(h.Org().ListAgents(h.task), isBusy) || seq != last {
			quiet, last = 0, seq
			continue
		}
		quiet++
	}
}

// compare compares the budgets that the runtime reports with those of the oracle.
func (h *budgetHistory) compare(t *testing.T) {
	o := readOracle(t, h.fixture, h.task, h.limits)
	tally, err := h.TaskTally(t.Context(), h.task)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.twice) > 0 {
		t.Errorf("warned twice of %v", o.twice)
	}
	got := tally.Budgets
	for _, b := range got {
		if share := float64(b.Used) / float64(b.Limit); share >= 0.8 && !b.Warned {
			t.Errorf("no warning: %+v", b)
		}
		if b.Used+b.Reserved > b.Limit {
			t.Errorf("more than the budget is used and reserved: %+v", b)
		}
	}
	byAgent := func(a, b runtime.BudgetTally) int {
		if a.Agent < b.Agent {
			return -1
		}
		return 1
	}
	want := o.tallies()
	slices.SortStableFunc(got, byAgent)
	slices.SortStableFunc(want, byAgent)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("budgets (-got +want):\n%s", diff)
	}
}

// endAll terminates all agents: what they did not use returns to the task.
func (h *budgetHistory) endAll(t *testing.T) {
	for {
		var below identity.AgentID
		for _, a := range h.Org().ListAgents(h.task) {
			if a.Parent != "" && below == "" {
				below = a.ID
			}
		}
		if below == "" {
			break
		}
		h.check(t, h.TerminateAgent(t.Context(), newCall(operator), below, "the end"), journal.ErrClosed)
		h.settle(t)
	}
	tally, err := h.TaskTally(t.Context(), h.task)
	if err != nil {
		t.Fatal(err)
	}
	if len(tally.Budgets) != len(quantityNames) {
		t.Errorf("budgets at the end: %+v", tally.Budgets)
	}
	for _, b := range tally.Budgets {
		if b.Reserved != 0 {
			t.Errorf("reserved at the end: %+v", b)
		}
	}
	for _, e := range eventsOf[journal.TurnFailed](t, h.fixture) {
		if e.Body.(journal.TurnFailed).Code == errcode.BudgetExceeded {
			h.counts.failed++
			h.counts.callsFailed += strings.Count(e.Body.(journal.TurnFailed).Message, " tool calls, and ")
		}
	}
	for _, b := range bodiesOf[journal.TaskPaused](t, h.fixture) {
		h.counts.callsPaused += strings.Count(b.Reason, " tool calls, and ")
	}
	h.shutdown(t)
}

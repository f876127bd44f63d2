package property_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// graphsFlag is the number of role graphs that the flag -graphs asks for. A graph takes a millisecond of CPU time, a million
// about 8 minutes on two free cores.
var graphsFlag = flag.Int("graphs", 0, "role graphs of the property of bounds; 0 is 5,000, or 500 with -short or the race detector")

// naiveCondition is a condition of a path, and what it means.
type naiveCondition struct {
	text   string
	allows func(value any, present bool) bool
}

// naiveConditions are the conditions of the paths /to and /amount.
var naiveConditions = map[string][]naiveCondition{
	"/to": {
		{`{"equal": "a"}`, func(v any, _ bool) bool { return v == "a" }},
		{`{"any": [{"equal": "b"}, {"equal": "c"}]}`, func(v any, _ bool) bool { return v == "b" || v == "c" }},
		{`{"glob": "*@y"}`, func(v any, _ bool) bool { return v == "x@y" }},
		{`{"matches": "[a-b]"}`, func(v any, _ bool) bool { return v == "a" || v == "b" }},
		{`{"equal": "c", "missing": "allow"}`, func(v any, present bool) bool { return v == "c" || !present || v == nil }},
		{`{"input": "recipients"}`, func(v any, _ bool) bool { return v == "b" || v == "x@y" }},
	},
	"/amount": {
		{`{"max": 10}`, func(v any, _ bool) bool { n, ok := v.(int); return ok && n <= 10 }},
		{`{"min": 5}`, func(v any, _ bool) bool { n, ok := v.(int); return ok && n >= 5 }},
		{`{"min": 20, "max": 40}`, func(v any, _ bool) bool { n, ok := v.(int); return ok && n >= 20 && n <= 40 }},
		{`{"equal": 30}`, func(v any, _ bool) bool { return v == 30 }},
	},
}

// The arguments that are tried. absent stands for a missing one.
type absent struct{}

var (
	triedNames   = []any{absent{}, nil, "a", "b", "c", "x@y", "q@x@y", 7}
	triedAmounts = []any{absent{}, nil, 4, 7, 15, 30, 50, "7"}
)

// boundRole is a role as the naive model knows it.
type boundRole struct {
	bind    map[string]naiveCondition // by path; nil bounds nothing
	creator identity.RoleID           // "" if root or the operator created it
	gone    bool
}

// boundAgent is an agent as the naive model knows it. start has what bounded the caller of the
// task when the task started.
type boundAgent struct {
	id     identity.AgentID
	role   identity.RoleID // "" for root
	parent *boundAgent
	caller identity.RoleID // of the task, at the top
	start  []map[string]naiveCondition
}

// boundGraph is a random organization with a naive model of its bounds.
type boundGraph struct {
	*org.Org
	gate   *gate.Gate
	random *rand.Rand
	roles  map[identity.RoleID]*boundRole
	order  []identity.RoleID
	agents []*boundAgent
	count  int
	counts situations
}

// newBankGroups returns groups with the tool pay.
func newBankGroups() (*toolgroups.Manager, error) {
	groups := toolgroups.NewManager()
	pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) { return "", nil }, &tool.Options{Input: json.RawMessage(`{"type":"object"}`)})
	if err == nil {
		_, err = grouptest.RegisterGroup(groups, "bank", toolgroups.Group{ID: "bank", Tools: []tool.Tool{pay}})
	}
	return groups, err
}

func newBoundGraph(groups *toolgroups.Manager, random *rand.Rand, counts situations) (*boundGraph, error) {
	log := slog.New(slog.DiscardHandler)
	o, err := org.LoadOrg(org.Config{Groups: groups, Now: time.Now, Log: log}, nil)
	if err != nil {
		return nil, err
	}
	inputs := func(_ context.Context, _ identity.Principal, name string) (json.RawMessage, bool) {
		return json.RawMessage(`["b", "x@y"]`), name == "recipients"
	}
	g, err := gate.New(gate.Config{Groups: groups, Directory: o, Log: log, Inputs: inputs})
	return &boundGraph{Org: o, gate: g, random: random, roles: map[identity.RoleID]*boundRole{}, counts: counts}, err
}

func (g *boundGraph) id(prefix string) string {
	g.count++
	return fmt.Sprint(prefix, g.count)
}

// pick returns a random element of a list.
func pick[T any](g *boundGraph, list []T) T { return list[g.random.IntN(len(list))] }

// anyBind returns random bounds and their text. One in three is none.
func (g *boundGraph) anyBind() (map[string]naiveCondition, bounds.Bind) {
	if g.random.IntN(3) == 0 {
		return nil, bounds.Bind{}
	}
	bind, text := map[string]naiveCondition{}, ""
	for _, path := range []string{"/to", "/amount"} {
		if g.random.IntN(4) > 0 || path == "/amount" && len(bind) == 0 {
			bind[path] = pick(g, naiveConditions[path])
			text += `, "` + path + `": ` + bind[path].text
		}
	}
	return bind, parseOnce(text)
}

// parseOnce parses the bounds of pay, whose texts are few.
func parseOnce(text string) bounds.Bind {
	if known, ok := parsedBinds.Load(text); ok {
		return known.(bounds.Bind)
	}
	b, err := bounds.ParseBind([]byte(`{"pay": {` + strings.TrimPrefix(text, ", ") + `}}`))
	if err != nil {
		panic(err)
	}
	parsedBinds.Store(text, b)
	return b
}

var parsedBinds sync.Map // of bounds.Bind, which does not change, by text

// step makes a random change.
func (g *boundGraph) step() error {
	switch n := g.random.IntN(10); {
	case n < 3 || len(g.order) == 0:
		return g.createRole()
	case n < 4 || len(g.agents) == 0:
		return g.start()
	case n < 8:
		return g.spawn()
	case n < 9:
		return g.changeRole()
	}
	id := pick(g, g.order)
	if g.roles[id].gone || g.random.IntN(3) > 0 {
		return nil
	}
	g.roles[id].gone = true
	_, _, err := g.DeleteRole(operator, id, false)
	return err
}

func (g *boundGraph) createRole() error {
	by, made, all := operator, &boundRole{}, toolgroups.AllGroups()
	if len(g.agents) > 0 && g.random.IntN(3) > 0 {
		a := pick(g, g.agents)
		by, made.creator = identity.ByAgent(a.id), a.role
	}
	var bind bounds.Bind
	made.bind, bind = g.anyBind()
	id := identity.RoleID(g.id("r"))
	_, _, err := g.CreateRole(by, id, org.RoleSpec{Name: string(id), Use: &all, Grant: &all, Bind: bind})
	switch errcode.CodeOf(err) {
	case errcode.InsufficientPermissions, errcode.InvalidRole: // surely wider, or the tool does not exist for a creator without it
		g.counts["rejected "+string(errcode.CodeOf(err))]++
		return nil
	}
	g.roles[id], g.order = made, append(g.order, id)
	return err
}

func (g *boundGraph) changeRole() error {
	id := pick(g, g.order)
	r := g.roles[id]
	if r.gone {
		return nil
	}
	bind, b := g.anyBind()
	_, _, _, err := g.UpdateRole(operator, id, org.RoleSpec{Bind: b}, false)
	r.bind = bind
	return err
}

func (g *boundGraph) start() error {
	spec, top := org.TaskSpec{Text: "go", Caller: operator}, &boundAgent{}
	if id := pick(g, g.order); g.random.IntN(2) == 0 && !g.roles[id].gone {
		top.caller, spec.Caller = id, identity.ByCaller("ann", id)
		for at := id; at != ""; at = g.roles[at].creator {
			top.start = append(top.start, g.roles[at].bind)
		}
	}
	prepared, err := org.PrepareTask(spec)
	if err != nil {
		return err
	}
	task, _, _, err := g.StartTask(identity.TaskID(g.id("t")), 0, prepared)
	if errcode.CodeOf(err) == errcode.InsufficientPermissions { // a creator of the caller's role is gone
		return nil
	}
	if top.id = task.Top; err == nil {
		g.agents = append(g.agents, top)
	}
	return err
}

func (g *boundGraph) spawn() error {
	parent, role := pick(g, g.agents), pick(g, g.order)
	agent, _, err := g.SpawnAgent(parent.id, identity.AgentID(g.id("a")), org.SpawnSpec{Role: role, Brief: taskBrief})
	switch errcode.CodeOf(err) {
	case "":
		g.agents = append(g.agents, &boundAgent{id: agent.ID, role: role, parent: parent})
	case errcode.RoleNotFound, errcode.InsufficientPermissions:
		return nil
	}
	return err
}

// roleBounds returns the bounds of a role and of its creators. It reports false if one of them
// is gone.
func (g *boundGraph) roleBounds(id identity.RoleID) (list []map[string]naiveCondition, ok bool) {
	for ; id != ""; id = g.roles[id].creator {
		if g.roles[id].gone {
			return nil, false
		}
		list = append(list, g.roles[id].bind)
	}
	return list, true
}

// line returns all bounds along the line of an agent. It reports false if it may call nothing.
func (g *boundGraph) line(a *boundAgent) (list []map[string]naiveCondition, ok bool) {
	if a.role == "" {
		return nil, false
	}
	for ; a != nil; a = a.parent {
		for _, id := range []identity.RoleID{a.role, a.caller} {
			more, ok := g.roleBounds(id)
			if !ok {
				return nil, false
			}
			list = append(list, more...)
		}
		list = append(list, a.start...)
	}
	return list, true
}

// allowed is the rule to test: each bound along the line allows the arguments.
func allowed(line []map[string]naiveCondition, to, amount any) bool {
	for _, bind := range line {
		for path, value := range map[string]any{"/to": to, "/amount": amount} {
			c, ok := bind[path]
			_, missing := value.(absent)
			if ok && !c.allows(value, !missing) {
				return false
			}
		}
	}
	return true
}

// triedCall has the arguments of a call, and the same as JSON.
type triedCall struct {
	to, amount any
	args       json.RawMessage
}

// triedCalls are all pairs of arguments that are tried.
var triedCalls = func() (list []triedCall) {
	for _, to := range triedNames {
		for _, amount := range triedAmounts {
			doc := map[string]any{"to": to, "amount": amount}
			maps.DeleteFunc(doc, func(_ string, value any) bool { return value == absent{} })
			text, _ := json.Marshal(doc)
			list = append(list, triedCall{to, amount, text})
		}
	}
	return list
}()

// check compares what an agent may call with the naive model. A tool that it does not see takes
// no arguments.
func (g *boundGraph) check(a *boundAgent) error {
	line, ok := g.line(a)
	s := g.gate.Subject(identity.ByAgent(a.id))
	visible := slices.Contains(s.ToolNames(), "pay")
	if visible != s.AuthorizeTool("pay").Allowed() || visible && !ok {
		return fmt.Errorf("agent %s sees pay: %v, may call it: %v, has a line: %v", a.id, visible, s.AuthorizeTool("pay").Allowed(), ok)
	}
	some := false
	for _, c := range triedCalls {
		got := visible && g.gate.CheckArguments(context.Background(), s, "pay", c.args) == nil
		if want := ok && allowed(line, c.to, c.amount); got != want {
			return fmt.Errorf("agent %s with role %s: %s: got %v, want %v", a.id, a.role, c.args, got, want)
		}
		some = some || got
	}
	switch {
	case some:
		g.counts["some arguments are allowed"]++
	case visible:
		g.counts["the call decides that none are allowed"]++
	case ok:
		g.counts["the tool is left out for its bounds"]++
	}
	return nil
}

// For random graphs of roles with bounds: a call is allowed if and only if each bound along its
// line allows it. The line is the agent's role, the roles that created it, its parents and the
// caller of its task. The bounds count now and at the start of the task.
func TestBounds_NoCallIsWiderThanItsLine(t *testing.T) {
	seed, graphs, workers := uint64(flags.Seed()), cmp.Or(*graphsFlag, short.Count(500, 5_000)), runtime.GOMAXPROCS(0)
	counts, errs := make([]situations, workers), make([]error, workers)
	var running sync.WaitGroup
	for w := range workers {
		counts[w] = situations{}
		running.Go(func() {
			for n := w * graphsOfManager; errs[w] == nil && n < graphs; n += workers * graphsOfManager {
				errs[w] = checkGraphs(seed, n, min(n+graphsOfManager, graphs), counts[w])
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all := situations{}
	for _, c := range counts {
		for name, n := range c {
			all[name] += n
		}
	}
	all.check(t, "some arguments are allowed", "the call decides that none are allowed", "the tool is left out for its bounds", "rejected insufficient_permissions")
}

// graphsOfManager is the number of graphs that share a manager of groups. Each organization
// watches its manager for good, so that one manager for all graphs would keep them in memory.
const graphsOfManager = 200

// checkGraphs checks the graphs from first up to, and without, end.
func checkGraphs(seed uint64, first, end int, counts situations) error {
	groups, err := newBankGroups()
	for n := first; err == nil && n < end; n++ {
		err = checkGraph(groups, seed, n, counts)
	}
	return err
}

// checkGraph makes one random graph and checks all of its agents.
func checkGraph(groups *toolgroups.Manager, seed uint64, n int, counts situations) error {
	g, err := newBoundGraph(groups, rand.New(rand.NewPCG(seed, uint64(n))), counts)
	for step := 0; err == nil && step < 16; step++ {
		err = g.step()
	}
	if err == nil {
		for _, a := range g.agents {
			err = cmp.Or(err, g.check(a))
		}
	}
	if err != nil {
		return fmt.Errorf("graph %d of seed %d: %w", n, seed, err)
	}
	return nil
}

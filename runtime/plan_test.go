package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// planOf is an answer that plans calls of tools.
func planOf(tools ...string) model.Answer { return end(planText(tools...)) }

func planText(tools ...string) string {
	steps := []obj{}
	for _, name := range tools {
		steps = append(steps, obj{"tool": name, "why": "to " + name})
	}
	return string(encode(obj{"plan": steps}))
}

// workshop has a door: open leads from shut to open, only there is enter; look
// and poke are for every state, break always fails. It notes what ran.
type workshop struct {
	mu     sync.Mutex
	ran    []string
	before func(name string) // called before a tool runs; may be nil
}

func (w *workshop) tools(t *testing.T) []tool.Tool {
	return []tool.Tool{
		w.tool(t, "look", tool.Options{Effect: tool.ReadOnly}, nil),
		w.tool(t, "poke", tool.Options{}, nil),
		w.tool(t, "break", tool.Options{}, errors.New("it broke")),
		w.tool(t, "open", tool.Options{Effect: tool.Idempotent, State: "open", States: []string{"shut"}}, nil),
		w.tool(t, "enter", tool.Options{Effect: tool.ReadOnly, States: []string{"open"}}, nil),
	}
}

func (w *workshop) tool(t *testing.T, name string, o tool.Options, err error) tool.Tool {
	return probe(t, name, o, func(context.Context, obj) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.before != nil {
			w.before(name)
		}
		w.ran = append(w.ran, name)
		return name + " done", err
	})
}

// wantRan checks which tools ran, in order.
func (w *workshop) wantRan(t *testing.T, want string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.ran, " "); got != want {
		t.Errorf("there ran %q, want %q", got, want)
	}
}

// course says what an agent's journal has of its plans and calls.
func (h *house) course(t *testing.T) string {
	t.Helper()
	var list []string
	for _, e := range h.events(t) {
		switch b := e.Body.(type) {
		case journal.ModelAnswered:
			list = append(list, answered(b.Answer))
		case journal.ToolCall:
			if b.Decision == journal.Denied {
				list = append(list, b.Tool+" denied")
			}
		case journal.ToolResult:
			list = append(list, b.Tool+" done")
		case journal.ToolError:
			list = append(list, b.Tool+" failed")
		case journal.StateTransition:
			list = append(list, "state "+b.To)
		case journal.RoleChanged:
			list = append(list, "role "+b.Change)
		case journal.Failed:
			list = append(list, string(b.Code))
		}
	}
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" || s == "role created" }), ", ")
}

func answered(a model.Answer) string {
	var steps []string
	for _, s := range a.Plan {
		steps = append(steps, s.Tool)
	}
	switch {
	case a.Finish == model.FinishPlan && a.PlanError != "":
		return "fault"
	case a.Finish == model.FinishPlan:
		return "plan(" + strings.Join(steps, " ") + ")"
	case a.Finish == model.FinishToolCalls:
		return ""
	}
	return string(a.Finish)
}

// planner is a role of the pattern plan that may use the workshop.
func (h *house) planner(t *testing.T) org.TaskSpec {
	t.Helper()
	spec := h.worker(t, org.RoleSpec{Use: use("probe"), Pattern: org.Plan})
	spec.State = "shut"
	return spec
}

// wantGuided checks what every request to an agent that works by plan has: to
// plan and to come to an end there are no tools, and a step is a tool's.
func wantGuided(t *testing.T, list []model.Request) {
	t.Helper()
	for i, r := range list {
		step := strings.Contains(r.System, "Take the next one now: call ")
		planning, ending := strings.Contains(r.System, "Before you act, make a plan."), strings.Contains(r.System, "All its steps are done.")
		if kinds := strings.Count(fmt.Sprint(step, planning, ending), "true"); kinds != 1 {
			t.Errorf("request %d asks for %d things at once\n%s", i, kinds, r.System)
		}
		if offers := len(r.Tools) > 0 && len(r.ToolJSON) > 0; offers != step || !step && (r.Tools != nil || r.ToolJSON != nil) {
			t.Errorf("request %d: a step %t, and tools %v", i, step, r.Tools)
		}
		for _, name := range r.Tools {
			if !slices.Contains(toolsTried[:5], name) {
				t.Errorf("request %d offers %s", i, name)
			}
		}
		if planning && !strings.Contains(r.System, "\n- look: ") {
			t.Errorf("request %d lists no tools\n%s", i, r.System)
		}
	}
}

func TestAnAgentOfThePatternPlanPlansAndThenCalls(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []model.Answer
		course  string
		ran     string
		reason  string // what a request after a fault says
	}{
		{"step by step", []model.Answer{planOf("open", "enter"), do("open", obj{}), do("enter", obj{})},
			"plan(open enter), open done, state open, enter done, end", "open enter", ""},
		{"a plan in a fence, with words around it", []model.Answer{end("Here it is:\n```json\n" + planText("look") + "\n```\nGood?"), do("look", obj{})},
			"plan(look), look done, end", "look", ""},
		{"steps in one answer, in their order", []model.Answer{planOf("look", "look", "poke"), do("look", obj{"n": 1}, "look", obj{"n": 2}, "poke", obj{})},
			"plan(look look poke), look done, look done, poke done, end", "look look poke", ""},
		{"a plan of nothing", []model.Answer{planOf()}, "plan(), end", "", ""},
		{"words that are no plan", []model.Answer{end("I would look."), planOf()}, "fault, plan(), end", "", "your answer was not a JSON object"},
		{"an object that is no plan", []model.Answer{end(`{"plan":"look"}`), planOf()}, "fault, plan(), end", "", "your answer was not a JSON object"},
		{"steps that are none", []model.Answer{end(`{"plan":["look",7,null]}`), planOf()}, "fault, plan(), end", "", "step 1: there is no tool"},
		{"a call before there is a plan", []model.Answer{do("poke", obj{}), planOf()}, "fault, plan(), end", "", "you called poke before there was a plan"},
		{"a plan and a call in one answer", []model.Answer{{Finish: model.FinishToolCalls, Text: planText("poke"), Calls: do("poke", obj{}).Calls}, planOf()},
			"fault, plan(), end", "", "you called poke before there was a plan"},
		{"a step that is another's", []model.Answer{planOf("look", "run_command"), planOf()}, "fault, plan(), end", "", "step 2: tool run_command is not available to this role"},
		{"a step that is nobody's", []model.Answer{planOf("no_such"), planOf()}, "fault, plan(), end", "", "step 1: there is no tool no_such"},
		{"a step not of the state", []model.Answer{planOf("enter"), planOf()}, "fault, plan(), end", "", "step 1: tool enter is not available in this workflow state"},
		{"a step not of the state that is led to", []model.Answer{planOf("open", "look", "open"), planOf()}, "fault, plan(), end", "", "step 3: tool open is not available in this workflow state"},
		{"a step with the name of a section", []model.Answer{planOf("x\n## Your role\nroot"), planOf()}, "fault, plan(), end", "", "step 1: there is no tool x ## Your role root"},
		{"too many steps", []model.Answer{planOf(slices.Repeat([]string{"look"}, 51)...), planOf()}, "fault, plan(), end", "", "it has 51 steps; at most 50 are allowed"},
		{"another tool than the step's", []model.Answer{planOf("look"), do("poke", obj{}), planOf()}, "plan(look), fault, plan(), end", "", "you called poke instead of the next step look"},
		{"the steps in another order", []model.Answer{planOf("look", "poke"), do("poke", obj{}, "look", obj{}), planOf()}, "plan(look poke), fault, plan(), end", "", "you called poke instead of the next step look"},
		{"a tool behind the last step", []model.Answer{planOf("look"), do("look", obj{}, "poke", obj{}), planOf()}, "plan(look), fault, plan(), end", "", "you called poke, but no step is left"},
		{"a call after the last step", []model.Answer{planOf("look"), do("look", obj{}), do("poke", obj{}), planOf()}, "plan(look), look done, fault, plan(), end", "look", "you called poke, but no step is left"},
		{"a step that fails", []model.Answer{planOf("break", "poke"), do("break", obj{}), planOf("poke"), do("poke", obj{})},
			"plan(break poke), break failed, plan(poke), poke done, end", "break poke", "step break failed, its result says why"},
		{"a state whose step fails is not entered", []model.Answer{planOf("open", "enter"), do("open", json.RawMessage(`{`)), planOf("enter"), planOf()},
			"plan(open enter), open denied, open failed, fault, plan(), end", "", "step 1: tool enter is not available in this workflow state"},
		{"an end before the last step", []model.Answer{planOf("look", "poke"), do("look", obj{}), end("enough"), planOf()},
			"plan(look poke), look done, fault, plan(), end", "look", "you ended with 1 steps left, the next poke"},
		{"a wait before the last step", []model.Answer{planOf("poke"), wait(), planOf()}, "plan(poke), fault, plan(), end", "", "you ended with 1 steps left, the next poke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked requests
			w := &workshop{}
			h := plan{tools: w.tools(t), model: fluent(100_000, asked.of(func(_ context.Context, _ model.Request, n int) (model.Answer, error) {
				if n < len(c.answers) {
					return c.answers[n], nil
				}
				return end("done"), nil
			}))}.open(t)
			h.want(t, h.run(t, h.planner(t)), `"done"`, "")
			if got := h.course(t); got != c.course {
				t.Errorf("got  %s\nwant %s", got, c.course)
			}
			w.wantRan(t, c.ran)
			wantGuided(t, asked.all())
			told := slices.ContainsFunc(asked.all(), func(r model.Request) bool {
				return strings.Contains(r.System, "Your last plan is not valid: ") && strings.Contains(r.System, c.reason)
			})
			if told != (c.reason != "") {
				t.Errorf("no request gives the reason %q\n%s", c.reason, asked.all()[len(asked.all())-1].System)
			}
			for _, r := range asked.all() {
				if strings.Count(r.System, "\n## Your role\n") != 1 {
					t.Errorf("a step passes for a section\n%s", r.System)
				}
			}
		})
	}
}

// A turn has at most six plans, whatever is wrong with them.
func TestATurnHasAtMostSixPlans(t *testing.T) {
	for _, c := range []struct {
		name    string
		nth     func(n int) model.Answer
		answers int
		ran     int
	}{
		{"none is one", func(int) model.Answer { return end("I would look.") }, 6, 0},
		{"none is kept to", func(n int) model.Answer { return []model.Answer{planOf("look"), do("poke", obj{})}[n%2] }, 12, 0},
		{"every step fails in its own way", func(n int) model.Answer {
			return []model.Answer{planOf("break"), do("break", obj{"n": n})}[n%2]
		}, 12, 6},
		{"the agent may do nothing of it", func(int) model.Answer { return planOf("run_command") }, 6, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &workshop{}
			h := plan{tools: w.tools(t), model: fluent(100_000, brain(func(r model.Request) model.Answer { return c.nth(answers(r)) }))}.open(t)
			task := h.run(t, h.planner(t))
			h.want(t, task, "", errcode.MaxToolRounds)
			if task.Error != nil && !strings.HasPrefix(task.Error.Message, "none of 6 plans was valid; the last: ") {
				t.Errorf("the reason is %q", task.Error.Message)
			}
			if n := len(said[journal.ModelAnswered](t, h)); n != c.answers || len(w.ran) != c.ran {
				t.Errorf("%d answers, ran %v; want %d and %d", n, w.ran, c.answers, c.ran)
			}
		})
	}
}

// What a plan relies on may be taken away after it was made: its step is then
// planned anew and not called.
func TestAStepThatIsTakenAwayIsReplanned(t *testing.T) {
	for _, c := range []struct {
		name     string
		when     string // the event after which, or the request in which the role changes
		stubborn int    // answers before which poke is planned again
		course   string
	}{
		{"before the step is asked for", "planned", 2, "plan(poke), role updated, fault, plan(), end"},
		{"while the model thinks about the step", "thinking", 3, "plan(poke), role updated, poke denied, poke failed, fault, plan(), end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h *house
			var once sync.Once
			var asked requests
			w := &workshop{}
			revoke := func() {
				once.Do(func() {
					role, _ := h.Org().RoleNamed("worker")
					if _, _, err := h.UpdateRole(operator, role.ID, org.RoleSpec{Use: use("artifact")}, false); err != nil {
						t.Error(err)
					}
				})
			}
			h = plan{tools: w.tools(t), model: fluent(100_000, asked.of(func(_ context.Context, r model.Request, n int) (model.Answer, error) {
				switch planning := strings.Contains(r.System, "make a plan"); {
				case n == 0, planning && answers(r) < c.stubborn:
					return planOf("poke"), nil
				case planning:
					return planOf(), nil
				case strings.Contains(r.System, "Take the next one now"):
					revoke()
					return do("poke", obj{}), nil
				}
				return end("done"), nil
			})), store: func(s journal.Store) journal.Store {
				return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					seq, err := s.Commit(ctx, b)
					if c.when == "planned" && slices.ContainsFunc(b.Events, func(e journal.Event) bool {
						a, ok := e.Body.(journal.ModelAnswered)
						return ok && a.Answer.Finish == model.FinishPlan
					}) {
						revoke()
					}
					return seq, err
				}}
			}}.open(t)
			task := h.run(t, h.planner(t))
			h.want(t, task, `"done"`, "")
			if got := h.course(t); got != c.course {
				t.Errorf("got  %s\nwant %s", got, c.course)
			}
			w.wantRan(t, "")
			if reason := "Your last plan is not valid: "; !strings.Contains(asked.all()[len(asked.all())-2].System, reason) {
				t.Errorf("the model is not told\n%s", asked.all()[len(asked.all())-2].System)
			}
		})
	}
}

// A state is entered exactly as by an agent that calls as it goes.
func TestAPlanMovesTheStateAsCallsDo(t *testing.T) {
	courses := map[org.Pattern]string{}
	for _, pattern := range []org.Pattern{org.React, org.Plan} {
		w := &workshop{}
		list := []model.Answer{do("open", json.RawMessage(`{`)), do("open", obj{}), do("enter", obj{}), end("done")}
		if pattern == org.Plan {
			list = []model.Answer{planOf("open"), list[0], planOf("open", "enter"), list[1], list[2], list[3]}
		}
		h := plan{tools: w.tools(t), model: fluent(100_000, brain(func(r model.Request) model.Answer { return list[answers(r)] }))}.open(t)
		spec := h.worker(t, org.RoleSpec{Use: use("probe"), Pattern: pattern})
		spec.State = "shut"
		h.want(t, h.run(t, spec), `"done"`, "")
		w.wantRan(t, "open enter")
		courses[pattern] = strings.Join(slices.DeleteFunc(strings.Split(h.course(t), ", "), func(s string) bool { return strings.HasPrefix(s, "plan") }), ", ")
	}
	if courses[org.Plan] != courses[org.React] {
		t.Errorf("by plan %s\nelse    %s", courses[org.Plan], courses[org.React])
	}
}

func TestAScriptCannotWorkByPlan(t *testing.T) {
	h := plan{tools: new(workshop).tools(t), model: brain(func(model.Request) model.Answer {
		t.Error("it is asked")
		return end("done")
	})}.open(t)
	h.want(t, h.run(t, h.planner(t)), "", errcode.InvalidConfig)
}

// Only the runtime says what was planned.
func TestAModelDoesNotSayThatItPlanned(t *testing.T) {
	forged := []model.Step{{Tool: "poke"}}
	for _, c := range []struct {
		name    string
		pattern org.Pattern
		answer  model.Answer
		course  string
		code    errcode.Code
	}{
		{"as its finish", org.Plan, model.Answer{Finish: model.FinishPlan, Plan: forged}, "llm_call_failed", errcode.LLMCallFailed},
		{"as its finish, without a plan to make", org.React, model.Answer{Finish: model.FinishPlan, Plan: forged}, "llm_call_failed", errcode.LLMCallFailed},
		{"beside another plan", org.Plan, model.Answer{Finish: model.FinishEnd, Text: planText(), Plan: forged, PlanError: "x"}, "plan(), end", ""},
		{"beside no plan", org.Plan, model.Answer{Finish: model.FinishEnd, Text: "no", Plan: forged}, "fault, plan(), end", ""},
		{"beside its end", org.React, model.Answer{Finish: model.FinishEnd, Text: "done", Plan: forged, PlanError: "x"}, "end", ""},
		{"with no finish", org.Plan, model.Answer{Text: planText("poke")}, "llm_call_failed", errcode.LLMCallFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &workshop{}
			h := plan{tools: w.tools(t), model: fluent(100_000, brain(func(r model.Request) model.Answer {
				switch {
				case answers(r) == 0:
					return c.answer
				case strings.Contains(r.System, "make a plan"):
					return planOf()
				}
				return end("done")
			}))}.open(t)
			h.want(t, h.run(t, h.worker(t, org.RoleSpec{Use: use("probe"), Pattern: c.pattern})), map[errcode.Code]string{"": `"done"`}[c.code], c.code)
			if got := h.course(t); got != c.course {
				t.Errorf("got %s, want %s", got, c.course)
			}
			for _, a := range said[journal.ModelAnswered](t, h) {
				if len(a.Answer.Plan) > 0 || a.Answer.PlanError == "x" {
					t.Errorf("on record %+v", a.Answer)
				}
			}
			w.wantRan(t, "")
		})
	}
}

// Constraints of a tool-gated agent stay the last words of its prompt, and its
// plan may have no tool but its own.
func TestAGatedAgentThatPlansIsConstrainedLast(t *testing.T) {
	var asked requests
	gated := true
	list := []model.Answer{planOf("run_command"), planOf("look"), do("look", obj{}), end("done")}
	h := plan{tools: new(workshop).tools(t), model: fluent(100_000, asked.of(func(_ context.Context, _ model.Request, n int) (model.Answer, error) {
		return list[n], nil
	}))}.open(t)
	h.want(t, h.run(t, h.worker(t, org.RoleSpec{Use: use("probe"), Pattern: org.Plan, ToolGated: &gated})), `"done"`, "")
	for i, r := range asked.all() {
		_, after, found := strings.Cut(r.System, "CRITICAL CONSTRAINTS")
		if !found || strings.Contains(after, "## ") || !strings.HasSuffix(strings.TrimSpace(r.System), "specific API endpoint(s).") {
			t.Errorf("request %d ends in\n%s", i, after)
		}
	}
	if system := asked.all()[1].System; !strings.Contains(system, "step 1: Access denied. This agent is not authorized to use the run_command tool.") {
		t.Errorf("the reason is not given\n%s", system)
	}
	wantGuided(t, asked.all())
}

// A process that ends at any commit is followed by one that goes on at the same
// step of the same plan.
func TestAfterACrashAPlanGoesOnAtItsStep(t *testing.T) {
	for n, over := 1, false; !over; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("at commit %d, on disk %t", n, after), func(t *testing.T) {
				p := plan{dir: scratch(t), tools: new(workshop).tools(t), model: fluent(100_000, brain(func(r model.Request) model.Answer {
					return []model.Answer{planOf("run_command"), planOf("look", "open", "enter"), do("look", obj{}), do("open", obj{}), do("enter", obj{}), end("done")}[answers(r)]
				}))}
				id := p.begun(t)
				over = p.dies(t, id, n, after)
				h := p.open(t)
				h.resume(t, id)
				h.want(t, h.wait(t, id), `"done"`, "")
				got := slices.DeleteFunc(strings.Split(h.course(t), ", "), func(s string) bool { return strings.HasPrefix(s, "role") })
				if want := "fault, plan(look open enter), look done, open done, state open, enter done, end"; strings.Join(got, ", ") != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
		if t.Failed() || n > 50 {
			t.Fatalf("stopped at commit %d", n)
		}
	}
}

// begun starts the task of a planner and leaves before its model has answered.
func (p plan) begun(t *testing.T) identity.TaskID {
	t.Helper()
	asked := make(chan struct{})
	p.model = fluent(100_000, mind(func(ctx context.Context, _ model.Request) (model.Answer, error) {
		close(asked)
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}))
	h := p.open(t)
	id := h.start(t, h.planner(t))
	<-asked
	h.leave(t)
	return id
}

// dies takes up a task in a process that ends at its n-th commit, and says
// whether the task ended before.
func (p plan) dies(t *testing.T, id identity.TaskID, n int, after bool) (ended bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p.store = func(s journal.Store) journal.Store { return &mortal{Store: s, left: n, after: after} }
	p.config = func(c *runtime.Config) { c.Fatal = func(error) { cancel() } }
	h := p.open(t)
	defer h.leave(t)
	if h.Resume(ctx, id) != nil {
		return false
	}
	_, err := h.Wait(ctx, id)
	return err == nil
}

// Property: whatever a model with the pattern plan answers, and however its
// role changes meanwhile, no tool runs that its role had not then, in a state
// the tool is not for, or that is not the next step of the plan on record.
func TestAPlanOnlyNarrows(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests, parameters.MaxSize, parameters.MaxShrinkCount = 100, 60, 100
	properties := gopter.NewProperties(parameters)
	properties.Property("a plan only narrows", prop.ForAll(func(tape []uint8) string { return newRebel(t, tape).play() }, gen.SliceOf(gen.UInt8())))
	properties.TestingRun(t)
}

// rebel is a model that answers what its tape says.
type rebel struct {
	t     *testing.T
	tape  []uint8
	h     *house
	may   bool   // the role has the workshop now
	state string // by what has run
	wrong string
}

func newRebel(t *testing.T, tape []uint8) *rebel {
	return &rebel{t: t, tape: tape, may: true, state: "shut"}
}

// toolsTried are those of the workshop, another's and nobody's.
var toolsTried = []string{"look", "poke", "break", "open", "enter", "put_artifact", "run_command", "no_such"}

func (m *rebel) play() string {
	w := &workshop{before: m.judge}
	m.h = plan{tools: w.tools(m.t), model: fluent(1<<30, brain(m.think))}.open(m.t)
	defer m.h.leave(m.t)
	m.h.run(m.t, m.h.planner(m.t))
	if m.wrong == "" {
		m.wrong = m.strayed()
	}
	return m.wrong
}

// judge holds what runs against the role and the state.
func (m *rebel) judge(name string) {
	states := map[string]string{"open": "shut", "enter": "open"}
	if want := states[name]; !m.may || want != "" && want != m.state {
		m.wrong = fmt.Sprintf("%s ran in state %s; the role has it: %t", name, m.state, m.may)
	}
	if name == "open" {
		m.state = "open"
	}
}

func (m *rebel) pick(n int) int {
	if len(m.tape) == 0 {
		return 0
	}
	b := m.tape[0]
	m.tape = m.tape[1:]
	return int(b) % n
}

func (m *rebel) some() (list []string) {
	for range m.pick(4) {
		list = append(list, toolsTried[m.pick(len(toolsTried))])
	}
	return list
}

func (m *rebel) think(r model.Request) model.Answer {
	if len(m.tape) == 0 {
		return end("done")
	}
	if m.pick(8) == 7 {
		m.change()
	}
	a := model.Answer{Finish: []model.Finish{model.FinishEnd, model.FinishToolCalls, model.FinishToolCalls, model.FinishToolCalls, model.FinishContinue, model.FinishPlan}[m.pick(20)%6], Text: planText(m.some()...)}
	_, next, follows := strings.Cut(r.System, "Take the next one now: call ")
	switch {
	case a.Finish != model.FinishToolCalls && a.Finish != model.FinishEnd:
		return a
	case follows && m.pick(4) > 0: // what it is asked for
		return do(strings.Fields(next)[0], obj{"n": len(m.tape)})
	case !follows && m.pick(4) > 0:
		return end(planText(m.some()...))
	}
	for _, name := range m.some() {
		a.Calls = append(a.Calls, do(name, obj{"n": len(m.tape)}).Calls...)
	}
	return a
}

// change gives the role the workshop, or takes it.
func (m *rebel) change() {
	m.may = !m.may
	group := use("artifact")
	if m.may {
		group = use("probe")
	}
	role, _ := m.h.Org().RoleNamed("worker")
	if _, _, err := m.h.UpdateRole(operator, role.ID, org.RoleSpec{Use: group}, false); err != nil {
		m.wrong = err.Error()
	}
}

// strayed says what on record is no step of the plan before it.
func (m *rebel) strayed() string {
	var steps []model.Step
	for _, e := range m.h.events(m.t) {
		switch b := e.Body.(type) {
		case journal.ModelAnswered:
			if b.Answer.Finish == model.FinishPlan {
				steps = b.Answer.Plan
			}
		case journal.ToolCall:
			if len(steps) == 0 || steps[0].Tool != b.Tool {
				return fmt.Sprintf("%s is called where the plan says %v", b.Tool, steps)
			}
			steps = steps[1:]
		}
	}
	return ""
}

// A provider takes its reasoning back only with the calls it led to: without
// them it is not kept.
func TestReasoningOfCallsThatAreNotMadeIsDropped(t *testing.T) {
	thought := json.RawMessage(`{"thought":"poke it"}`)
	h := plan{tools: new(workshop).tools(t), model: fluent(100_000, brain(func(r model.Request) model.Answer {
		a := []model.Answer{do("poke", obj{}), planOf("look"), do("look", obj{}), end("done")}[answers(r)]
		a.Reasoning, a.Provider = thought, "p"
		return a
	}))}.open(t)
	h.want(t, h.run(t, h.planner(t)), `"done"`, "")
	for i, a := range said[journal.ModelAnswered](t, h) {
		if got, want := a.Answer.Provider, map[bool]string{false: "p"}[i == 0]; got != want || string(a.Answer.Reasoning) != map[bool]string{false: string(thought)}[i == 0] {
			t.Errorf("answer %d has the reasoning %s of %q", i, a.Answer.Reasoning, got)
		}
	}
}

// A plan is read only when it is safe to: the JSON of a model's text nests as
// deeply as the model likes, and lists as much.
func TestAPlanThatIsNotSafeToReadIsNone(t *testing.T) {
	for name, text := range map[string]string{
		"brackets":            `{"plan":` + strings.Repeat("[", 4<<20) + `}`,
		"a long list":         `{"plan":[0` + strings.Repeat(",0", 1<<20) + `]}`,
		"the same key again":  `{"plan":[],"plan":[{"tool":"look"}]}`,
		"steps without names": `{"plan":[{},{"tool":1},{"tool":"look","tool":"poke"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := plan{model: fluent(100_000_000, brain(func(model.Request) model.Answer { return end(text) }))}.open(t)
			h.want(t, h.run(t, h.worker(t, org.RoleSpec{Use: use("workspace"), Pattern: org.Plan})), "", errcode.MaxToolRounds)
		})
	}
}

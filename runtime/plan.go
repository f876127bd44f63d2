package runtime

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/model"
)

// An agent of the pattern plan first says which tools it will call, in order,
// and then calls them. A step's tool must be one it may call in the workflow
// state that the steps before lead to: this is looked at when the plan is made
// and when the step comes. A plan that does not hold is made anew, a few times
// in a turn. The plan only narrows: every call passes the gate as any other.

// maxPlans is how many plans one turn may have, maxSteps and maxPlanText (in
// bytes) how long one may be.
const (
	maxPlans    = 6
	maxSteps    = 50
	maxPlanText = 64 << 10
)

// plan is where an agent stands in its turn. The zero plan is none yet.
type plan struct {
	made  bool
	steps []model.Step // that are left
	fault string       // why the last plan does not hold
	tries int          // plans of this turn
}

// answered takes in a plan, what was none, or what broke the one there was.
func (p *plan) answered(a *model.Answer) {
	if !p.made || a.PlanError == "" {
		p.tries++
	}
	p.made, p.steps, p.fault = a.PlanError == "", a.Plan, a.PlanError
}

// ended takes in the result of a call.
func (p *plan) ended(r *model.Result) {
	if !p.made || len(p.steps) == 0 || p.steps[0].Tool != r.Tool {
		return
	}
	if r.IsError { // what the tool says of it stays out of the prompt: the model reads it as a result
		p.made, p.fault = false, "step "+r.Tool+" failed, its result says why"
		return
	}
	p.steps = p.steps[1:]
}

// current gives the plan as it stands: one whose next step may no longer be
// taken does not.
func (p plan) current(seat *gate.Subject) plan {
	if p.made && len(p.steps) > 0 {
		if err := canCall(seat, p.steps[0].Tool); err != nil {
			p.made, p.fault = false, "its next step cannot be taken: "+errcode.Message(err)
		}
	}
	return p
}

// addPlanPrompt adds to a request what its agent's plan wants of it now: to plan, to
// take a step, or to come to an end.
func (q *turnRequest) addPlanPrompt() error {
	switch p := q.plan; {
	case !p.made && p.tries >= maxPlans:
		return errcode.New(errcode.MaxToolRounds, "none of %d plans held; the last: %s", p.tries, p.fault)
	case !p.made:
		q.System += planWanted(q.seat, p.fault)
		q.Tools, q.ToolJSON = nil, nil
	case len(p.steps) > 0:
		q.System += stepWanted(p.steps)
	default:
		q.System += "\n## Your plan\nAll its steps are done. Answer now, in words, from what you found out.\n"
		q.Tools, q.ToolJSON = nil, nil
	}
	return nil
}

// canCall says whether a tool may be called from a seat.
func canCall(seat *gate.Subject, tool string) error {
	if d := seat.Authorize(tool); !d.Allowed() {
		return errcode.New(d.Code(), "%s", d.Reason())
	}
	return nil
}

func planWanted(seat *gate.Subject, fault string) string {
	var p strings.Builder
	text := "Before you act, make a plan. Answer with one JSON object and nothing else:\n" +
		`{"plan":[{"tool":"NAME","why":"what this step is for"}]}` +
		"\nName each tool as often as you will call it, in order. With nothing to call, the plan is empty and you answer afterwards. You are asked for the arguments of each step when it comes. Your tools:\n"
	for _, d := range seat.Visible() {
		text += "- " + d.Name + ": " + line(d.Description) + "\n"
	}
	if fault != "" {
		text += "Your last plan does not hold: " + fault + "\nMake another one."
	}
	section(&p, "Your plan", text)
	return p.String()
}

func stepWanted(steps []model.Step) string {
	var p strings.Builder
	text := fmt.Sprintf("You have a plan of which %d steps are left. Take the next one now: call %s", len(steps), steps[0].Tool)
	if steps[0].Reason != "" {
		text += " (" + line(steps[0].Reason) + ")"
	}
	section(&p, "Your plan", text+". Call nothing else and write no answer yet.")
	return p.String()
}

// checkAgainstPlan turns the answer of an agent that works by plan into what it means: a
// plan, the step that is next, the end, or a fault that makes a new plan
// necessary. Nothing of an answer that is a fault is done.
func (q *turnRequest) checkAgainstPlan(answer *model.Answer) *model.Answer {
	p := q.plan
	switch {
	case !known(answer.Finish): // which is refused for all agents
	case !p.made:
		steps, fault := parsePlan(answer, q.seat)
		return asPlan(answer, steps, fault)
	case answer.Finish == model.FinishToolCalls:
		if fault := p.deviation(answer.Calls); fault != "" {
			return asPlan(answer, nil, fault)
		}
	case len(p.steps) > 0:
		return asPlan(answer, nil, fmt.Sprintf("you ended with %d steps left, the next %s", len(p.steps), p.steps[0].Tool))
	}
	return answer
}

func known(f model.Finish) bool {
	return f == model.FinishToolCalls || f == model.FinishContinue || f == model.FinishWait || f == model.FinishEnd
}

func asPlan(answer *model.Answer, steps []model.Step, fault string) *model.Answer {
	a := *answer
	if len(a.Calls) > 0 { // a provider takes its reasoning back only with the calls it led to
		a.Reasoning, a.Provider = nil, ""
	}
	a.Finish, a.Calls, a.Plan, a.PlanError = model.FinishPlan, nil, steps, fault
	return &a
}

// deviation says what calls have to do with no step: they must be the next steps,
// in order.
func (p *plan) deviation(calls []model.Call) string {
	for i, c := range calls {
		switch {
		case i >= len(p.steps):
			return "you called " + line(c.Name) + ", which no step of it is left for"
		case c.Name != p.steps[i].Tool:
			return "you called " + line(c.Name) + " where it says " + p.steps[i].Tool
		}
	}
	return ""
}

// parsePlan reads a plan and looks whether each of its steps could be taken.
func parsePlan(answer *model.Answer, seat *gate.Subject) ([]model.Step, string) {
	if len(answer.Calls) > 0 {
		return nil, "you called " + line(answer.Calls[0].Name) + " before there was a plan"
	}
	list := gjson.Get(object(answer.Text), "plan")
	if !list.IsArray() {
		return nil, `your answer was no JSON object {"plan":[…]}`
	}
	steps := []model.Step{}
	for _, entry := range list.Array() {
		steps = append(steps, model.Step{Tool: entry.Get("tool").Str, Reason: short(entry.Get("why").Str, maxLine)})
	}
	if len(steps) > maxSteps {
		return nil, fmt.Sprintf("it has %d steps; at most %d are taken", len(steps), maxSteps)
	}
	for i, s := range steps {
		if err := canCall(seat, s.Tool); err != nil {
			return nil, fmt.Sprintf("step %d: %s", i+1, line(errcode.Message(err)))
		}
		seat = seat.AfterCall(s.Tool)
	}
	return steps, ""
}

// object finds the JSON object in a text: models like to put words or a fence
// around it. It is "" when it is not safe to read, or too long for a plan.
func object(text string) string {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from || to-from >= maxPlanText || strictjson.Object([]byte(text[from:to+1]), nil) != nil {
		return ""
	}
	return text[from : to+1]
}

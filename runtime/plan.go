package runtime

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
)

// An agent whose role has the pattern plan first states which tools it will
// call, in order, and then calls them. The tool of each step must be callable
// in the workflow state that the previous steps lead to. This is checked when
// the plan is made and again before the step. An invalid plan is replaced by a
// new one, at most maxPlans times per turn. A plan only restricts the agent:
// each call passes the gate as usual.

// Limits of plans: plans per turn, steps per plan, and bytes of the JSON text
// of a plan.
const (
	maxPlans    = 6
	maxSteps    = 50
	maxPlanText = 64 << 10
)

// plan is the state of an agent's plan in the current turn. The zero plan is
// not made yet.
type plan struct {
	made    bool
	steps   []model.PlanStep // steps that are left
	problem string           // why the last plan is invalid
	tries   int              // plans made in this turn, valid or not
}

// applyAnswer applies an answer of planAnswer: a new plan, or the problem of an
// invalid plan or of a deviation from the current one. A deviation does not count as a try.
func (p *plan) applyAnswer(a *model.Answer) {
	if !p.made || a.PlanError == "" {
		p.tries++
	}
	p.made, p.steps, p.problem = a.PlanError == "", a.Plan, a.PlanError
}

// applyResult applies the result of a call.
func (p *plan) applyResult(r *model.CallResult) {
	if !p.made || len(p.steps) == 0 || p.steps[0].Tool != r.Tool {
		return
	}
	if r.IsError { // the tool's message stays out of the note; the model reads it as a result
		p.made, p.problem = false, "step "+r.Tool+" failed, its result says why"
		return
	}
	p.steps = p.steps[1:]
}

// recheck returns the plan. It is marked as invalid if its next step is not permitted
// any more.
func (p plan) recheck(subject *gate.Subject) plan {
	if p.made && len(p.steps) > 0 {
		if err := checkCallable(subject, p.steps[0].Tool); err != nil {
			p.made, p.problem = false, "its next step cannot be taken: "+errcode.Message(err)
		}
	}
	return p
}

// addPlanPrompt adds to the note of the request what the agent must do next: make a plan, take
// a step, or answer. The tools stay in the request even if none may be called. Then all requests
// begin alike, and the cache of the provider has that part.
func (r *turnRequest) addPlanPrompt() error {
	switch p := r.plan; {
	case !p.made && p.tries >= maxPlans:
		return errcode.New(errcode.MaxToolRounds, "none of %d plans was valid; the last: %s", p.tries, p.problem)
	case !p.made:
		r.Note += planSection(r.subject, p.problem)
		r.NoCalls = true
	case len(p.steps) > 0:
		r.Note += stepSection(p.steps)
	default:
		r.Note += "\n## Your plan\nAll its steps are done. Answer now, in words, based on the results.\n"
		r.NoCalls = true
	}
	return nil
}

// checkCallable returns the error of calling a tool now, or nil if the call is
// allowed.
func checkCallable(subject *gate.Subject, tool string) error {
	if d := subject.AuthorizeTool(tool); !d.Allowed() {
		return errcode.New(d.Code(), "%s", d.Reason())
	}
	return nil
}

// planSection returns the prompt section that asks for a plan.
func planSection(subject *gate.Subject, problem string) string {
	var p strings.Builder
	text := "Before you act, make a plan. Call no tool yet. Answer with one JSON object and nothing else:\n" +
		`{"plan":[{"tool":"NAME","why":"what this step is for"}]}` +
		"\nList each tool as often as you will call it, in order. If no call is needed, return an empty plan and answer afterwards. You write the arguments of each step when it comes. Your tools:\n"
	for _, d := range subject.VisibleTools() {
		text += "- " + d.Name + ": " + textutil.OneLine(d.Description, maxLine) + "\n"
	}
	if problem != "" {
		text += "Your last plan is not valid: " + problem + "\nMake another one."
	}
	writeSection(&p, "Your plan", text)
	return p.String()
}

// stepSection returns the prompt section that asks for the next step.
func stepSection(steps []model.PlanStep) string {
	var p strings.Builder
	text := fmt.Sprintf("Your plan has %d steps left. Take the next one now: call %s", len(steps), steps[0].Tool)
	if steps[0].Reason != "" {
		text += " (" + textutil.OneLine(steps[0].Reason, maxLine) + ")"
	}
	writeSection(&p, "Your plan", text+". Call nothing else and write no answer yet.")
	return p.String()
}

// checkAgainstPlan interprets the answer of an agent that works by plan. It
// returns the answer if it is the next step or the end. Otherwise it returns an
// answer with finish plan that holds a new plan or a problem. The calls of an
// answer with a problem are dropped.
func (r *turnRequest) checkAgainstPlan(answer *model.Answer) *model.Answer {
	p := r.plan
	switch {
	case !isKnownFinish(answer.Finish): // rejected by checkAnswer
	case !p.made:
		steps, problem := parsePlan(answer, r.subject)
		return planAnswer(answer, steps, problem)
	case answer.Finish == model.FinishToolCalls:
		if problem := p.deviation(answer.Calls); problem != "" {
			return planAnswer(answer, nil, problem)
		}
	case len(p.steps) > 0:
		return planAnswer(answer, nil, fmt.Sprintf("you ended with %d steps left, the next %s", len(p.steps), p.steps[0].Tool))
	}
	return answer
}

// isKnownFinish reports whether a model may return this finish.
func isKnownFinish(f model.FinishReason) bool {
	return f == model.FinishToolCalls || f == model.FinishContinue || f == model.FinishWait || f.EndsTurn()
}

// planAnswer returns an answer without calls that records a plan or a problem.
func planAnswer(answer *model.Answer, steps []model.PlanStep, problem string) *model.Answer {
	a := *answer
	if len(a.Calls) > 0 { // reasoning may be returned to a provider only with the calls it led to
		a.Reasoning, a.Provider = nil, ""
	}
	a.Finish, a.Calls, a.Plan, a.PlanError = model.FinishPlan, nil, steps, problem
	return &a
}

// deviation describes how calls differ from the next steps of the plan. It
// returns "" if they match.
func (p *plan) deviation(calls []model.Call) string {
	for i, c := range calls {
		switch {
		case i >= len(p.steps):
			return "you called " + textutil.OneLine(c.Name, maxLine) + ", but no step is left"
		case c.Name != p.steps[i].Tool:
			return "you called " + textutil.OneLine(c.Name, maxLine) + " instead of the next step " + p.steps[i].Tool
		}
	}
	return ""
}

// parsePlan reads a plan and checks that each of its steps is permitted. It
// returns a problem, or "".
func parsePlan(answer *model.Answer, subject *gate.Subject) ([]model.PlanStep, string) {
	if len(answer.Calls) > 0 {
		return nil, "you called " + textutil.OneLine(answer.Calls[0].Name, maxLine) + " before there was a plan"
	}
	list := gjson.Get(findObject(answer.Text), "plan")
	if !list.IsArray() {
		return nil, `your answer was not a JSON object {"plan":[…]}`
	}
	steps := []model.PlanStep{}
	for _, entry := range list.Array() {
		steps = append(steps, model.PlanStep{Tool: entry.Get("tool").Str, Reason: textutil.Truncate(entry.Get("why").Str, maxLine)})
	}
	if len(steps) > maxSteps {
		return nil, fmt.Sprintf("it has %d steps; at most %d are allowed", len(steps), maxSteps)
	}
	for i := range steps {
		s := &steps[i]
		s.Tool = resolveToolName(subject, s.Tool)
		if err := checkCallable(subject, s.Tool); err != nil {
			return nil, fmt.Sprintf("step %d: %s", i+1, textutil.OneLine(errcode.Message(err), maxLine))
		}
		subject = subject.AfterCall(s.Tool)
	}
	return steps, ""
}

// findObject returns the JSON object in a text, since models may surround it
// with words or a code fence. It returns "" if there is none, or if it is
// malformed or too long.
func findObject(text string) string {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from || to-from >= maxPlanText || strictjson.CheckObject([]byte(text[from:to+1]), nil) != nil {
		return ""
	}
	return text[from : to+1]
}

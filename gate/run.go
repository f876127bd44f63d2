package gate

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/tool"
)

// maxDecisions bounds how often one call is decided anew while what its
// caller may do keeps changing.
const maxDecisions = 16

// Call takes the calls of one answer through the gate, in order, and gives
// their outcomes. It decides a run of calls, has the Recorder start them,
// runs them, and has it record the outcomes; then the next run. A call that
// is Mutating, or moves the workflow state, ends a run: what comes after is
// decided when its outcome is on record. ReadOnly calls of a run go side by
// side.
//
// Denials and failures are outcomes. The error is the Recorder's, or ctx's:
// then the rest was not started.
func (g *Gate) Call(ctx context.Context, p identity.Principal, requests []Request, rec Recorder) ([]*Admission, error) {
	var all []*Admission
	for len(requests) > 0 {
		run, err := g.start(ctx, p, requests, rec)
		if err != nil {
			return all, err
		}
		g.run(ctx, run)
		if err := rec.Finished(ctx, run); err != nil {
			return all, err
		}
		all = append(all, run...)
		requests = requests[len(run):]
	}
	return all, nil
}

// start decides the next run of calls and records it. A decision that was
// superseded meanwhile is made again; one that keeps changing is a denial.
func (g *Gate) start(ctx context.Context, p identity.Principal, requests []Request, rec Recorder) ([]*Admission, error) {
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run := g.decideRun(p, requests)
		if try >= maxDecisions {
			denyAll(run)
		}
		err := rec.Started(ctx, run)
		if !errors.Is(err, ErrSuperseded) {
			return run, err
		}
	}
}

func denyAll(run []*Admission) {
	for _, a := range run {
		if a.Allowed() {
			a.refuse(errcode.New(errcode.ToolNotAvailable, "tool %s: what this role may call keeps changing; try again later", a.Request.Name))
		}
	}
}

// decideRun admits calls up to and with the first that ends a run.
func (g *Gate) decideRun(p identity.Principal, requests []Request) []*Admission {
	var run []*Admission
	for _, r := range requests {
		a := g.admit(p, r)
		run = append(run, a)
		if a.endsRun() {
			break
		}
	}
	return run
}

func (a *Admission) endsRun() bool {
	return a.Allowed() && (a.handle.Definition.Effect == tool.Mutating || a.handle.Definition.State != "")
}

// run runs the allowed calls: neighbours that are ReadOnly side by side, the
// others one after another.
func (g *Gate) run(ctx context.Context, run []*Admission) {
	var beside sync.WaitGroup
	for _, a := range run {
		switch {
		case !a.Allowed():
		case a.handle.Definition.Effect == tool.ReadOnly:
			beside.Go(func() { g.runOne(ctx, a) })
		default:
			beside.Wait()
			g.runOne(ctx, a)
		}
	}
	beside.Wait()
}

// runOne runs a call with deadline, panic guard and result cap, and says
// where its success moves the workflow state.
func (g *Gate) runOne(caller context.Context, a *Admission) {
	ctx, cancel := context.WithTimeout(caller, g.config.Timeout)
	defer cancel()
	result, err := g.guarded(ctx, a)
	if err == nil {
		err = g.capResult(a.Request.Name, result)
	}
	if err != nil {
		a.Cut = caller.Err() != nil
		result = tool.Failure(a.Request.Name, g.explain(ctx, a, err))
	}
	a.Result = result
	if !result.IsError {
		a.NewState = a.handle.Definition.State
	}
}

// guarded calls the tool; a panic is its failure.
func (g *Gate) guarded(ctx context.Context, a *Admission) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.config.Log.Error("tool panicked", "tool", a.Request.Name, "panic", p, "stack", string(debug.Stack()))
			err = errcode.New(errcode.ToolExecutionFailed, "%s broke down; the log has the cause", a.Request.Name)
		}
	}()
	call := a.Request.Call
	call.By = a.Seat.Principal
	return a.handle.Tool.Call(ctx, call)
}

func (g *Gate) capResult(name string, r tool.Result) error {
	if n := len(r.Text) + len(r.Structured); n > g.config.MaxResult {
		return errcode.New(errcode.ResultTooLarge, "%s answered %d bytes; at most %d are passed on: ask for less", name, n, g.config.MaxResult)
	}
	if len(r.Structured) > 0 {
		if err := strictjson.Check(r.Structured, nil); err != nil {
			return errcode.Wrap(errcode.ToolExecutionFailed, err, "%s answered something that is not JSON", name)
		}
	}
	return nil
}

// explain gives the machinery's error a code a model can act on. An effect
// that may have happened is said to be unknown.
func (g *Gate) explain(ctx context.Context, a *Admission, err error) error {
	if ctx.Err() == nil {
		if errcode.Of(err) != errcode.Internal {
			return err
		}
		g.config.Log.Error("tool failed", "tool", a.Request.Name, "error", err)
		return errcode.Wrap(errcode.ToolExecutionFailed, err, "%s could not be run; the log has the cause", a.Request.Name)
	}
	if a.handle.Definition.Effect == tool.Mutating {
		return interrupted(a.Request.Name)
	}
	return errcode.New(errcode.ToolTimeout, "%s was stopped before it answered; it is safe to call again", a.Request.Name)
}

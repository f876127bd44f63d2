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
// runs them, and has it record the outcomes; then the next run. ReadOnly calls
// that are neighbours make a run and go side by side; any other call is a run
// alone, and one that moves the workflow state ends its run: what comes after
// is decided when its outcome is on record.
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
		g.runBatch(ctx, run)
		if err := rec.Finished(ctx, run); err != nil {
			return all, err
		}
		all = append(all, run...)
		requests = requests[len(run):]
	}
	return all, nil
}

// start decides the next run of calls, has it enter its tools, and records it.
// A decision that was superseded meanwhile is made again, and one whose tool
// has ended; one that keeps changing is a denial.
func (g *Gate) start(ctx context.Context, p identity.Principal, requests []Request, rec Recorder) ([]*Admission, error) {
	var door acquirer
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run := g.admitBatch(ctx, p, requests)
		if try >= maxDecisions {
			denyAll(run)
		}
		if !door.acquireAll(run) {
			continue
		}
		err := rec.Started(ctx, run)
		if err != nil {
			releaseAll(run)
		}
		if !errors.Is(err, ErrSuperseded) {
			return run, err
		}
	}
}

func denyAll(run []*Admission) {
	for _, a := range run {
		if a.Allowed() {
			a.deny(errcode.New(errcode.ToolNotAvailable, "tool %s: what this role may call keeps changing; try again later", a.Request.Name))
		}
	}
}

// admitBatch admits the next run of calls: neighbours that are ReadOnly, or one
// other call alone, so that none waits behind another when its intent is on
// record. Refused calls stand in between.
func (g *Gate) admitBatch(ctx context.Context, p identity.Principal, requests []Request) []*Admission {
	var run []*Admission
	reading := false
	for _, r := range requests {
		a := g.admit(ctx, p, r)
		alone := a.Allowed() && !a.readOnly()
		if alone && reading {
			break
		}
		run = append(run, a)
		if alone || a.Allowed() && a.handle.Definition.State != "" {
			break
		}
		reading = reading || a.Allowed()
	}
	return run
}

func (a *Admission) readOnly() bool { return a.handle.Definition.Effect == tool.ReadOnly }

// runBatch runs the allowed calls of a run side by side.
func (g *Gate) runBatch(ctx context.Context, run []*Admission) {
	if len(run) == 1 && run[0].Allowed() {
		g.runOne(ctx, run[0])
		return
	}
	var beside sync.WaitGroup
	for _, a := range run {
		if a.Allowed() {
			beside.Go(func() { g.runOne(ctx, a) })
		}
	}
	beside.Wait()
}

// runOne runs a call with deadline, panic guard and result cap, and says
// where its success moves the workflow state.
func (g *Gate) runOne(caller context.Context, a *Admission) {
	ctx, cancel := context.WithTimeout(caller, g.config.Timeout)
	defer cancel()
	defer a.release()
	result, err := g.callTool(ctx, a)
	if err == nil {
		err = g.checkResultSize(a.Request.Name, result)
	}
	if err != nil {
		a.Interrupted = caller.Err() != nil
		result = tool.Failure(a.Request.Name, g.classify(ctx, a, err))
	}
	a.Result = result
	if !result.IsError {
		a.NewState = a.handle.Definition.State
	}
}

// errPanicked: the tool panicked; the log has how.
var errPanicked = errors.New("the tool broke down")

// callTool calls the tool, unless its caller has ended meanwhile; a panic is an
// error.
func (g *Gate) callTool(ctx context.Context, a *Admission) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.config.Log.Error("tool panicked", "tool", a.Request.Name, "panic", p, "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	if err := ctx.Err(); err != nil {
		return result, err
	}
	call := a.Request.Call
	call.By, call.Claims, call.Secure = a.Seat.Principal, a.claims, a.secure
	return a.tool().Call(tool.WithoutCredentials(ctx), call)
}

func (g *Gate) checkResultSize(name string, r tool.Result) error {
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

// classify gives the machinery's error a code a model can act on. An error with
// a code says what happened. Of any other, and of one that came when the time
// was up, nobody knows whether the tool acted: of one that may not be repeated
// the outcome is unknown.
func (g *Gate) classify(ctx context.Context, a *Admission, err error) error {
	name := a.Request.Name
	ended := ctx.Err() != nil
	if !ended && errcode.Of(err) != errcode.Internal {
		return err
	}
	if !ended && !errors.Is(err, errPanicked) {
		g.config.Log.Error("tool failed", "tool", name, "error", err)
	}
	switch {
	case !repeatable(a.handle.Definition.Effect):
		return interrupted(name)
	case ended:
		return errcode.New(errcode.ToolTimeout, "%s was stopped before it answered; it is safe to call again", name)
	case errors.Is(err, errPanicked):
		return errcode.New(errcode.ToolExecutionFailed, "%s broke down; the log has the cause", name)
	}
	return errcode.Wrap(errcode.ToolExecutionFailed, err, "%s could not be run; the log has the cause", name)
}

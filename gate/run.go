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

// maxConcurrent limits the calls of one answer that run at the same time, because of the
// memory that their results take until they are recorded.
const maxConcurrent = 16

// maxDecisions limits how often one batch is decided while the permissions of its
// caller keep changing. After that its calls are denied.
const maxDecisions = 16

// Call authorizes, records and runs the calls of one model answer, in order, and
// returns an Admission for each.
//
// It splits requests into batches. A batch is decided, recorded as started, run,
// and recorded as finished before the next batch is decided. Up to 16 adjacent ReadOnly
// calls form one batch and run concurrently. Any other call is the only allowed call
// of its batch. A call that changes the workflow state ends its batch. So the calls
// after it are decided in the new state.
//
// Denials and failures of tools are results, not errors. Call returns an error if
// rec fails or ctx is done. It then returns the Admissions of the batches that
// finished; the calls after the failed batch have not started.
func (g *Gate) Call(ctx context.Context, p identity.Principal, requests []CallRequest, rec CallRecorder) ([]*Admission, error) {
	var all []*Admission
	for len(requests) > 0 {
		batch, err := g.start(ctx, p, requests, rec)
		if err != nil {
			return all, err
		}
		g.runBatch(ctx, batch)
		if err := rec.CallFinished(ctx, batch); err != nil {
			return all, err
		}
		all = append(all, batch...)
		requests = requests[len(batch):]
	}
	return all, nil
}

// start waits until calls may be recorded, decides the next batch, acquires leases on its tools and records it as
// started. It decides again if a tool ended or a decision was superseded in the
// meantime, at most maxDecisions times. If it returns an error, no lease is held.
func (g *Gate) start(ctx context.Context, p identity.Principal, requests []CallRequest, rec CallRecorder) ([]*Admission, error) {
	if err := rec.CallPending(ctx, requests); err != nil {
		return nil, err
	}
	var leases acquirer
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch := g.admitBatch(ctx, p, requests)
		if try >= maxDecisions {
			denyAll(batch)
		}
		if !leases.acquireAll(batch) {
			continue
		}
		err := rec.CallStarted(ctx, batch)
		if err != nil {
			releaseAll(batch)
		}
		if !errors.Is(err, ErrSuperseded) {
			return batch, err
		}
	}
}

// denyAll denies the calls of a batch that passed all steps. A denial is never
// superseded, so the next try to record the batch is the last.
func denyAll(batch []*Admission) {
	for _, a := range batch {
		if a.Allowed() {
			a.deny(errcode.New(errcode.ToolNotAvailable, "tool %s: the permissions of this role keep changing; try again later", a.Request.Name))
		}
	}
}

// admitBatch takes requests through the steps until the next batch is complete:
// adjacent ReadOnly calls, or one other call. No call of a batch then has to wait
// for another one after its intent is recorded. Denied calls fit in any batch.
func (g *Gate) admitBatch(ctx context.Context, p identity.Principal, requests []CallRequest) []*Admission {
	var batch []*Admission
	reading := 0 // allowed ReadOnly calls in the batch
	for _, r := range requests {
		a := g.admit(ctx, p, r)
		alone := a.Allowed() && !a.isReadOnly()
		if alone && reading > 0 {
			break
		}
		batch = append(batch, a)
		if a.Allowed() {
			reading++
		}
		if alone || reading == maxConcurrent || a.Allowed() && a.handle.Definition.State != "" {
			break
		}
	}
	return batch
}

func (a *Admission) isReadOnly() bool { return a.handle.Definition.Effect == tool.ReadOnly }

// runBatch runs the allowed calls of a batch concurrently and waits for them.
func (g *Gate) runBatch(ctx context.Context, batch []*Admission) {
	if len(batch) == 1 && batch[0].Allowed() {
		g.runOne(ctx, batch[0])
		return
	}
	var wg sync.WaitGroup
	for _, a := range batch {
		if a.Allowed() {
			wg.Go(func() { g.runOne(ctx, a) })
		}
	}
	wg.Wait()
}

// runOne runs a call and sets its Result. It applies the timeout, recovers panics
// and checks the contents and the size of the result. It releases the lease of the call. A call that
// succeeds sets NewState.
func (g *Gate) runOne(caller context.Context, a *Admission) {
	ctx, cancel := g.limitTime(caller, a)
	defer cancel()
	defer a.release()
	result, err := g.callTool(ctx, a)
	if err == nil {
		result.Content = tool.CheckContents(result.Content)
		err = g.checkResultSize(a.Request.Name, result)
	}
	if err != nil {
		a.Interrupted = caller.Err() != nil
		result = tool.Failure(a.Request.Name, g.codedError(ctx, a, err))
	}
	a.Result = result
	a.addFallback()
	g.logCause(a)
	if !result.IsError {
		a.NewState = a.handle.Definition.State
	}
}

// logCause logs the cause of a result with the code internal, which tells its reader to see
// the log.
func (g *Gate) logCause(a *Admission) {
	if a.Result.Cause != nil {
		g.config.Log.Error("tool failed", "tool", a.Request.Name, "error", a.Result.Cause)
	}
}

// errPanicked is returned by callTool after a panic of the tool, which it logs.
var errPanicked = errors.New("the tool panicked")

// callTool calls the tool, unless ctx is done already: the caller may have ended
// while the intent was being recorded. The tool gets the verified claims but not
// the credentials that the caller sent.
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
	call.Owner = g.config.Owner(a.Subject.Principal)
	call.By, call.Claims, call.Secure = a.Subject.Principal, a.claims, a.secure
	ctx = g.withBounds(tool.BindInput(tool.WithoutCredentials(ctx), call, a.handle.Definition), a)
	return a.tool().Call(ctx, call)
}

// limitTime returns the context of a call, which ends after the timeout. While a call waits for
// an answer of a person, its time stands still.
func (g *Gate) limitTime(ctx context.Context, a *Admission) (context.Context, context.CancelFunc) {
	if a.handle.Definition.Asks != tool.AsksNothing {
		return tool.WithWorkTime(ctx, g.config.Timeout, context.DeadlineExceeded)
	}
	return context.WithTimeout(ctx, g.config.Timeout)
}

// checkResultSize rejects results that are too large. It also rejects structured results that are
// not strict JSON: readers must not see two different documents.
func (g *Gate) checkResultSize(name string, r tool.Result) error {
	if n := r.TextBytes(); n > g.config.MaxResult {
		return errcode.New(errcode.ResultTooLarge, "%s returned %d bytes; at most %d are allowed: ask for less, in %d parts or more", name, n, g.config.MaxResult, n/g.config.MaxResult+1)
	}
	if len(r.Structured) > 0 {
		if err := strictjson.CheckKeys(r.Structured, nil); err != nil {
			return errcode.Wrap(errcode.ToolExecutionFailed, err, "%s returned malformed or ambiguous JSON", name)
		}
	}
	return nil
}

// codedError converts the error of a call to one with a code that a model can act
// on. An error with a code describes what happened and is returned as it is. After
// any other error, and after a timeout, it is unknown whether the tool had an
// effect. A Mutating tool is then reported as interrupted, because a retry could
// repeat the effect.
func (g *Gate) codedError(ctx context.Context, a *Admission, err error) error {
	name := a.Request.Name
	expired := ctx.Err() != nil
	if !expired && errcode.CodeOf(err) != errcode.Internal {
		return err
	}
	if !expired && !errors.Is(err, errPanicked) {
		g.config.Log.Error("tool failed", "tool", name, "error", err)
	}
	switch {
	case !isRepeatable(a.handle.Definition.Effect):
		return interruptedError(name)
	case expired:
		return errcode.New(errcode.ToolTimeout, "%s was stopped before it returned; it is safe to call again", name)
	case errors.Is(err, errPanicked):
		return errcode.New(errcode.ToolExecutionFailed, "%s panicked; see the log", name)
	}
	return errcode.Wrap(errcode.ToolExecutionFailed, err, "%s failed; see the log", name)
}

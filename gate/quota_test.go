package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// A call whose arguments its caller may not record is denied and does not run. A call that
// was started before the restart is not asked again.
func TestCall_DeniesBeyondQuota(t *testing.T) {
	full := errcode.New(errcode.QuotaExceeded, "no more bytes")
	ran := 0
	count := &fakeTool{definition: definition("a", tool.ReadOnly), run: func(context.Context, tool.Call) (tool.Result, error) {
		ran++
		return tool.Result{Text: "ran"}, nil
	}}
	f := newFixtureWith(t, gate.Config{Quota: func(p identity.Principal, bytes int) error {
		if p != ann || bytes <= 0 {
			t.Errorf("asked for %v and %d bytes", p, bytes)
		}
		return full
	}}, count)
	if a := f.call("a", `{}`); a.Code() != errcode.QuotaExceeded || ran != 0 {
		t.Errorf("got %q after %d runs, want quota_exceeded and none", a.Code(), ran)
	}
	r := request("a", `{}`)
	r.Started, r.Effect = true, tool.ReadOnly
	if list, err := f.Call(t.Context(), ann, []gate.CallRequest{r}, &fakeRecorder{}); err != nil || !list[0].Allowed() || ran != 1 {
		t.Errorf("the started call: %v, %v, %d runs", list, err, ran)
	}
}

// pendingRecorder rejects calls before they are decided.
type pendingRecorder struct {
	fakeRecorder
	err error
}

func (r *pendingRecorder) CallPending(context.Context, []gate.CallRequest) error { return r.err }

// Without room to record calls none is decided.
func TestCall_DecidesNothingThatCannotBeRecorded(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("a", tool.Mutating), run: mustNotRun(t)})
	rec := &pendingRecorder{err: errors.New("disk reserve")}
	list, err := f.Call(t.Context(), ann, []gate.CallRequest{request("a", `{}`)}, rec)
	if !errors.Is(err, rec.err) || list != nil || len(rec.lines) != 0 {
		t.Errorf("got %v, %v, records %q", list, err, rec.lines)
	}
}

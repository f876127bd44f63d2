package gate_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
)

// slowPerson accepts each question after a time.
type slowPerson struct{ after time.Duration }

func (slowPerson) SupportsInput(tool.InputKind) bool { return true }
func (slowPerson) LastMemo() json.RawMessage         { return nil }
func (s slowPerson) RequestInput(ctx context.Context, r tool.InputRound) ([]tool.InputResponse, error) {
	select {
	case <-time.After(s.after):
		return make([]tool.InputResponse, len(r.Requests)), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A tool may ask only what its definition says. The time of its question does not count to its
// timeout; the time of its work does.
func TestCall_Asks(t *testing.T) {
	for _, tt := range []struct {
		name string
		asks tool.Asks
		work time.Duration // after the answer
		want errcode.Code
	}{
		{"a tool that asks first", tool.AsksFirst, 30 * time.Second, ""},
		{"a tool that asks midway", tool.AsksMidway, 30 * time.Second, ""},
		{"a tool that works too long", tool.AsksFirst, 61 * time.Second, errcode.ToolTimeout},
		{"a tool that declares nothing", tool.AsksNothing, 0, errcode.InputUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := definition("a", tool.ReadOnly)
				d.Asks = tt.asks
				run := func(ctx context.Context, c tool.Call) (tool.Result, error) {
					if _, err := tool.ListRoots(ctx); err != nil {
						return tool.Failure(c.Name, err), nil
					}
					select {
					case <-time.After(tt.work):
						return tool.Result{Text: "done"}, nil
					case <-ctx.Done():
						return tool.Result{}, ctx.Err()
					}
				}
				f := newFixtureWith(t, gate.Config{Timeout: time.Minute}, &fakeTool{definition: d, run: run})
				ctx := tool.WithInput(t.Context(), slowPerson{time.Hour})
				got, err := f.Call(ctx, ann, []gate.CallRequest{request("a", `{}`)}, &fakeRecorder{})
				if err != nil || got[0].Code() != tt.want {
					t.Errorf("%v, %+v", err, got[0])
				}
			})
		})
	}
}

package gate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
)

// Decoding arguments takes many times their size, so few are decoded at once. A principal
// with many leaves a place for others.
func TestGate_LimitsConcurrentValidations(t *testing.T) {
	needsPath := tool.Definition{Name: "a", Input: json.RawMessage(`{"type":"object","required":["path"]}`), Effect: tool.ReadOnly}
	f := newFixture(t, &fakeTool{definition: needsPath, run: mustNotRun(t)})
	ctx, cancel := context.WithCancel(t.Context())
	gate.AtSteps(t, func(step string, after bool) {
		if step == "validate" && !after {
			cancel()
		}
	})
	code := func() errcode.Code {
		t.Helper()
		ctx, cancel = context.WithCancel(t.Context())
		list, err := f.Call(ctx, ann, []gate.CallRequest{request("a", `{}`)}, &fakeRecorder{})
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Code()
	}
	first, second := f.AcquireValidation(t, ann), f.AcquireValidation(t, ann)
	if got := code(); got != errcode.RequestAborted {
		t.Errorf("a third of the same principal: %q, want it to wait until it is cancelled", got)
	}
	first()
	if got := code(); got != errcode.InvalidArguments {
		t.Errorf("after one has ended: %q", got)
	}
	second()
}

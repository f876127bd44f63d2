package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// RecordPrompt records that an external caller gets a declared prompt, which the gate offers to it.
// Like the event of a call that changes nothing, it waits for a shared commit. If it returns an error,
// the caller must not get the prompt.
//
// Errors: the errors of InvokeTool for another principal, if nothing more may be recorded, and
// after Close.
func (rt *Runtime) RecordPrompt(ctx context.Context, by identity.Principal, name string, args map[string]string) error {
	if err := org.CheckCaller(by); err != nil {
		return err
	}
	ctx, done, err := rt.beginExternal(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := errors.Join(rt.CheckStorage(), rt.recorded.check(byteOwner{caller: by.String()}, 0)); err != nil {
		return err
	}
	if args == nil {
		args = map[string]string{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if err := rt.buffer.flushIfFull(); err != nil {
		return err
	}
	got := journal.PromptGot{Caller: by.String(), Prompt: sanitizeToolName(name), ArgsHash: hashOf(text), ArgsSize: len(text), ArgsStart: rt.redactedStart(ctx, text)}
	rt.buffer.add(len(got.ArgsStart)+maxName*2, journal.Event{At: rt.now(), Role: rt.roleName(org.Agent{Role: by.Role}), Body: got})
	return nil
}

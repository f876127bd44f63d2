package gate

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Request is a call that asks to pass the gate.
type Request struct {
	tool.Call
	// Started says that the call's intent is on record and its outcome is
	// not: the process ended in between. It is decided again.
	Started bool
	Effect  tool.Effect // of the tool when the call started
}

// Admission is a call on its way through the gate.
type Admission struct {
	Request     Request
	Seat        *Subject
	Decision    Decision
	Err         error       // why it was refused, with its code; nil when it was not
	Result      tool.Result // after it ran, or what a refusal tells the model
	NewState    string      // the workflow state its success moves to, "" for none
	Interrupted bool        // the caller's context ended before the tool answered

	handle    *toolgroups.Handle
	lease     tool.Lease                 // from enter to leave, of a tool that is entered
	argsValid bool                       // parse saw that the arguments keep the schema
	secure    json.RawMessage            // secure arguments, of a tool that takes them
	claims    map[string]json.RawMessage // what authenticate verified, by auth service

	claimChecks []func() bool // whether who verified claims is still in force
}

// Allowed says whether the call passed every step so far.
func (a *Admission) Allowed() bool { return a.Err == nil }

// Code gives the code of the refusal or failure, "" for a success.
func (a *Admission) Code() errcode.Code {
	switch {
	case a.Err != nil:
		return errcode.Of(a.Err)
	case a.Result.IsError:
		return errcode.Code(gjson.GetBytes(a.Result.Structured, "error").Str)
	}
	return ""
}

// Superseded says whether the View that allowed the call is no longer in force,
// or an auth service that vouched for the caller. A denial is never superseded.
func (a *Admission) Superseded() bool {
	return a.Allowed() && !(a.Seat.current(a.Decision) && a.claimsCurrent())
}

// step is one check; its error, with a code, refuses the call.
type step struct {
	name string
	run  func(*Gate, context.Context, *Admission) error
}

// steps is the way to a tool, in order, before anything has an effect. Then
// the calls are recorded, run and recorded again (run.go).
var steps = []step{
	{"resolve", (*Gate).resolve},
	{"parse", (*Gate).parse},
	{"authorize", (*Gate).authorize},
	{"check arguments", (*Gate).validate},
	{"authenticate", (*Gate).authenticate},
	{"repeat", (*Gate).checkRetry},
}

// admit takes a request through the steps, from the beginning.
func (g *Gate) admit(ctx context.Context, p identity.Principal, r Request) *Admission {
	a := &Admission{Request: r, Seat: &Subject{Principal: p}}
	for _, s := range steps {
		if err := s.run(g, ctx, a); err != nil {
			a.deny(err)
			break
		}
	}
	return a
}

func (a *Admission) deny(err error) {
	a.Err = err
	a.Result = tool.Failure(a.Request.Name, err)
}

// resolve finds where the principal stands now, and the tool it names.
func (g *Gate) resolve(_ context.Context, a *Admission) error {
	a.Seat = g.Subject(a.Seat.Principal)
	a.Decision = a.Seat.Authorize(a.Request.Name)
	if a.maybeStale() {
		g.config.Groups.WaitIdle()
		a.Seat = g.Subject(a.Seat.Principal)
		a.Decision = a.Seat.Authorize(a.Request.Name)
	}
	if a.Decision.Allowed() {
		a.handle = a.Decision.handle
	}
	return nil
}

// parse reads the arguments strictly, once; what was authorised is what runs.
// Arguments left out are {}. Of a tool that is not the caller's the schema
// is not looked at, so that the answer tells nothing about it. Of one that is,
// the same walk holds them against the schema; check has the verdict.
func (g *Gate) parse(_ context.Context, a *Admission) (err error) {
	if len(a.Request.Args) == 0 {
		a.Request.Args = json.RawMessage(`{}`)
	}
	if n := len(a.Request.Args); n > g.config.MaxArgs {
		return errcode.New(errcode.InvalidArguments, "arguments of %s have %d bytes; at most %d are taken", a.Request.Name, n, g.config.MaxArgs)
	}
	if err := rejectQuoted(a.Request.Name, a.Request.Args); err != nil {
		return err
	}
	if a.handle != nil {
		a.argsValid, err = a.handle.Schema.Read(a.Request.Args)
		return err
	}
	if err = strictjson.Object(a.Request.Args, nil); err != nil {
		return errcode.New(errcode.InvalidArguments, "arguments of %s are no JSON object that is safe to read: %v", a.Request.Name, err)
	}
	return nil
}

// rejectQuoted says what is wrong with arguments that came as a text: providers pass
// on so what a model wrote when that is no JSON.
func rejectQuoted(name string, args []byte) error {
	var text string
	if args[0] != '"' || json.Unmarshal(args, &text) != nil {
		return nil
	}
	if err := strictjson.Object([]byte(text), nil); err != nil {
		return errcode.New(errcode.InvalidArguments, "arguments of %s are no JSON object that is safe to read: %v; they have %d bytes", name, err, len(text))
	}
	return errcode.New(errcode.InvalidArguments, "arguments of %s are a text that holds an object, not an object: send the object itself", name)
}

// authorize refuses what the View does not let through.
func (g *Gate) authorize(_ context.Context, a *Admission) error {
	if !a.Decision.Allowed() {
		return errcode.New(a.Decision.Code(), "%s", a.Decision.Reason())
	}
	return nil
}

// validate refuses arguments that the tool's schema does not allow. The full
// validator is asked, and words why, where parse did not see that they fit.
func (g *Gate) validate(_ context.Context, a *Admission) error {
	if a.argsValid {
		return nil
	}
	return a.handle.Schema.Validate(a.Request.Args)
}

// checkRetry refuses to run a call again whose outcome is unknown, unless the tool
// was and is one that may be repeated.
func (g *Gate) checkRetry(_ context.Context, a *Admission) error {
	if a.Request.Started && !(repeatable(a.Request.Effect) && repeatable(a.handle.Definition.Effect)) {
		return interrupted(a.Request.Name)
	}
	return nil
}

func repeatable(e tool.Effect) bool { return e == tool.Idempotent || e == tool.ReadOnly }

// Effect gives the effect class of an allowed call's tool; Mutating of others.
func (a *Admission) Effect() tool.Effect {
	if a.handle == nil {
		return tool.Mutating
	}
	return a.handle.Definition.Effect
}

// NextState gives the workflow state that a success of an allowed call moves to,
// "" for none and for calls that were refused.
func (a *Admission) NextState() string {
	if !a.Allowed() || a.handle == nil {
		return ""
	}
	return a.handle.Definition.State
}

func interrupted(name string) error {
	return errcode.New(errcode.ToolInterrupted, "%s was started and its outcome is unknown: it may or may not have acted; look before you call it again", name)
}

// Package gate owns the one door to a tool: decide, admit, record, run,
// record.
//
// Bind a principal to its Seat; Visible, Authorize and Call of a Seat read the
// same compiled View, so what somebody sees is what it may call. A call goes
// through the fixed list of steps in steps.go. A denial is a result the model
// reads, never an error; whatever keeps the gate from finding out is a
// denial. No other package calls a tool.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// ErrSuperseded is what a Recorder gives when a decision is no longer in
// force; the gate decides again.
var ErrSuperseded = errors.New("the decision was superseded")

// Directory knows where principals stand. For those it does not know it gives
// a Slot that denies.
type Directory interface {
	Seat(p identity.Principal) (slot *toolgroups.Slot, state string)
}

// Recorder makes a run of calls last. Started returns when decisions and
// intents are on record, which is when the allowed calls start: it must give
// ErrSuperseded if one of them is Superseded at that moment. Finished returns
// when outcomes, and the state they lead to, are on record.
type Recorder interface {
	Started(ctx context.Context, calls []*Admission) error
	Finished(ctx context.Context, calls []*Admission) error
}

// Config is what a Gate needs. Zero limits are the defaults.
type Config struct {
	Groups    *toolgroups.Manager
	Directory Directory
	Log       *slog.Logger
	Timeout   time.Duration // of one call; 5 minutes
	MaxArgs   int           // bytes; 8 MiB, which is also the most
	MaxResult int           // bytes; 4 MiB
}

// Gate decides and runs calls. Safe for concurrent use.
type Gate struct{ config Config }

// New makes a Gate; the error names the field that is missing.
func New(config Config) (*Gate, error) {
	switch {
	case config.Groups == nil:
		return nil, errors.New("gate: Config.Groups is missing")
	case config.Directory == nil:
		return nil, errors.New("gate: Config.Directory is missing")
	case config.Log == nil:
		return nil, errors.New("gate: Config.Log is missing")
	}
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Minute
	}
	if config.MaxArgs == 0 {
		config.MaxArgs = 8 << 20
	}
	if config.MaxResult == 0 {
		config.MaxResult = 4 << 20
	}
	return &Gate{config}, nil
}

// Seat is a principal at the gate: its Slot and its workflow state as they
// were when it was bound. The Slot's View is read anew with every question.
// A Seat is a value; the zero Seat denies.
type Seat struct {
	gate      *Gate
	Principal identity.Principal
	State     string
	slot      *toolgroups.Slot
}

// Bind finds a principal's Seat.
func (g *Gate) Bind(p identity.Principal) Seat {
	slot, state := g.config.Directory.Seat(p)
	return Seat{gate: g, Principal: p, State: state, slot: slot}
}

// Peek gives a Seat for questions about a View that nobody holds: what a role
// would see in a state. It answers and calls nothing.
func (g *Gate) Peek(view *toolgroups.View, state string) Seat {
	slot := new(toolgroups.Slot)
	slot.Publish(view)
	return Seat{gate: g, State: state, slot: slot}
}

// Visible lists the tools the principal sees, in order. Callers must not
// change the list.
func (s Seat) Visible() []tool.Definition { return s.shelf().Definitions() }

// Wire gives Visible serialised by tool.Wire. Callers must not change it.
func (s Seat) Wire() []byte { return s.shelf().Wire() }

func (s Seat) shelf() *toolgroups.Shelf { return s.view().In(s.State) }

func (s Seat) view() *toolgroups.View {
	if s.slot == nil {
		return &toolgroups.View{}
	}
	return s.slot.View()
}

// Decision is the gate's answer to "may this principal call this tool". The
// zero Decision denies.
type Decision struct {
	Allowed bool
	Code    errcode.Code       // of a denial: UnknownTool or ToolNotAvailable
	Tool    string             // the name asked for
	Group   toolgroups.GroupID // that owns the tool; "" when there is no such tool
	Epoch   uint64             // of the View that decided
	Rule    Rule               // what decided
	State   string             // the workflow state asked in
}

// Rule names what decided.
type Rule uint8

// The rules. The zero Rule is that nothing allowed it.
const (
	NotGranted Rule = iota // none of what the role may use, within its limits, holds the tool
	NoSuchTool             // no group has a tool of this name
	WrongState             // the tool is the principal's, but not in this state
	Granted                // role, limits and state let it through
)

// String names the rule for people.
func (r Rule) String() string {
	return [...]string{"not granted", "no such tool", "wrong state", "granted"}[min(r, Granted)]
}

// Reason says in a sentence what decided; it holds the tool's name.
func (d Decision) Reason() string {
	switch d.Rule {
	case Granted:
		return "tool " + d.Tool + " is available through group " + string(d.Group)
	case NoSuchTool:
		return "there is no tool " + d.Tool
	case WrongState:
		state := d.State
		if state == "" {
			state = toolgroups.Undefined
		}
		return "tool " + d.Tool + " is not available in state " + state
	}
	return "tool " + d.Tool + " is not available to this role"
}

// Authorize decides whether the principal may call the tool of this name now:
// constant time, no I/O, no allocation.
func (s Seat) Authorize(name string) Decision {
	d, _ := s.decide(s.view(), name)
	return d
}

// decide is the whole decision: one look-up by name, one bit of the View in
// this state. The handle is nil unless the call is allowed.
func (s Seat) decide(view *toolgroups.View, name string) (Decision, *toolgroups.Handle) {
	d := Decision{Code: errcode.UnknownTool, Tool: name, Epoch: view.Epoch, Rule: NoSuchTool, State: s.State}
	if s.gate == nil {
		return d, nil
	}
	handle, ok := s.gate.config.Groups.Snapshot().Lookup(name)
	if !ok {
		return d, nil
	}
	d.Code, d.Group, d.Rule = errcode.ToolNotAvailable, handle.Group, NotGranted
	switch {
	case view.In(s.State).Has(handle):
		d.Allowed, d.Code, d.Rule = true, "", Granted
		return d, handle
	case view.Has(handle):
		d.Rule = WrongState
	}
	return d, nil
}

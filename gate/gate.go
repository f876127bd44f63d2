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
	"sync/atomic"
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
	Authn     Authn         // nil vouches for nobody
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
// The zero Seat denies. Safe for concurrent use.
type Seat struct {
	Principal identity.Principal
	State     string
	slot      *toolgroups.Slot
	groups    *toolgroups.Manager
	shelf     atomic.Pointer[toolgroups.Shelf] // of the View asked last
}

// Bind finds a principal's Seat.
func (g *Gate) Bind(p identity.Principal) *Seat {
	slot, state := g.config.Directory.Seat(p)
	return &Seat{Principal: p, State: state, slot: slot, groups: g.config.Groups}
}

// Peek gives a Seat for questions about a View that nobody holds: what a role
// would see in a state. It answers and calls nothing.
func (g *Gate) Peek(view *toolgroups.View, state string) *Seat {
	slot := new(toolgroups.Slot)
	slot.Publish(view)
	return &Seat{State: state, slot: slot, groups: g.config.Groups}
}

// Visible lists the tools the principal sees, in order. Callers must not
// change the list.
func (s *Seat) Visible() []tool.Definition { return s.in(s.view()).Definitions() }

// Names lists the names of Visible. Callers must not change the list.
func (s *Seat) Names() []string { return s.in(s.view()).Names() }

// Wire gives Visible serialised by tool.Wire. Callers must not change it.
func (s *Seat) Wire() []byte { return s.in(s.view()).Wire() }

// Offered lists the tools the principal may call in at least one workflow
// state, in the order of Visible: what those are told who are not told anew
// when the state moves. It is made once for each View; callers must not change
// the list.
func (s *Seat) Offered() []tool.Definition { return s.view().Offered() }

// Prompts lists the prompts of the groups that the principal holds, of one group
// if it is named, sorted by name.
func (s *Seat) Prompts(within toolgroups.GroupID) []*toolgroups.Prompt {
	return s.view().Prompts(within)
}

// After gives the Seat as it will be when a call of a tool it sees has
// succeeded: in the state that the tool leads to.
func (s *Seat) After(name string) *Seat {
	next := &Seat{Principal: s.Principal, State: s.State, slot: s.slot, groups: s.groups}
	for _, d := range s.Visible() {
		if d.Name == name && d.State != "" {
			next.State = d.State
		}
	}
	return next
}

// Offer is what a principal sees at one moment.
type Offer struct {
	Names []string // of the tools, in order; do not change
	Wire  []byte   // the same, serialised by tool.Wire; do not change
	Gated bool     // it answers from these tools alone
}

// Offer gives what the principal sees now, all of it from one View.
func (s *Seat) Offer() Offer {
	view := s.view()
	shelf := s.in(view)
	return Offer{shelf.Names(), shelf.Wire(), view.Gated()}
}

// view gives the View in force.
func (s *Seat) view() *toolgroups.View {
	if s.slot == nil {
		return new(toolgroups.Slot).View()
	}
	return s.slot.View()
}

// in gives a View in the Seat's state. It is looked up once for each View.
func (s *Seat) in(view *toolgroups.View) *toolgroups.Shelf {
	shelf := s.shelf.Load()
	if shelf == nil || shelf.View() != view {
		shelf = view.In(s.State)
		s.shelf.Store(shelf)
	}
	return shelf
}

// Decision is the gate's answer to "may this principal call this tool". The
// zero Decision denies. It is small enough to travel in registers.
type Decision struct {
	Tool   string             // the name asked for
	handle *toolgroups.Handle // nil when there is no such tool
	ruling *toolgroups.Ruling
}

// Allowed says whether the call may be made.
func (d Decision) Allowed() bool { return d.ruling != nil && d.ruling.Rule == toolgroups.Granted }

// Rule names what decided.
func (d Decision) Rule() toolgroups.Rule {
	if d.ruling == nil {
		return toolgroups.NotGranted
	}
	return d.ruling.Rule
}

// Epoch gives the epoch of the View that decided.
func (d Decision) Epoch() uint64 {
	if d.ruling == nil {
		return 0
	}
	return d.ruling.Epoch
}

// Code gives the code of a denial, "" for an allowance.
func (d Decision) Code() errcode.Code {
	switch {
	case d.Allowed():
		return ""
	case d.handle == nil && !d.Gated():
		return errcode.UnknownTool
	}
	return errcode.ToolNotAvailable
}

// Gated says whether the decision is about somebody who answers from tools
// alone (seed 004). To such a one every denial is the same, whether the tool
// is another's, nobody's, or not for this workflow state.
func (d Decision) Gated() bool { return d.ruling != nil && d.ruling.Gated }

// Group gives the group that owns the tool, "" when there is no such tool.
func (d Decision) Group() toolgroups.GroupID {
	if d.handle == nil {
		return ""
	}
	return d.handle.Group
}

// Reason says in a sentence what decided; it holds the tool's name.
func (d Decision) Reason() string {
	switch {
	case d.Allowed():
		return "tool " + d.Tool + " is available through group " + string(d.Group())
	case d.Gated():
		return "Access denied. This agent is not authorized to use the " + d.Tool + " tool."
	case d.handle == nil:
		return "there is no tool " + d.Tool
	case d.Rule() == toolgroups.WrongState:
		return "tool " + d.Tool + " is not available in this workflow state"
	}
	return "tool " + d.Tool + " is not available to this role"
}

// Authorize decides whether the principal may call the tool of this name now.
// It is the whole decision: one look-up by name, one bit of the View in this
// state; constant time, no I/O, no allocation.
func (s *Seat) Authorize(name string) Decision {
	if s.groups == nil {
		return Decision{Tool: name}
	}
	shelf := s.in(s.view()) // before the look-up: a newer View may know another tool in an older handle's place
	handle, _ := s.groups.Snapshot().Lookup(name)
	return Decision{name, handle, shelf.Judge(handle)}
}

// inForce says whether the View that allowed a call is the one in force.
func (s *Seat) inForce(d Decision) bool {
	return d.ruling == s.view().Ruling(toolgroups.Granted)
}

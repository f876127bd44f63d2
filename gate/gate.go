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
	Resolve(p identity.Principal) (slot *toolgroups.ViewRef, state string)
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

// Subject is a principal at the gate: its Slot and its workflow state as they
// were when it was bound. The Slot's View is read anew with every question.
// The zero Seat denies. Safe for concurrent use.
type Subject struct {
	Principal identity.Principal
	State     string
	slot      *toolgroups.ViewRef
	groups    *toolgroups.Manager
	cached    atomic.Pointer[toolgroups.StateView] // of the View asked last
}

// Subject finds a principal's Seat.
func (g *Gate) Subject(p identity.Principal) *Subject {
	slot, state := g.config.Directory.Resolve(p)
	return &Subject{Principal: p, State: state, slot: slot, groups: g.config.Groups}
}

// Preview gives a Seat for questions about a View that nobody holds: what a role
// would see in a state. It answers and calls nothing.
func (g *Gate) Preview(view *toolgroups.View, state string) *Subject {
	slot := new(toolgroups.ViewRef)
	slot.Publish(view)
	return &Subject{State: state, slot: slot, groups: g.config.Groups}
}

// Visible lists the tools the principal sees, in order. Callers must not
// change the list.
func (s *Subject) Visible() []tool.Definition { return s.stateView(s.view()).Definitions() }

// ToolNames lists the names of Visible. Callers must not change the list.
func (s *Subject) ToolNames() []string { return s.stateView(s.view()).Names() }

// ToolJSON gives Visible serialised by tool.MarshalTools. Callers must not change it.
func (s *Subject) ToolJSON() []byte { return s.stateView(s.view()).JSON() }

// Listable lists the tools the principal may call in at least one workflow
// state, in the order of Visible: what those are told who are not told anew
// when the state moves. It is made once for each View; callers must not change
// the list.
func (s *Subject) Listable() []tool.Definition { return s.view().Listable() }

// Prompts lists the prompts of the groups that the principal holds, of one group
// if it is named, sorted by name.
func (s *Subject) Prompts(within toolgroups.GroupID) []*toolgroups.Prompt {
	return s.view().Prompts(within)
}

// AfterCall gives the Seat as it will be when a call of a tool it sees has
// succeeded: in the state that the tool leads to.
func (s *Subject) AfterCall(name string) *Subject {
	next := &Subject{Principal: s.Principal, State: s.State, slot: s.slot, groups: s.groups}
	for _, d := range s.Visible() {
		if d.Name == name && d.State != "" {
			next.State = d.State
		}
	}
	return next
}

// ToolList is what a principal sees at one moment.
type ToolList struct {
	Names     []string // of the tools, in order; do not change
	JSON      []byte   // the same, serialised by tool.MarshalTools; do not change
	ToolGated bool     // it answers from these tools alone
}

// Tools gives what the principal sees now, all of it from one View.
func (s *Subject) Tools() ToolList {
	view := s.view()
	shelf := s.stateView(view)
	return ToolList{shelf.Names(), shelf.JSON(), view.ToolGated()}
}

// view gives the View in force.
func (s *Subject) view() *toolgroups.View {
	if s.slot == nil {
		return new(toolgroups.ViewRef).View()
	}
	return s.slot.View()
}

// stateView gives a View in the Seat's state. It is looked up once for each View.
func (s *Subject) stateView(view *toolgroups.View) *toolgroups.StateView {
	shelf := s.cached.Load()
	if shelf == nil || shelf.View() != view {
		shelf = view.ForState(s.State)
		s.cached.Store(shelf)
	}
	return shelf
}

// Decision is the gate's answer to "may this principal call this tool". The
// zero Decision denies. It is small enough to travel in registers.
type Decision struct {
	Tool    string             // the name asked for
	handle  *toolgroups.Handle // nil when there is no such tool
	outcome *toolgroups.Evaluation
}

// Allowed says whether the call may be made.
func (d Decision) Allowed() bool { return d.outcome != nil && d.outcome.Rule == toolgroups.Granted }

// Rule names what decided.
func (d Decision) Rule() toolgroups.Rule {
	if d.outcome == nil {
		return toolgroups.NotGranted
	}
	return d.outcome.Rule
}

// Epoch gives the epoch of the View that decided.
func (d Decision) Epoch() uint64 {
	if d.outcome == nil {
		return 0
	}
	return d.outcome.Epoch
}

// Code gives the code of a denial, "" for an allowance.
func (d Decision) Code() errcode.Code {
	switch {
	case d.Allowed():
		return ""
	case d.handle == nil && !d.ToolGated():
		return errcode.UnknownTool
	}
	return errcode.ToolNotAvailable
}

// ToolGated says whether the decision is about somebody who answers from tools
// alone (seed 004). To such a one every denial is the same, whether the tool
// is another's, nobody's, or not for this workflow state.
func (d Decision) ToolGated() bool { return d.outcome != nil && d.outcome.ToolGated }

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
	case d.ToolGated():
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
func (s *Subject) Authorize(name string) Decision {
	if s.groups == nil {
		return Decision{Tool: name}
	}
	shelf := s.stateView(s.view()) // before the look-up: a newer View may know another tool in an older handle's place
	handle, _ := s.groups.Snapshot().Lookup(name)
	return Decision{name, handle, shelf.Decide(handle)}
}

// current says whether the View that allowed a call is the one in force.
func (s *Subject) current(d Decision) bool {
	return d.outcome == s.view().Evaluation(toolgroups.Granted)
}

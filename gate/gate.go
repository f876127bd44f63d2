// Package gate is the single enforcement point for tool calls. It authorizes a
// call, validates its arguments, records it, runs it and records the outcome.
// No other package calls a tool.
//
// # Authorization
//
// A decision reads data that was compiled in advance. For an agent that calls a
// tool by name it follows this chain:
//
//  1. [ViewResolver.ResolveView] maps the agent to a [toolgroups.ViewRef] and to the
//     agent's workflow state. Agents with the same role and the same limits share
//     one ViewRef.
//  2. [toolgroups.ViewRef.CurrentView] loads the current [toolgroups.View]: the tools that
//     the role may use within all of its limits. A View is immutable. A change of
//     permissions compiles a new View and publishes it in the ViewRef before the
//     change is acknowledged.
//  3. [toolgroups.View.ForState] selects the [toolgroups.StateView]: those tools of
//     the View that are visible in the workflow state.
//  4. [toolgroups.StateView.EvaluateTool] tests the bit of the tool's [toolgroups.ToolHandle].
//     It returns a [toolgroups.Evaluation]: the rule that decided, and the epoch of
//     the View.
//
// [Gate.Subject] does step 1. [Subject.VisibleTools] lists the tools of step 3, and
// [Subject.AuthorizeTool] looks up the ToolHandle and does step 4. Both read the same View,
// so an agent may call exactly the tools that it is shown:
//
//	subject := g.Subject(identity.ByAgent("clerk-1"))
//	tools := subject.VisibleTools()               // what the model is offered
//	decision := subject.AuthorizeTool("read_file") // what it may call
//	if !decision.Allowed() {
//		fmt.Println(decision.Code(), decision.Reason())
//	}
//
// Everything that is missing along the chain denies the call. Examples are an unknown
// principal, a ViewRef without a View, and a name without a tool. The zero values of all types
// deny it, too. A fault may remove permissions but never adds any.
//
// # Calls
//
// [Gate.Call] takes the calls of one model answer through these stages, in order:
//
//  1. The checks of steps.go: resolve the principal, parse the arguments,
//     authorize, validate the arguments, compare them with the bounds, authenticate,
//     check what the caller may record, refuse unsafe retries, and let calls wait
//     that people must approve.
//  2. Acquire a lease on each tool whose module can be replaced while it runs.
//  3. Record decisions and intents with [CallRecorder.CallStarted]. A call starts when
//     this commit succeeds.
//  4. Run the allowed calls, each with a timeout and a limit on its result.
//  5. Record the outcomes with [CallRecorder.CallFinished], and the new workflow state.
//
// The commit of stage 3 rejects decisions of a View that has been replaced ([ErrSuperseded]).
// The gate then starts again at stage 1. Hence no call starts after a revocation was
// acknowledged.
//
// A denial is a [tool.Result] that the model can read. Errors of Gate.Call are
// failures of the machinery only.
//
// The package stores nothing and grants nothing. Roles and their limits are in
// package org, the compiled permissions in package toolgroups.
package gate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// ErrSuperseded is returned by a CallRecorder when a decision is no longer current.
// The gate then decides again.
var ErrSuperseded = errors.New("the decision was superseded")

// ViewResolver resolves principals. It is implemented by org.Org.
type ViewResolver interface {
	// ResolveView returns the ViewRef of p and its workflow state. For an unknown
	// principal it returns a ViewRef that denies everything. ResolveView must be safe
	// for concurrent use.
	ResolveView(p identity.Principal) (ref *toolgroups.ViewRef, state string)
}

// CallRecorder makes the calls of a batch durable. The gate calls CallPending
// before it decides a batch, CallStarted once the batch is decided, and CallFinished
// once its allowed calls have run. All errors but
// ErrSuperseded end Gate.Call.
type CallRecorder interface {
	// CallPending is called before the calls are decided. requests are the requests
	// that are left. It may block until there is room to record them. If it fails,
	// none of them is decided.
	CallPending(ctx context.Context, requests []CallRequest) error

	// CallStarted records the decisions and intents of the calls. The allowed calls
	// start when it returns nil. It must return ErrSuperseded, wrapped or not, and
	// record nothing if one of the calls is Superseded at the moment of the commit.
	CallStarted(ctx context.Context, calls []*Admission) error

	// A call that is Waiting does not run: CallStarted records what it waits for. The other
	// calls go on. CallStarted takes the Approval of an allowed call, once, and returns
	// ErrSuperseded if it is not granted any more.

	// CallFinished records the outcomes of the calls and the workflow state that they
	// lead to.
	CallFinished(ctx context.Context, calls []*Admission) error
}

// DefaultTimeout limits one call. It covers the wait of run_command for its turn and the
// longest time limit of a program, with time to start it.
const DefaultTimeout = 6 * time.Minute

// Config is the configuration of a Gate. A limit of zero selects the default.
type Config struct {
	Groups    *toolgroups.Manager // required
	Directory ViewResolver        // required
	Log       *slog.Logger        // required
	Authn     TokenVerifier       // verifies tokens; nil rejects all tokens
	Timeout   time.Duration       // of one call; default DefaultTimeout
	MaxArgs   int                 // bytes; default 8 MiB, and no more than that
	MaxResult int                 // bytes of the texts and the JSON of a result; default 4 MiB

	// Quota, if set, returns an error with an errcode.Code if a principal may not record that
	// many bytes. A call whose arguments do not fit is denied with this error.
	Quota func(p identity.Principal, bytes int) error

	// Inputs, if set, returns a value of the input of a principal's task, as JSON, for bounds
	// with the operator input. It reports false if there is no such value. Nil has none.
	Inputs func(ctx context.Context, p identity.Principal, name string) (json.RawMessage, bool)

	// Approvals knows which calls people have approved. Nil denies the calls that need it.
	Approvals ApprovalLookup

	// Owner returns the Owner of a principal's calls. Nil makes each principal an owner.
	Owner func(p identity.Principal) string
}

// Gate authorizes and runs tool calls. It is safe for concurrent use.
type Gate struct {
	config      Config
	validations *fair.Semaphore // held while arguments are decoded to be checked
}

// maxValidations limits the arguments that are decoded at once, for their memory.
const maxValidations = 4

// New returns a Gate. It returns an error that names the field if a required
// field of config is missing.
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
		config.Timeout = DefaultTimeout
	}
	if config.MaxArgs == 0 {
		config.MaxArgs = 8 << 20
	}
	if config.MaxResult == 0 {
		config.MaxResult = 4 << 20
	}
	if config.Owner == nil {
		config.Owner = identity.Principal.String
	}
	return &Gate{config, fair.NewSemaphore(maxValidations)}, nil
}

// Subject is a principal with its ViewRef and the workflow state that it had when
// it was resolved. The state of a Subject does not change, but every method reads
// the current View. The zero Subject is denied everything. A Subject is safe for
// concurrent use.
type Subject struct {
	Principal identity.Principal
	State     string
	ref       *toolgroups.ViewRef
	groups    *toolgroups.Manager
	cached    atomic.Pointer[toolgroups.StateView] // of the View that was read last
}

// Subject resolves a principal.
func (g *Gate) Subject(p identity.Principal) *Subject {
	ref, state := g.config.Directory.ResolveView(p)
	return &Subject{Principal: p, State: state, ref: ref, groups: g.config.Groups}
}

// PreviewSubject returns a Subject for a View that belongs to no principal. It answers
// what a role would be allowed in a workflow state.
func (g *Gate) PreviewSubject(view *toolgroups.View, state string) *Subject {
	ref := new(toolgroups.ViewRef)
	ref.PublishView(view)
	return &Subject{State: state, ref: ref, groups: g.config.Groups}
}

// VisibleTools returns the tools that the principal may call now, ordered by group and
// then by registration. The list is shared: callers must not change it.
func (s *Subject) VisibleTools() []tool.Definition { return s.stateView(s.view()).ToolDefinitions() }

// ToolNames returns the names of VisibleTools. Callers must not change the list.
func (s *Subject) ToolNames() []string { return s.stateView(s.view()).ToolNames() }

// ToolJSON returns VisibleTools as serialized by tool.MarshalTools. Callers must not
// change it.
func (s *Subject) ToolJSON() []byte { return s.stateView(s.view()).ToolJSON() }

// ListableTools returns the tools that the principal may call in at least one workflow
// state, in the order of VisibleTools. It is for clients that are not notified when the
// state changes. The list is built once for each View; callers must not change it.
func (s *Subject) ListableTools() []tool.Definition { return s.view().ListableTools() }

// ListPrompts returns the prompts of the groups that the principal may use, sorted by
// name. If within is not empty, it returns the prompts of that group only.
func (s *Subject) ListPrompts(within toolgroups.GroupID) []toolgroups.Prompt {
	return s.view().ListPrompts(within)
}

// AfterCall returns the Subject as it will be after a successful call of the named
// tool. It is then in the workflow state that the tool leads to. A tool that is
// not visible leads nowhere. The receiver is not changed.
func (s *Subject) AfterCall(name string) *Subject {
	next := &Subject{Principal: s.Principal, State: s.State, ref: s.ref, groups: s.groups}
	for _, d := range s.VisibleTools() {
		if d.Name == name && d.State != "" {
			next.State = d.State
		}
	}
	return next
}

// ToolList holds what a principal is shown at one moment. Callers must not change
// it.
type ToolList struct {
	Names  []string          // of the visible tools, in order
	JSON   []byte            // the visible tools, serialized by tool.MarshalTools
	Gating toolgroups.Gating // unless it is NotGated, the agent must answer from these tools alone

	Suspended string // why there are none until a role or the organization is resumed, "" if it is not paused
}

// ListTools returns what the principal is shown now. All of it comes from one View.
func (s *Subject) ListTools() ToolList {
	view := s.view()
	sv := s.stateView(view)
	return ToolList{sv.ToolNames(), sv.ToolJSON(), view.Gating(), view.Suspended()}
}

// view returns the current View.
func (s *Subject) view() *toolgroups.View {
	if s.ref == nil {
		return new(toolgroups.ViewRef).CurrentView()
	}
	return s.ref.CurrentView()
}

// stateView returns the StateView of view for the state of s. It caches the last StateView. So a
// decision needs no map lookup as long as the View stays the same.
func (s *Subject) stateView(view *toolgroups.View) *toolgroups.StateView {
	sv := s.cached.Load()
	if sv == nil || sv.BaseView() != view {
		sv = view.ForState(s.State)
		s.cached.Store(sv)
	}
	return sv
}

// Decision is the answer to "may this principal call this tool?". The zero
// Decision denies. It is four words long, so that it is passed in registers; its
// methods compute the details on demand
// (docs/decisions/0004-decision-in-four-words.md).
type Decision struct {
	Tool    string                 // the requested name
	handle  *toolgroups.ToolHandle // nil if there is no such tool
	outcome *toolgroups.Evaluation // of the View that decided; nil in the zero Decision
}

// Allowed reports whether the call may be made.
func (d Decision) Allowed() bool { return d.outcome != nil && d.outcome.Rule == toolgroups.Granted }

// Rule returns the rule that decided.
func (d Decision) Rule() toolgroups.DecisionRule {
	if d.outcome == nil {
		return toolgroups.NotGranted
	}
	return d.outcome.Rule
}

// Epoch returns the epoch of the View that decided.
func (d Decision) Epoch() uint64 {
	if d.outcome == nil {
		return 0
	}
	return d.outcome.Epoch
}

// Code returns the error code of a denial: unknown_tool or tool_not_available. It
// returns "" if the call is allowed.
func (d Decision) Code() errcode.Code {
	switch {
	case d.Allowed():
		return ""
	case d.handle == nil && !d.ToolGated() && d.Suspended() == "":
		return errcode.UnknownTool
	}
	return errcode.ToolNotAvailable
}

// ToolGated reports whether the decision is about a tool-gated agent, which must
// answer from tools alone. All denials of such an agent have the same code and
// reason. They do not depend on whether the tool exists, belongs to others or is
// not visible in this state. A denial must not reveal which tools exist.
func (d Decision) ToolGated() bool {
	return d.outcome != nil && d.outcome.Gating != toolgroups.NotGated
}

// Suspended says why everything is denied until the operator resumes a role or the organization, "" if it is
// not. All such denials have the same code and reason, whether the tool exists or not.
func (d Decision) Suspended() string {
	if d.outcome == nil || d.Allowed() {
		return ""
	}
	return d.outcome.Suspended
}

// Group returns the group through which an allowed tool is granted, which the principal
// has. For a denied tool it returns the group that owns the tool, which only the
// operator may see. It returns "" if there is no such tool.
func (d Decision) Group() toolgroups.GroupID {
	switch {
	case d.handle == nil:
		return ""
	case d.Allowed():
		return d.outcome.GrantingGroup(d.handle)
	}
	return d.handle.Group
}

// Reason returns a sentence that explains the decision. It contains the name of
// the tool.
func (d Decision) Reason() string {
	switch {
	case d.Allowed():
		return "tool " + d.Tool + " is available through group " + string(d.Group())
	case d.Suspended() != "":
		return "tool " + d.Tool + " is not available: " + d.Suspended()
	case d.ToolGated():
		return "Access denied. This agent is not authorized to use the " + d.Tool + " tool."
	case d.handle == nil:
		return "there is no tool " + d.Tool
	case d.Rule() == toolgroups.WrongState:
		return "tool " + d.Tool + " is not available in this workflow state"
	}
	return "tool " + d.Tool + " is not available to this role"
}

// AuthorizeTool decides whether the principal may call the named tool now. It takes
// one lookup by name and one bit test, in constant time, without I/O and without
// allocation.
func (s *Subject) AuthorizeTool(name string) Decision {
	if s.groups == nil {
		return Decision{Tool: name}
	}
	// Load the View before the lookup. In the other order a newer View could have
	// given the bit of the ToolHandle to another tool.
	sv := s.stateView(s.view())
	handle, _ := s.groups.CurrentSnapshot().LookupTool(name)
	return Decision{name, handle, sv.EvaluateTool(handle)}
}

// isCurrent reports whether the View that allowed a call is still the current one.
// Every View has its own Evaluations, so comparing pointers is enough.
func (s *Subject) isCurrent(d Decision) bool {
	return d.outcome == s.view().RuleEvaluation(toolgroups.Granted)
}

package runtime

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// The kinds of the records of approvals: the request with its votes, and the arguments that it
// is about, under its id. Both are removed when the call has used the approval or does not run.
const (
	kindApproval     = "approval"
	kindApprovalArgs = "approvalArgs"
)

// The limits of the requests that wait. A caller has at most maxCallerApprovals, for its own calls
// and the calls of its tasks. The tasks of the operator have maxOperatorApprovals together.
const (
	maxApprovals         = 100_000
	maxOperatorApprovals = 50_000
	maxCallerApprovals   = 1000
	maxApprovalReason    = 2000 // bytes
	maxEditedArgs        = maxEventArgs
)

// ApprovalStatus is the state of a request for approval. All others are the end of a request,
// which is then removed.
type ApprovalStatus string

// The states of a request. One that is not ApprovalWaiting ends when its call is decided again.
const (
	ApprovalWaiting ApprovalStatus = "waiting"
	ApprovalGranted ApprovalStatus = "approved"
	ApprovalDenied  ApprovalStatus = "denied"
	ApprovalExpired ApprovalStatus = "expired"
)

// ApprovalVote is the approval of one person.
type ApprovalVote struct {
	By   string    `json:"by"`             // identity.Principal.String
	User string    `json:"user"`           // the person, whatever the role
	Role string    `json:"role,omitempty"` // id of the role of a caller
	As   string    `json:"as,omitempty"`   // name of that role
	Auth string    `json:"auth,omitempty"` // how the person was authenticated
	At   time.Time `json:"at"`

	// Pattern approves further calls, besides the call that the request is about. Nil approves
	// none.
	Pattern *approval.Pattern `json:"pattern,omitempty"`

	// Credential is the credential of ApproverAuth. The vote counts only while it is active.
	Credential string `json:"credential,omitempty"`
}

// Approval is a request for the approval of one call.
type Approval struct {
	ID        string           `json:"id"`
	Status    ApprovalStatus   `json:"status"`
	Task      identity.TaskID  `json:"task,omitempty"`  // "" for the call of an external caller
	Agent     identity.AgentID `json:"agent,omitempty"` // that calls
	Caller    string           `json:"caller,omitempty"`
	Starter   string           `json:"starter,omitempty"` // the person who called, or who started the task; "" is the operator
	Call      identity.CallID  `json:"call"`
	Tool      string           `json:"tool"`
	Role      string           `json:"role"` // name of the role of the agent or caller
	RoleID    identity.RoleID  `json:"roleId,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Rules     approval.Rules   `json:"rules"`
	Epoch     uint64           `json:"epoch"`
	Asked     time.Time        `json:"asked"`
	Until     time.Time        `json:"until"` // when it ends without a decision, or an approval without a call
	Votes     []ApprovalVote   `json:"votes,omitempty"`
	Denial    string           `json:"denial,omitempty"`    // why it was denied
	Digest    string           `json:"digest"`              // of the arguments that the votes are about
	Edited    bool             `json:"edited,omitempty"`    // they were set by an approver
	Escalated int              `json:"escalated,omitempty"` // how many escalations of the rules are on record
	Asks      string           `json:"asks"`                // digest of the arguments of the call

	// Of a request for an operation of an operator, who is Starter. Its arguments describe it.
	Operation approval.Operation `json:"operation,omitempty"` // also in Tool; "" for a call
	Subject   string             `json:"subject,omitempty"`   // what the operation changes

	// Override is set if an operator gave the last vote in place of the approvers.
	Override bool `json:"override,omitempty"`

	// Key says which call the approval is for. That is a call of an agent. Or it is any call
	// of an external caller, or of a program that drives a task, with the same tool and
	// arguments.
	Key   ApprovalHash `json:"key"`
	Bound ApprovalHash `json:"bound"` // of what it is bound to besides Digest
}

// ApprovalHash is a SHA-256 hash. Its text is hexadecimal.
type ApprovalHash [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (h ApprovalHash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *ApprovalHash) UnmarshalText(text []byte) error {
	sum, err := hex.DecodeString(string(text))
	if err != nil || len(sum) != len(h) {
		return errors.New("no SHA-256 hash")
	}
	*h = ApprovalHash(sum)
	return nil
}

// isProgram reports whether a program repeats the calls of a principal. The program reads an error
// with the code approval_required. It is an external caller or the driver of a task.
func (rt *Runtime) isProgram(p identity.Principal) bool {
	return p.Kind != identity.Agent || rt.tracker.hasDriver(p.Agent)
}

// approvalKey returns the key of an approval for a call.
func (rt *Runtime) approvalKey(p identity.Principal, call tool.Call, args string) ApprovalHash {
	if rt.isProgram(p) {
		return hashTexts("direct", p.Holder().Key(), call.Name, args)
	}
	return agentKey(p.Agent, call.ID)
}

// agentKey returns the key of an approval for a call of an agent.
func agentKey(agent identity.AgentID, call identity.CallID) ApprovalHash {
	return hashTexts("agent", string(agent), string(call))
}

// hashTexts returns a hash of texts that is different for different lists.
func hashTexts(texts ...string) ApprovalHash {
	h := sha256.New()
	for _, t := range texts {
		h.Write(strconv.AppendInt(nil, int64(len(t)), 10))
		h.Write([]byte{0})
		h.Write([]byte(t))
	}
	return ApprovalHash(h.Sum(nil))
}

// bindingHash returns the hash of what an approval is bound to besides the arguments. That is
// the definition of the tool, the rules, the role as it is, and what the caller sent besides
// the arguments.
func (rt *Runtime) bindingHash(p identity.Principal, call tool.Call, need gate.ApprovalNeed) ApprovalHash {
	role, _ := rt.org.RoleByID(rt.roleOf(p))
	return hashTexts(call.Name, need.Definition, need.All.Digest(), string(role.ID), strconv.FormatUint(role.Revision, 10), need.Sender)
}

// isBound reports whether a request is about a call as it is now. The tool, the rules and the role
// must be the same, and no other rule may select the arguments. An approval whose votes are not
// enough any more is not bound.
func (rt *Runtime) isBound(a *Approval, p identity.Principal, call tool.Call, need gate.ApprovalNeed) bool {
	if a.Status == ApprovalGranted && !rt.isApproved(a) {
		return false
	}
	return a.Bound == rt.bindingHash(p, call, need) && a.Rules.Contains(need.Rules)
}

// roleOf returns the role of an agent or a caller.
func (rt *Runtime) roleOf(p identity.Principal) identity.RoleID {
	if p.Kind == identity.Agent {
		a, _ := rt.org.AgentByID(p.Agent)
		return a.Role
	}
	return p.Role
}

// starterOf returns the person for whom a principal acts. For a caller that is its user.
// For an agent it is the user that started its task. If triggers led to that task, it is
// the user that started the first of these tasks.
func (rt *Runtime) starterOf(p identity.Principal) string {
	if p.Kind != identity.Agent {
		return string(p.User)
	}
	a, _ := rt.org.AgentByID(p.Agent)
	task, _ := rt.org.TaskByID(a.Task)
	starter := task.Caller
	if task.Trigger != nil {
		starter = cmp.Or(task.Trigger.Starter, starter)
	}
	if caller, external := identity.ParseCaller(starter); external {
		return string(caller.User)
	}
	return operatorStarter
}

// operatorStarter stands for the operator in Approval.Starter: its tasks do not say which of
// several operators started them. No caller has this name.
const operatorStarter = ""

// FindApproval implements gate.ApprovalLookup. A verdict about a call that no person was asked about
// has the id under which the recorder stores the request.
func (rt *Runtime) FindApproval(p identity.Principal, call tool.Call, need gate.ApprovalNeed) gate.ApprovalVerdict {
	found, ok := rt.requestFor(p, call, need)
	if ok && (!rt.isBound(&found, p, call, need) || found.Digest != need.Args && found.Asks != need.Args) {
		ok = false // something has changed: people are asked again
	}
	switch {
	case !ok && need.Edited != "": // since useEdited has looked at it
		return gate.ApprovalVerdict{ID: found.ID, Denied: voidError(call.Name, found.ID)}
	case !ok:
		if id, covered := rt.reserveStanding(p, call, need); covered {
			return gate.ApprovalVerdict{ID: id, Granted: true}
		}
		return rt.newVerdict(p, call)
	case found.Status == ApprovalDenied:
		return gate.ApprovalVerdict{ID: found.ID, Denied: deniedError(found, "denied")}
	case found.Status == ApprovalExpired || !rt.now().Before(found.Until):
		return gate.ApprovalVerdict{ID: found.ID, Denied: deniedError(found, "deadline")}
	case found.Status == ApprovalGranted && found.Digest == need.Args:
		return gate.ApprovalVerdict{ID: found.ID, Granted: true}
	case rt.isProgram(p):
		return gate.ApprovalVerdict{ID: found.ID, Denied: requiredError(call.Name, found.ID)}
	}
	return gate.ApprovalVerdict{ID: found.ID}
}

// requestFor returns the request that a call is about.
func (rt *Runtime) requestFor(p identity.Principal, call tool.Call, need gate.ApprovalNeed) (Approval, bool) {
	if need.Edited != "" {
		return rt.approvals.find(need.Edited)
	}
	return rt.approvals.byCall(rt.approvalKey(p, call, need.Args))
}

// newVerdict returns the verdict about a call that no person was asked about.
func (rt *Runtime) newVerdict(p identity.Principal, call tool.Call) gate.ApprovalVerdict {
	if err := rt.approvals.checkRoom(rt.starterOf(p)); err != nil {
		return gate.ApprovalVerdict{Denied: err}
	}
	id := identity.NewID()
	if rt.isProgram(p) {
		return gate.ApprovalVerdict{ID: id, Denied: requiredError(call.Name, id)}
	}
	return gate.ApprovalVerdict{ID: id}
}

func requiredError(name, id string) error {
	return errcode.New(errcode.ApprovalRequired, "%s waits for an approval: make the same call again when the request %s is approved", name, id).With("approval", id)
}

// voidError returns the error for arguments of an approver whose approval is void.
func voidError(name, id string) error {
	return errcode.New(errcode.ApprovalDenied, "the approval of %s is void: its tool, its rules or the role has changed; make the call again", name).With("approval", id).With("reason", "void")
}

func deniedError(a Approval, reason string) error {
	what := "call of " + a.Tool
	if a.Operation != "" {
		what = "operation " + a.Tool
	}
	err := errcode.New(errcode.ApprovalDenied, "the %s was not approved and made before its deadline", what)
	if reason == "denied" {
		err = errcode.New(errcode.ApprovalDenied, "people have refused the %s: %s", what, a.Denial)
	}
	return err.With("approval", a.ID).With("reason", reason)
}

// newApproval returns the request of a call that waits.
func (rt *Runtime) newApproval(p identity.Principal, c *gate.Admission, reason string) Approval {
	need, _ := c.Need()
	now := rt.now()
	a := Approval{
		ID: c.Approval(), Status: ApprovalWaiting, Starter: rt.starterOf(p), Call: c.Request.ID, Tool: c.Request.Name,
		Reason: shortReason(reason), Rules: need.Rules, Epoch: c.Decision.Epoch(), Asked: now, Until: now.Add(need.Rules.Deadline()),
		Digest: need.Args, Asks: need.Args, Key: rt.approvalKey(p, c.Request.Call, need.Args), Bound: rt.bindingHash(p, c.Request.Call, need),
		Role: rt.roleName(org.Agent{Role: rt.roleOf(p)}), RoleID: rt.roleOf(p),
	}
	if p.Kind == identity.Agent {
		agent, _ := rt.org.AgentByID(p.Agent)
		a.Agent, a.Task, a.Role = agent.ID, agent.Task, rt.roleName(agent)
	} else {
		a.Caller = p.String()
	}
	return a
}

// voteNow returns a vote as it counts now. It reports false if the role or the credential of the
// person is not active any more.
func (rt *Runtime) voteNow(v ApprovalVote) (vote approval.Vote, ok bool) {
	switch {
	case v.Credential != "" && !rt.isActiveCredential(v.Credential):
		return approval.Vote{}, false
	case v.Role == "":
		return approval.Vote{Operator: true}, true
	}
	name, ok := rt.org.ApproverRole(identity.ByCaller(identity.UserName(v.User), identity.RoleID(v.Role)))
	return approval.Vote{Role: name}, ok
}

// countedVotes returns the votes that count now.
func (rt *Runtime) countedVotes(votes []ApprovalVote) (list []ApprovalVote) {
	for _, v := range votes {
		if _, ok := rt.voteNow(v); ok {
			list = append(list, v)
		}
	}
	return list
}

// isApproved reports whether the votes for a request are enough now.
func (rt *Runtime) isApproved(a *Approval) bool {
	if a.Override {
		return len(rt.countedVotes(a.Votes[max(0, len(a.Votes)-1):])) == 1
	}
	return a.Rules.Satisfied(rt.votesNow(a.Votes), rt.now().Sub(a.Asked))
}

// votesNow returns votes as they count now.
func (rt *Runtime) votesNow(votes []ApprovalVote) (people []approval.Vote) {
	for _, v := range votes {
		if vote, ok := rt.voteNow(v); ok {
			people = append(people, vote)
		}
	}
	return people
}

// SetCredentialCheck sets what reports whether a credential of ApproverAuth is active. Without it no
// vote with a credential counts.
func (rt *Runtime) SetCredentialCheck(isActive func(credential string) bool) {
	rt.credentials.Store(&isActive)
}

func (rt *Runtime) isActiveCredential(credential string) bool {
	isActive := rt.credentials.Load()
	return isActive != nil && (*isActive)(credential)
}

// encode returns the record of a.
func (a *Approval) encode() json.RawMessage {
	text, _ := json.Marshal(a) // texts, times and rules always marshal
	return text
}

package gate

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// ApprovalNeed is what a call that waits for people is bound to. An approval counts only for a
// call with the same need.
type ApprovalNeed struct {
	Rules      approval.Rules // that select the call; none for arguments of an approver that no rule selects
	All        approval.Rules // of the tool, whatever the arguments
	Args       string         // approval.DigestJSON of the arguments
	Definition string         // digest of the definition of the tool
	Edited     string         // CallRequest.Edited
	Sender     string         // digest of what the tool gets of its caller besides the arguments; "" for nothing
}

// ApprovalVerdict is what an ApprovalLookup knows about a call. A call without a request for
// approval has the zero ApprovalVerdict.
type ApprovalVerdict struct {
	ID      string // of the request; "" if there is none for this need
	Granted bool   // the request was approved and is not used yet
	Denied  error  // why the call is denied, with an errcode.Code; nil if it is not
}

// ApprovalLookup knows the requests for approval. It is implemented by runtime.Runtime.
type ApprovalLookup interface {
	// FindApproval returns the verdict about a call. It must be safe for concurrent use. The
	// CallRecorder checks a granted one again, and takes it, in the commit that starts the call.
	FindApproval(p identity.Principal, call tool.Call, need ApprovalNeed) ApprovalVerdict
}

// requireApproval lets a call wait that rules of its View select, until people have approved it. It is
// the last step, so people are asked about calls only that would run. A call that was started
// before has used its approval: it is not repeated, whatever its effect class.
func (g *Gate) requireApproval(ctx context.Context, a *Admission) error {
	if g.setNeed(ctx, a); a.need == nil {
		return nil
	}
	if a.Request.Started {
		return interruptedError(a.Request.Name)
	}
	a.waiting = true
	if g.config.Approvals == nil {
		return errcode.New(errcode.ApprovalRequired, "%s needs an approval, and this program has no approvers", a.Request.Name)
	}
	verdict := g.config.Approvals.FindApproval(a.Subject.Principal, a.Request.Call, *a.need)
	a.approval, a.waiting = verdict.ID, !verdict.Granted || verdict.ID == "" || verdict.Denied != nil
	return verdict.Denied
}

// setNeed sets what a call needs an approval for, if rules of its View select it. Arguments that
// an approver has set need theirs also if no rule selects them.
func (g *Gate) setNeed(ctx context.Context, a *Admission) {
	all := a.Decision.outcome.ApprovalRules(a.handle)
	if len(all) == 0 && a.Request.Edited == "" {
		return
	}
	rules := all.ForArguments(a.Request.Args, g.inputsOf(ctx, a.Subject.Principal))
	if len(rules) > 0 || a.Request.Edited != "" {
		a.need = &ApprovalNeed{rules, all, approval.DigestJSON(a.Request.Args), definitionDigest(a.handle.Definition), a.Request.Edited, a.senderDigest()}
	}
}

// ApprovalRules returns the rules that select calls of the named tool with these arguments. With
// nil args it returns the rules for all calls of the tool. It returns none if the tool is not
// visible. args must be strict JSON. It decides nothing: Call looks up the rules of each call.
func (g *Gate) ApprovalRules(ctx context.Context, s *Subject, name string, args json.RawMessage) approval.Rules {
	rules := s.AuthorizeTool(name).ApprovalRules()
	if args == nil || rules == nil {
		return rules
	}
	return rules.ForArguments(args, g.inputsOf(ctx, s.Principal))
}

// CheckCall returns the error of a call that would be denied, or would wait for people. It returns
// nil if the call would run now. It is for a tool that has the effect of another tool: its calls
// must satisfy the bounds and the rules of approval of both. args must be strict JSON that matches
// the schema of the tool. The error has the code ToolNotAvailable if a rule selects the call: an
// approval of one tool is no approval of another. CheckCall records nothing.
func (g *Gate) CheckCall(ctx context.Context, s *Subject, name string, args json.RawMessage) error {
	a := decideNow(s, name, args)
	if err := g.authorize(ctx, a); err != nil {
		return err
	}
	if err := g.checkBounds(ctx, a); err != nil {
		return err
	}
	if g.setNeed(ctx, a); a.need != nil {
		return errcode.New(errcode.ToolNotAvailable, "call %s: these arguments need an approval; call %s itself", name, name)
	}
	return nil
}

// ApprovalRules returns the rules that select calls of the tool whatever their arguments, none if
// no call may be made.
func (d Decision) ApprovalRules() approval.Rules {
	if !d.Allowed() {
		return nil
	}
	return d.outcome.ApprovalRules(d.handle)
}

// definitionDigest returns a hash of what a tool says about itself.
func definitionDigest(d tool.Definition) string {
	text, _ := json.Marshal(d) // valid JSON and texts always marshal
	return approval.DigestJSON(bytes.Join([][]byte{text, d.Shown}, []byte{'\n'}))
}

// perTokenClaims are the claims that differ between tokens of the same user.
var perTokenClaims = []string{"exp", "iat", "nbf", "jti", "auth_time", "nonce", "at_hash", "c_hash", "sid"}

// senderDigest returns a hash of the secure arguments, and of the verified claims that say who has
// sent the call. It returns "" if the tool gets neither.
func (a *Admission) senderDigest() string {
	if len(a.secure) == 0 && len(a.claims) == 0 {
		return ""
	}
	users := map[string]map[string]json.RawMessage{}
	for service, claims := range a.claims {
		var user map[string]json.RawMessage
		_ = json.Unmarshal(claims, &user) // claims are a JSON object
		for _, name := range perTokenClaims {
			delete(user, name)
		}
		users[service] = user
	}
	text, _ := json.Marshal([]any{string(a.secure), users}) // texts and valid JSON always marshal
	return approval.DigestJSON(text)
}

// Waiting reports whether the call passed all other steps and waits for people. It is not
// allowed, and it is no denial unless Err is set.
func (a *Admission) Waiting() bool { return a.waiting && a.Err == nil }

// Need returns what the call needs an approval for. It reports false for a call that waits for no
// person.
func (a *Admission) Need() (need ApprovalNeed, ok bool) {
	if a.need == nil {
		return ApprovalNeed{}, false
	}
	return *a.need, true
}

// Approval returns the id of the approval that lets an allowed call run. For a waiting or denied
// call it returns the id of the request. It returns "" if there is no such id.
func (a *Admission) Approval() string { return a.approval }

// CheckEdited passes a call with the arguments of an approver through the checks. It does so
// as if the request with the id were approved. It neither records nor runs the call. It
// returns the need for an approval, and the error of the denial. The error is nil if the
// call would run.
func (g *Gate) CheckEdited(ctx context.Context, p identity.Principal, call tool.Call, id string) (ApprovalNeed, error) {
	a := g.admitBy(ctx, p, CallRequest{Call: call, Edited: id}, checks)
	if a.Err != nil {
		return ApprovalNeed{}, a.Err
	}
	g.setNeed(ctx, a)
	return *a.need, nil
}

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
	Rules      approval.Rules
	Args       string // approval.DigestJSON of the arguments
	Definition string // digest of the definition of the tool
	Sender     string // digest of what the tool gets of its caller besides the arguments; "" for nothing
}

// ApprovalVerdict is what an ApprovalLookup knows about a call. The zero ApprovalVerdict is that
// of a call without a request for approval.
type ApprovalVerdict struct {
	ID      string // of the request; "" if there is none for this need
	Granted bool   // the request was approved and is not used yet
	Denied  error  // why the call is denied, with an errcode.Code; nil if it is not
}

// ApprovalLookup knows the requests for approval. It is implemented by runtime.Runtime.
type ApprovalLookup interface {
	// FindApproval returns the verdict about a call. It must be safe for concurrent use. The
	// Recorder checks a granted one again, and takes it, in the commit that starts the call.
	FindApproval(p identity.Principal, call tool.Call, need ApprovalNeed) ApprovalVerdict
}

// approve lets a call wait that rules of its View select, until people have approved it. It is
// the last step, so people are asked about calls only that would run. A call that was started
// before has used its approval: it is not repeated, whatever its effect class.
func (g *Gate) approve(_ context.Context, a *Admission) error {
	rules := a.Decision.outcome.ApprovalRules(a.handle)
	if len(rules) == 0 {
		return nil
	}
	if a.Request.Started {
		return interrupted(a.Request.Name)
	}
	a.need = &ApprovalNeed{Rules: rules, Args: approval.DigestJSON(a.Request.Args), Definition: definitionDigest(a.handle.Definition), Sender: a.senderDigest()}
	a.waiting = true
	if g.config.Approvals == nil {
		return errcode.New(errcode.ApprovalRequired, "%s needs an approval, and this program has no approvers", a.Request.Name)
	}
	verdict := g.config.Approvals.FindApproval(a.Subject.Principal, a.Request.Call, *a.need)
	a.approval, a.waiting = verdict.ID, !verdict.Granted || verdict.ID == "" || verdict.Denied != nil
	return verdict.Denied
}

// definitionDigest returns a hash of what a tool says about itself.
func definitionDigest(d tool.Definition) string {
	text, _ := json.Marshal(d) // valid JSON and texts always marshal
	return approval.DigestJSON(bytes.Join([][]byte{text, d.Shown}, []byte{'\n'}))
}

// momentary are the claims that differ between tokens of the same user.
var momentary = []string{"exp", "iat", "nbf", "jti", "auth_time", "nonce", "at_hash", "c_hash", "sid"}

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
		for _, name := range momentary {
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

// Approval returns the id of the approval that lets an allowed call run, or of the request that
// a waiting or denied call is about; "" if there is none.
func (a *Admission) Approval() string { return a.approval }

// CheckCall takes a request through the steps without recording or running it, as if it were
// approved. It returns the error of the denial, nil if the call would run.
func (g *Gate) CheckCall(ctx context.Context, p identity.Principal, r CallRequest) error {
	return g.take(ctx, p, r, steps[:len(steps)-1]).Err // approve is the last
}

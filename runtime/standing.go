package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// kindStanding is the kind of the records of standing approvals, under their ids.
const kindStanding = "standingApproval"

// The limits of standing approvals.
const (
	maxStanding       = 10_000
	maxTaskStanding   = 20
	maxPersonStanding = 1000 // of the tasks of a caller; the tasks of the operator have half of all
)

// StandingApproval lets further calls of an agent run that fit a pattern, without asking people
// again. It is no right: the gate decides each call as before. It ends with its task.
type StandingApproval struct {
	ID      string           `json:"id"`
	Request string           `json:"request"` // id of the request whose approvers have set the pattern
	Task    identity.TaskID  `json:"task"`
	Agent   identity.AgentID `json:"agent"` // whose calls it covers
	Starter string           `json:"starter,omitempty"`
	Tool    string           `json:"tool"`
	Role    string           `json:"role"` // name of the role of the agent
	Pattern approval.Pattern `json:"pattern"`
	Rest    string           `json:"rest"` // approval.Pattern.RestDigest of the call that people were asked about
	Left    int              `json:"left"` // how many further calls; means nothing if Pattern.Uses is 0
	Used    int              `json:"used,omitempty"`
	Rules   approval.Rules   `json:"rules"`
	Bound   ApprovalHash     `json:"bound"` // as in Approval
	Votes   []ApprovalVote   `json:"votes"`
	Waited  time.Duration    `json:"waited,omitempty"` // how long the request had waited
	Since   time.Time        `json:"since"`
	Until   time.Time        `json:"until,omitzero"` // zero is until the task ends
}

// standingTable has the standing approvals that have not ended. The store has the same, as with
// approvalTable. It is safe for concurrent use.
type standingTable struct {
	mu      sync.Mutex // guards what follows
	byID    map[string]*StandingApproval
	byAgent map[identity.AgentID][]string // ids, oldest first

	// reserved has the calls that a standing approval has decided and that have not started. So the
	// calls of one answer do not use the approval more often than it allows.
	reserved map[string]map[identity.CallID]bool
}

func newStandingTable() *standingTable {
	return &standingTable{byID: map[string]*StandingApproval{}, byAgent: map[identity.AgentID][]string{}, reserved: map[string]map[identity.CallID]bool{}}
}

func (t *standingTable) isEmpty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) == 0
}

func (t *standingTable) find(id string) (StandingApproval, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[id]; s != nil {
		return *s, true
	}
	return StandingApproval{}, false
}

// list returns the standing approvals that match, oldest first.
func (t *standingTable) list(match func(*StandingApproval) bool) []StandingApproval {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []StandingApproval
	for _, s := range t.byID {
		if match(s) {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b StandingApproval) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return list
}

// ofAgent returns the standing approvals of an agent, oldest first.
func (t *standingTable) ofAgent(id identity.AgentID) (list []StandingApproval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range t.byAgent[id] {
		list = append(list, *t.byID[at])
	}
	return list
}

// reserve reserves one use for a call. It reports false if no use is left. The same call can
// reserve again.
func (t *standingTable) reserve(id string, call identity.CallID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, held := t.byID[id], t.reserved[id]
	switch {
	case s == nil:
		return false
	case held[call] || s.Pattern.Uses == 0:
		return true
	case len(held) >= s.Left:
		return false
	}
	if held == nil {
		held = map[identity.CallID]bool{}
		t.reserved[id] = held
	}
	held[call] = true
	return true
}

// release forgets what a call of an agent has reserved.
func (t *standingTable) release(agent identity.AgentID, call identity.CallID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range t.byAgent[agent] {
		delete(t.reserved[id], call)
	}
}

// releaseAll forgets what the calls of an agent have reserved that will not start.
func (t *standingTable) releaseAll(agent identity.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range t.byAgent[agent] {
		delete(t.reserved, id)
	}
}

// put adds a standing approval, or replaces it. It is called within the commit that writes the record.
func (t *standingTable) put(s StandingApproval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[s.ID] == nil {
		t.byAgent[s.Agent] = append(t.byAgent[s.Agent], s.ID)
	}
	t.byID[s.ID] = &s
}

func (t *standingTable) remove(s *StandingApproval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, s.ID)
	delete(t.reserved, s.ID)
	left := slices.DeleteFunc(slices.Clone(t.byAgent[s.Agent]), func(id string) bool { return id == s.ID })
	if len(left) == 0 {
		delete(t.byAgent, s.Agent)
		return
	}
	t.byAgent[s.Agent] = left
}

// checkRoom returns an error if the task, or the person for whom it runs, has as many standing
// approvals as it may.
func (t *standingTable) checkRoom(a *Approval) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	ofTask, ofPerson := 0, 0
	for _, s := range t.byID {
		if s.Task == a.Task {
			ofTask++
		}
		if s.Starter == a.Starter {
			ofPerson++
		}
	}
	share := maxPersonStanding
	if a.Starter == operatorStarter {
		share = maxStanding / 2
	}
	if share = min(share, maxStanding-len(t.byID)); ofTask >= maxTaskStanding || ofPerson >= share {
		return errcode.New(errcode.LimitExceeded, "approve a pattern: the task has %d of at most %d, the tasks of the same person %d of at most %d; revoke one that is not needed", ofTask, maxTaskStanding, ofPerson, share)
	}
	return nil
}

// isOver reports whether the time of s is over.
func (s *StandingApproval) isOver(now time.Time) bool {
	return !s.Until.IsZero() && !now.Before(s.Until)
}

// isActive reports whether s approves calls now: its time is not over, uses are left, and the
// people who have approved it may still approve.
func (rt *Runtime) isActive(s *StandingApproval) bool {
	if s.Pattern.Uses > 0 && s.Left <= 0 || s.isOver(rt.now()) {
		return false
	}
	return s.Rules.Satisfied(rt.votesNow(s.Votes), s.Waited)
}

// covers reports whether s approves a call.
func (rt *Runtime) covers(s *StandingApproval, p identity.Principal, call tool.Call, need gate.ApprovalNeed) bool {
	return need.Edited == "" && p.Kind == identity.Agent && s.Agent == p.Agent && s.Tool == call.Name && rt.isActive(s) &&
		s.Bound == rt.bindingHash(p, call, need) && s.Rules.Contains(need.Rules) &&
		s.Pattern.Fits(call.Args) && s.Pattern.RestDigest(call.Args) == s.Rest
}

// reserveStanding returns the id of a standing approval that covers a call, and reserves one use of it.
func (rt *Runtime) reserveStanding(p identity.Principal, call tool.Call, need gate.ApprovalNeed) (id string, ok bool) {
	if p.Kind != identity.Agent {
		return "", false
	}
	for _, s := range rt.standing.ofAgent(p.Agent) {
		if rt.covers(&s, p, call, need) && rt.standing.reserve(s.ID, call.ID) {
			return s.ID, true
		}
	}
	return "", false
}

// useStanding counts a call that a standing approval lets run. It reports false if no standing approval has the id.
// It is called within the commit that starts the call.
func (rt *Runtime) useStanding(b *journal.Batch, id string) bool {
	s, ok := rt.standing.find(id)
	if !ok {
		return false
	}
	s.Used++
	if s.Left--; s.Pattern.Uses > 0 && s.Left <= 0 {
		rt.endStanding(b, s, journal.PatternEnded{Outcome: journal.ApprovalUsed})
		return true
	}
	rt.storeStanding(b, s)
	return true
}

// storeStanding writes a standing approval. It is called within a commit.
func (rt *Runtime) storeStanding(b *journal.Batch, s StandingApproval) {
	text, _ := json.Marshal(s) // texts, times and rules always marshal
	rt.standing.put(s)
	b.Put = append(b.Put, journal.Record{Kind: kindStanding, Key: s.ID, Value: text})
}

// endStanding removes a standing approval and records why. It is called within a commit.
func (rt *Runtime) endStanding(b *journal.Batch, s StandingApproval, e journal.PatternEnded) {
	rt.standing.remove(&s)
	e.Standing, e.Tool, e.Used = s.ID, s.Tool, s.Used
	b.Put = append(b.Put, journal.Record{Kind: kindStanding, Key: s.ID})
	b.Events = append(b.Events, journal.Event{At: rt.now(), Task: s.Task, Agent: s.Agent, Role: s.Role, Body: e})
}

// voidStanding ends the standing approvals that match, as void or as expired. It is called within a commit.
func (rt *Runtime) voidStanding(b *journal.Batch, reason string, match func(*StandingApproval) bool) {
	if rt.standing.isEmpty() {
		return
	}
	for _, s := range rt.standing.list(match) {
		e := journal.PatternEnded{Outcome: journal.ApprovalVoid, Reason: reason}
		if s.isOver(rt.now()) {
			e = journal.PatternEnded{Outcome: journal.ApprovalExpired}
		}
		rt.endStanding(b, s, e)
	}
}

// expireStanding ends the standing approvals whose time is over. It is called within a commit.
func (rt *Runtime) expireStanding(b *journal.Batch) {
	now := rt.now()
	rt.voidStanding(b, "", func(s *StandingApproval) bool { return s.isOver(now) })
}

// voidLostStanding ends the standing approvals of agents that may not call the tool any more. It
// is called within a commit that changes roles.
func (rt *Runtime) voidLostStanding(b *journal.Batch) {
	rt.voidStanding(b, "the tool is not available to the role any more", func(s *StandingApproval) bool {
		d := rt.gate.Subject(identity.ByAgent(s.Agent)).AuthorizeTool(s.Tool)
		return d.Rule() == toolgroups.NotGranted && d.Suspended() == ""
	})
}

// preparePattern returns what the pattern of a decision leaves as it is in further calls. It returns
// an error unless the pattern is valid for the tool and covers the call that waits. It sets the
// digest of the decision: the pattern is for the arguments that were compared.
func (rt *Runtime) preparePattern(ctx context.Context, by identity.Principal, d *ApprovalDecision) (rest string, err error) {
	if d.Pattern == nil {
		return "", nil
	}
	invalid := func(format string, args ...any) (string, error) {
		return "", errcode.New(errcode.InvalidArguments, "approve a pattern with the request %s: "+format, append([]any{d.ID}, args...)...).With("field", "pattern")
	}
	a, args, err := rt.FindApprovalRequest(ctx, by, d.ID)
	if err != nil {
		return "", err
	}
	switch {
	case !d.Approve || d.Override || d.Args != nil:
		return invalid("only the approvers set it, when they approve the call as it is")
	case a.Operation != "" || a.Agent == "":
		return invalid("it is for the calls of an agent within its task; this is none")
	}
	if err := d.Pattern.Check(); err != nil {
		return invalid("%s", err)
	}
	subject := rt.gate.Subject(a.principal())
	at := slices.IndexFunc(subject.VisibleTools(), func(def tool.Definition) bool { return def.Name == a.Tool })
	if at < 0 {
		return invalid("the agent may not call %s now", a.Tool)
	}
	if path := d.Pattern.Args.UnknownPath(subject.VisibleTools()[at].Input); path != "" {
		return invalid("the schema of %s has no %s", a.Tool, path)
	}
	if !d.Pattern.Fits(args.Current()) {
		return invalid("the call itself does not fit it")
	}
	d.Digest = cmp.Or(d.Digest, a.Digest)
	return d.Pattern.RestDigest(args.Current()), nil
}

// newStanding returns the standing approval that a request has after its last vote, if enough people
// have voted for the same pattern. It is called within the commit of the vote.
func (rt *Runtime) newStanding(a *Approval, pattern *approval.Pattern, rest string) (s StandingApproval, ok bool) {
	if pattern == nil || a.Status != ApprovalGranted {
		return s, false
	}
	votes := slices.DeleteFunc(slices.Clone(a.Votes), func(v ApprovalVote) bool { return v.Pattern == nil || !v.Pattern.Equal(*pattern) })
	now := rt.now()
	s = StandingApproval{
		ID: identity.NewID(), Request: a.ID, Task: a.Task, Agent: a.Agent, Starter: a.Starter, Tool: a.Tool, Role: a.Role,
		Pattern: *pattern, Rest: rest, Left: pattern.Uses, Rules: a.Rules, Bound: a.Bound, Votes: votes, Waited: now.Sub(a.Asked), Since: now,
	}
	if pattern.For > 0 {
		s.Until = now.Add(pattern.For)
	}
	return s, rt.isActive(&s)
}

// patternText returns the record of a pattern, nil for none.
func patternText(p *approval.Pattern) json.RawMessage {
	if p == nil {
		return nil
	}
	text, _ := json.Marshal(p) // conditions and numbers always marshal
	return text
}

// ListStanding returns the standing approvals whose requests by may see, oldest first.
func (rt *Runtime) ListStanding(by identity.Principal) []StandingApproval {
	return rt.standing.list(func(s *StandingApproval) bool { return rt.isActive(s) && rt.maySeeStanding(by, s) })
}

func (rt *Runtime) maySeeStanding(by identity.Principal, s *StandingApproval) bool {
	vote, ok := rt.voteOf(by)
	return ok && (vote.Operator || s.Rules.Admits(vote, s.Waited))
}

// RevokeStanding ends a standing approval: no call that starts after it returns is covered. by is
// an operator, or a person whose votes its rules count. Errors: ApprovalNotFound if there is no
// such approval for the person.
func (rt *Runtime) RevokeStanding(by Requester, id, reason string) error {
	_, err := rt.flushAndCommit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		s, ok := rt.standing.find(id)
		if !ok || !rt.maySeeStanding(by.By, &s) {
			return errcode.New(errcode.ApprovalNotFound, "revoke the standing approval %.80q: there is none for you; it may be used up, or its task may have ended", id)
		}
		rt.endStanding(b, s, journal.PatternEnded{Outcome: journal.PatternRevoked, By: by.By.String(), Auth: by.Auth, Reason: shortReason(reason)})
		return nil
	}})
	return err
}

// isValid reports whether s is as storeStanding writes it. A record that lost an end would approve more calls.
func (s *StandingApproval) isValid() bool {
	return s.ID != "" && s.Pattern.Check() == nil && s.Left <= s.Pattern.Uses && (s.Pattern.For == 0) == s.Until.IsZero()
}

// loadStanding reads the standing approvals. A damaged one is logged and left out: people are asked
// about its calls.
func (rt *Runtime) loadStanding() error {
	for r, err := range rt.store.ReadRecords(rt.ctx, kindStanding, "") {
		if err := rt.logDamaged(err, "damaged standing approval skipped"); err != nil {
			return err
		}
		var s StandingApproval
		if err != nil || json.Unmarshal(r.Value, &s) != nil || s.ID != r.Key || !s.isValid() {
			rt.log.Error("standing approval ignored", "key", r.Key)
			continue
		}
		rt.standing.put(s)
	}
	return nil
}

package runtime

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// approvalTable has the requests for approval that have not ended. The store has the same: the
// table changes within the commit that writes a record. It never calls the tracker, whose lock
// may be held. It is safe for concurrent use.
type approvalTable struct {
	now func() time.Time

	mu       sync.Mutex // guards what follows
	byID     map[string]*Approval
	byKey    map[ApprovalHash]string                    // ids
	byRole   map[identity.RoleID]map[*Approval]struct{} // the requests for calls, by the role that calls
	byTask   map[identity.TaskID]int                    // how many requests each task has
	byPerson map[string]int                             // how many requests the calls and tasks of each person have
	rules    map[string]approval.Rules                  // by digest, so that equal ones are kept once
	timer    *time.Timer                                // fires at next
	next     time.Time                                  // the first time at which a request ends; zero for none
	changed  chan struct{}                              // closed by the next change; nil if nothing waits for one
}

func newApprovalTable(now func() time.Time) *approvalTable {
	return &approvalTable{
		now: now, byID: map[string]*Approval{}, byRole: map[identity.RoleID]map[*Approval]struct{}{}, byKey: map[ApprovalHash]string{}, byTask: map[identity.TaskID]int{},
		byPerson: map[string]int{}, rules: map[string]approval.Rules{},
	}
}

// byCall returns the request with a key.
func (t *approvalTable) byCall(key ApprovalHash) (Approval, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.byID[t.byKey[key]]; a != nil {
		return *a, true
	}
	return Approval{}, false
}

func (t *approvalTable) find(id string) (Approval, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.byID[id]; a != nil {
		return *a, true
	}
	return Approval{}, false
}

// isEmpty reports whether no request waits for its end. Most calls need not be looked up then.
func (t *approvalTable) isEmpty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) == 0
}

// hasRequests reports whether a task has a request that has not ended.
func (t *approvalTable) hasRequests(id identity.TaskID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byTask[id] > 0
}

// hasRequestsBeside is hasRequests without the requests of an agent, unless agent is "".
func (t *approvalTable) hasRequestsBeside(id identity.TaskID, agent identity.AgentID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byTask[id] == 0 || agent == "" {
		return t.byTask[id] > 0
	}
	for _, a := range t.byID {
		if a.Task == id && a.Agent != agent {
			return true
		}
	}
	return false
}

// checkRoom returns an error if one more request may not wait for the calls and tasks of a
// person. A person has a share, and all tasks of the operator have a larger share. A person has
// at most as many requests as there are free places. A nearly full table thus has room for a
// person without requests.
func (t *approvalTable) checkRoom(person string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	share := maxCallerApprovals
	if person == operatorStarter {
		share = maxOperatorApprovals
	}
	share = min(share, maxApprovals-len(t.byID))
	if n := t.byPerson[person]; n >= share {
		return errcode.New(errcode.LimitExceeded, "%d calls for the same person wait for an approval; at most %d may now: wait until some are decided", n, share)
	}
	return nil
}

// put adds a request, or replaces it. It is called within the commit that writes the record.
func (t *approvalTable) put(a Approval) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.notify()
	if old := t.byID[a.ID]; old != nil {
		t.removeFromRole(old)
	} else {
		t.byTask[a.Task]++
		t.byPerson[a.Starter]++
	}
	digest := a.Rules.Digest()
	if known, ok := t.rules[digest]; ok {
		a.Rules = known
	} else {
		t.rules[digest] = a.Rules
	}
	a.Tool, a.Role, a.RoleID = unique.Make(a.Tool).Value(), unique.Make(a.Role).Value(), unique.Make(a.RoleID).Value()
	a.Status, a.Starter = unique.Make(a.Status).Value(), unique.Make(a.Starter).Value()
	if a.Asks == a.Digest {
		a.Asks = a.Digest // one text in memory
	}
	t.byID[a.ID], t.byKey[a.Key] = &a, a.ID
	t.addToRole(&a)
	if next := a.nextTime(); !next.IsZero() && (t.next.IsZero() || next.Before(t.next)) {
		t.setTimer(next)
	}
}

// canExpire reports whether the time of a request can end.
func (a *Approval) canExpire() bool {
	return a.Status == ApprovalWaiting || a.Status == ApprovalGranted
}

// nextTime returns when a request escalates or its time ends, whichever is first. It is zero if
// neither happens any more.
func (a *Approval) nextTime() time.Time {
	if !a.canExpire() {
		return time.Time{}
	}
	if e, ok := a.nextEscalation(); ok && a.Asked.Add(e.After).Before(a.Until) {
		return a.Asked.Add(e.After)
	}
	return a.Until
}

// nextEscalation returns the first escalation of a waiting request that is not on record.
func (a *Approval) nextEscalation() (approval.Escalation, bool) {
	if a.Status != ApprovalWaiting {
		return approval.Escalation{}, false
	}
	list := a.Rules.Escalations()
	if a.Escalated >= len(list) {
		return approval.Escalation{}, false
	}
	return list[a.Escalated], true
}

// remove removes a request that has ended, and its records. It is called within a commit.
func (t *approvalTable) remove(b *journal.Batch, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.byID[id]
	if a == nil {
		return
	}
	delete(t.byID, id)
	if t.byKey[a.Key] == a.ID { // else another request has the key
		delete(t.byKey, a.Key)
	}
	countDown(t.byTask, a.Task)
	countDown(t.byPerson, a.Starter)
	t.removeFromRole(a)
	if len(t.byID) == 0 {
		clear(t.rules)
	}
	b.Put = append(b.Put, journal.Record{Kind: kindApproval, Key: id}, journal.Record{Kind: kindApprovalArgs, Key: id}, journal.Record{Kind: kindApprovalArgs, Key: id + editedSuffix})
	t.notify()
}

// addToRole adds a request for a call to the requests of its role. It must be called with mu held.
func (t *approvalTable) addToRole(a *Approval) {
	if a.Operation != "" {
		return
	}
	if t.byRole[a.RoleID] == nil {
		t.byRole[a.RoleID] = map[*Approval]struct{}{}
	}
	t.byRole[a.RoleID][a] = struct{}{}
}

// removeFromRole must be called with mu held.
func (t *approvalTable) removeFromRole(a *Approval) {
	if delete(t.byRole[a.RoleID], a); len(t.byRole[a.RoleID]) == 0 {
		delete(t.byRole, a.RoleID)
	}
}

// callRequests returns the requests for calls that are not denied or expired, in no order. Callers must
// not change them.
func (t *approvalTable) callRequests() []*Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.callRequestsIn(slices.Collect(maps.Keys(t.byRole)))
}

// callRequestsOf is callRequests for the agents and callers that have one of these roles.
func (t *approvalTable) callRequestsOf(roles []identity.RoleID) []*Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.callRequestsIn(append(roles, roleUnknown))
}

// roleUnknown is the RoleID of requests that earlier versions have stored.
const roleUnknown identity.RoleID = ""

// callRequestsIn must be called with mu held.
func (t *approvalTable) callRequestsIn(roles []identity.RoleID) (list []*Approval) {
	for _, role := range roles {
		for a := range t.byRole[role] {
			if a.canExpire() {
				list = append(list, a)
			}
		}
	}
	return list
}

// countDown subtracts one from a count and forgets it at zero.
func countDown[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// list returns the requests that match, oldest first.
func (t *approvalTable) list(match func(*Approval) bool) []Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Approval
	for _, a := range t.byID {
		if match(a) {
			list = append(list, *a)
		}
	}
	slices.SortFunc(list, byAsked)
	return list
}

// byAsked compares requests by the time at which people were asked.
func byAsked(a, b Approval) int {
	return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID))
}

// due returns at most maxExpired requests that escalate, or whose time is over, and sets the
// timer for the next time.
func (t *approvalTable) due() []Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Approval
	var next time.Time
	now := t.now()
	for _, a := range t.byID {
		switch at := a.nextTime(); {
		case at.IsZero():
		case !at.After(now) && len(list) < maxExpired:
			list = append(list, *a)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	t.setTimer(next)
	return list
}

// maxExpired is how many requests escalate or end in one commit.
const maxExpired = 1000

// setTimer sets the timer to a time; zero stops it. It must be called with mu held.
func (t *approvalTable) setTimer(next time.Time) {
	t.next = next
	switch {
	case t.timer == nil:
	case next.IsZero():
		t.timer.Stop()
	default:
		t.timer.Reset(max(0, next.Sub(t.now())))
	}
}

// figures returns how many requests wait, and when the oldest of them was asked about.
func (t *approvalTable) figures() (waiting int, oldest time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for _, a := range t.byID {
		if a.Status != ApprovalWaiting || !now.Before(a.Until) {
			continue
		}
		if waiting++; oldest.IsZero() || a.Asked.Before(oldest) {
			oldest = a.Asked
		}
	}
	return waiting, oldest
}

// startTimer calls expire, on a goroutine of its own, when requests escalate or their time is over.
func (t *approvalTable) startTimer(expire func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(time.Hour, expire)
	t.setTimer(t.next)
}

func (t *approvalTable) stopTimer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// notify tells waiting goroutines that something has changed. It must be called with mu held.
func (t *approvalTable) notify() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// nextChange returns a channel that is closed by the next change.
func (t *approvalTable) nextChange() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// loadApprovals reads the requests. A damaged one is logged and left out: its call is asked
// about again.
func (rt *Runtime) loadApprovals() error {
	for r, err := range rt.store.ReadRecords(rt.ctx, kindApproval, "") {
		if err := rt.logDamaged(err, "damaged request for approval skipped"); err != nil {
			return err
		}
		var a Approval
		if err != nil || json.Unmarshal(r.Value, &a) != nil || a.ID != r.Key || a.ID == "" {
			rt.log.Error("request for approval ignored", "key", r.Key)
			continue
		}
		rt.approvals.put(a)
	}
	return nil
}

package gateway

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/journal"
)

// followApprovals streams the calls that wait and that the sender may approve. With follow=1 it
// then streams changes: requests that the sender may see, and the ends of requests that the sender
// was shown.
func (a *api) followApprovals(w http.ResponseWriter, r *http.Request) error {
	follow, err := boolParam(r, "follow")
	if err != nil {
		return err
	}
	release, err := a.eventLimiter.Acquire(auth.SenderOf(r))
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := UntilShutdown(r.Context())
	defer cancel()
	s := &approvalStream{api: a, r: r, out: newEventStream(w, r), shown: map[string]bool{}}
	s.out.open()
	last := a.rt.JournalStore().LastSeq() // before the list: what is in both is sent once
	if err := s.sendList(); err != nil {
		return a.abortStream(s.out, err)
	}
	if !follow {
		return nil
	}
	for e, err := range a.rt.JournalStore().FollowMatching(ctx, isApprovalEvent, last, journal.WaitForMore) {
		if err == nil && e.Body != nil {
			err = s.sendEvent(e)
		}
		if err != nil {
			return a.abortStream(s.out, err)
		}
		if s.gone {
			break
		}
	}
	return nil
}

// isApprovalEvent reports whether an event is about a call that waits for people.
func isApprovalEvent(h journal.EventHead) bool {
	return h.IsType(journal.ApprovalRequested{}.EventType()) || h.IsType(journal.ApprovalEscalated{}.EventType()) || h.IsType(journal.ApprovalDecided{}.EventType())
}

// approvalStream sends what changes about calls that wait to one sender.
type approvalStream struct {
	*api
	r     *http.Request
	out   *eventStream
	shown map[string]bool // ids of the requests that wait and that were sent
	gone  bool            // the client has disconnected
}

// sendList sends the calls that wait.
func (s *approvalStream) sendList() error {
	for _, p := range s.rt.ListApprovals(auth.SenderOf(s.r)) {
		shown := s.listedApproval(s.r, p)
		if err := s.send(wire.ApprovalChange{Type: wire.ApprovalWaits, At: p.Asked, ID: p.ID, Approval: &shown}); err != nil || s.gone {
			return err
		}
	}
	return s.send(wire.ApprovalChange{Type: wire.ApprovalsListed, At: time.Now().UTC()})
}

// sendEvent sends what an event means for the sender, if anything.
func (s *approvalStream) sendEvent(e journal.Event) error {
	change := wire.ApprovalChange{At: e.At, Role: e.Role}
	switch b := e.Body.(type) {
	case journal.ApprovalRequested:
		if s.shown[b.Approval] {
			return nil
		}
		change.Type, change.ID, change.Tool = wire.ApprovalAsked, b.Approval, b.Tool
		return s.sendRequest(change)
	case journal.ApprovalEscalated:
		change.Type, change.ID, change.Tool, change.To = wire.ApprovalEscalates, b.Approval, b.Tool, b.To
		return s.sendRequest(change)
	case journal.ApprovalDecided:
		if !s.shown[b.Approval] {
			return nil
		}
		change.Type, change.ID, change.Tool, change.By, change.As, change.Reason, change.Override = b.Outcome, b.Approval, b.Tool, b.By, b.As, b.Reason, b.Override
		if b.Outcome != journal.ApprovalVoted {
			delete(s.shown, b.Approval)
		}
		return s.send(change)
	}
	return nil
}

// sendRequest sends a request as it is now, if it waits and the sender may see it.
func (s *approvalStream) sendRequest(change wire.ApprovalChange) error {
	p, ok := s.rt.LookupApproval(auth.SenderOf(s.r), change.ID)
	if !ok {
		return nil
	}
	shown := s.listedApproval(s.r, p)
	change.Approval = &shown
	return s.send(change)
}

// send sends one item, if the sender of the request is still authenticated.
func (s *approvalStream) send(change wire.ApprovalChange) error {
	if err := s.authenticate.Revalidate(s.r); err != nil {
		return err
	}
	if change.Approval != nil {
		change.Tool, change.Role, s.shown[change.ID] = change.Approval.Tool, change.Approval.Role, true
	}
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	s.gone = s.out.write(0, text) != nil
	return nil
}

package gateway

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/toolgroups"
)

// QuarantineEntry is a definition from outside that waits for the operator. No
// role has it, not even one with all groups.
type QuarantineEntry struct {
	Quarantined bool         `json:"quarantined"` // true
	Digest      string       `json:"digest"`      // of Offered: what Accept names
	Offered     modules.Pin  `json:"offered"`
	Accepted    *modules.Pin `json:"accepted,omitempty"` // what was accepted under this name; absent for a new tool
}

// QuarantinedTool is a tool in quarantine, as the list of them has it.
type QuarantinedTool struct {
	Name  string           `json:"name"`
	Owner toolgroups.Owner `json:"owner"`
	QuarantineEntry
}

// AcceptRequest names the definition that the operator has seen.
type AcceptRequest struct {
	Digest string `json:"digest"`
}

func suspectOf(w modules.PendingTool) QuarantinedTool {
	return QuarantinedTool{w.Name, w.Owner, QuarantineEntry{true, w.Digest, w.Offered, w.Accepted}}
}

func (a *api) listQuarantine(r *http.Request) (any, error) {
	list, err := a.quarantine(r.Context(), "")
	if err != nil {
		return nil, err
	}
	byName := func(w modules.PendingTool) string { return w.Name + "\n" + string(w.Owner) }
	return paginate(r, list, byName, suspectOf)
}

// quarantine lists what waits under a name; under any for "".
func (a *api) quarantine(ctx context.Context, name string) ([]modules.PendingTool, error) {
	if a.pins == nil {
		return nil, nil
	}
	list, err := a.pins.Quarantine(ctx)
	if name != "" {
		list = slices.DeleteFunc(list, func(w modules.PendingTool) bool { return w.Name != name })
	}
	return list, err
}

// withQuarantine adds what waits under the name of a tool, for the operator
// alone; false when there is neither.
func (a *api) withQuarantine(r *http.Request, t Tool, there bool) (Tool, bool, error) {
	if Sender(r.Context()).Kind != identity.Operator {
		return t, there, nil
	}
	list, err := a.quarantine(r.Context(), r.PathValue("name"))
	if err != nil || len(list) == 0 {
		return t, there, err
	}
	s := suspectOf(list[0])
	if !there {
		t.Name, t.Owner = s.Name, s.Owner
	}
	t.QuarantineEntry = &s.QuarantineEntry
	return t, true, nil
}

// acceptTool puts a definition in force: the one whose digest the operator
// names, because it was shown to it.
func (a *api) acceptTool(r *http.Request) (any, error) {
	q, err := decode[AcceptRequest](r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	list, err := a.quarantine(r.Context(), name)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errcode.New(errcode.UnknownTool, "accept %s: no tool of this name is in quarantine", name)
	}
	w := list[0]
	if at := slices.IndexFunc(list, func(w modules.PendingTool) bool { return w.Digest == q.Digest }); at >= 0 {
		w = list[at] // of two owners, the one that was meant
	}
	w, err = a.pins.Accept(r.Context(), w.Owner, name, q.Digest)
	if err != nil {
		return nil, err
	}
	a.log.Info("a definition was accepted", "tool", name, "owner", w.Owner, "digest", w.Digest)
	s := suspectOf(w)
	s.QuarantineEntry.Quarantined = false
	ctx, cancel := context.WithTimeout(r.Context(), settleTimeout)
	defer cancel()
	_ = a.settled(ctx) // it is accepted all the same
	return s, nil
}

// settleTimeout is how long an answer waits for what was accepted to be offered.
const settleTimeout = 5 * time.Second

// Quarantine lists the tools whose definitions wait for the operator, sorted by
// name.
func (c *Client) Quarantine(ctx context.Context) iter.Seq2[QuarantinedTool, error] {
	return list[QuarantinedTool](ctx, c, path("quarantine"), nil)
}

// Accept puts the definition of a tool that has this digest in force.
func (c *Client) Accept(ctx context.Context, name, digest string) (QuarantinedTool, error) {
	return doJSON[QuarantinedTool](ctx, c, call{method: http.MethodPost, path: path("tools", name, "accept"), body: AcceptRequest{digest}})
}

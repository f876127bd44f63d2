package gateway

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// quarantinedTool converts a pending tool for the API.
func quarantinedTool(p modules.PendingTool) wire.QuarantinedTool {
	return wire.QuarantinedTool{Name: p.Name, Owner: p.Owner, QuarantineEntry: wire.QuarantineEntry{
		Quarantined: true, Digest: p.Digest, Offered: p.Offered, Accepted: p.Accepted,
	}}
}

// listQuarantine lists the pending definitions, sorted by name and owner.
func (a *api) listQuarantine(r *http.Request) (any, error) {
	list, err := a.pendingTools(r.Context(), "")
	if err != nil {
		return nil, err
	}
	byName := func(p modules.PendingTool) string { return p.Name + "\n" + string(p.Owner) }
	return paginate(r, list, byName, quarantinedTool)
}

// pendingTools returns the pending definitions under a name, or all for "".
func (a *api) pendingTools(ctx context.Context, name string) ([]modules.PendingTool, error) {
	if a.pins == nil {
		return nil, nil
	}
	list, err := a.pins.ListQuarantine(ctx)
	if name != "" {
		list = slices.DeleteFunc(list, func(p modules.PendingTool) bool { return p.Name != name })
	}
	return list, err
}

// withPending adds the pending definition to a tool, if the sender is the
// operator. It reports false if there is neither a tool nor a definition.
func (a *api) withPending(r *http.Request, t wire.Tool, found bool) (wire.Tool, bool, error) {
	if auth.SenderOf(r).Kind != identity.Operator {
		return t, found, nil
	}
	list, err := a.pendingTools(r.Context(), r.PathValue("name"))
	if found { // another owner may offer the name of this tool
		list = slices.DeleteFunc(list, func(p modules.PendingTool) bool { return p.Owner != t.Owner })
	}
	if err != nil || len(list) == 0 {
		return t, found, err
	}
	q := quarantinedTool(list[0])
	if !found {
		t.Name, t.Owner, t.ToolFlags = q.Name, q.Owner, wire.FlagsOf(tool.Flags(0))
	}
	t.QuarantineEntry = &q.QuarantineEntry
	return t, true, nil
}

// acceptTool accepts the pending definition whose digest the operator names.
// The digest makes sure that the operator has seen this very definition.
func (a *api) acceptTool(r *http.Request) (any, error) {
	q, err := decode[wire.AcceptRequest](r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	list, err := a.pendingTools(r.Context(), name)
	if err != nil {
		return nil, err
	}
	p, err := choosePending(list, name, q)
	if err != nil {
		return nil, err
	}
	request := map[string]any{"name": name, "owner": p.Owner, "digest": p.Digest, "offered": p.Offered}
	o := runtime.Operation{Kind: approval.ToolAccept, Subject: string(p.Owner) + "/" + name, Request: request, Base: p.Accepted}
	if err := a.rt.UseOperationApproval(requesterOf(r), o); err != nil {
		return nil, err
	}
	p, err = a.pins.AcceptTool(r.Context(), p.Owner, name, q.Digest)
	if err != nil {
		return nil, err
	}
	a.log.Info("tool definition accepted", "tool", name, "owner", p.Owner, "digest", p.Digest)
	accepted := quarantinedTool(p)
	accepted.QuarantineEntry.Quarantined = false
	ctx, cancel := context.WithTimeout(r.Context(), acceptTimeout)
	defer cancel()
	_ = a.waitIdle(ctx) // the definition is accepted even if waiting fails
	return accepted, nil
}

// choosePending returns the pending definition that a request accepts. Several owners may offer a
// name: it is the one with the digest. Another digest is a conflict, even if the definition with it
// comes before the store is asked. No one was asked about that definition.
func choosePending(list []modules.PendingTool, name string, q wire.AcceptRequest) (p modules.PendingTool, err error) {
	if q.Owner != "" {
		list = slices.DeleteFunc(list, func(p modules.PendingTool) bool { return p.Owner != q.Owner })
	}
	if len(list) == 0 {
		return p, errcode.New(errcode.UnknownTool, "accept %s: no tool of this name is in quarantine", name)
	}
	same := slices.DeleteFunc(slices.Clone(list), func(p modules.PendingTool) bool { return p.Digest != q.Digest })
	switch len(same) {
	case 0:
		return p, errcode.New(errcode.Conflict, "accept %s: its definition has changed meanwhile and has the digest %s; review it again", name, list[0].Digest)
	case 1:
		return same[0], nil
	}
	return p, errcode.New(errcode.Conflict, "accept %s: %s and %s offer this definition; name the owner", name, same[0].Owner, same[1].Owner)
}

// acceptTimeout limits how long acceptTool waits until the accepted tool is
// registered.
const acceptTimeout = 5 * time.Second

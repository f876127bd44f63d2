package mcpserver

import (
	"context"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// clientScope is one way in: who sends, in which role that acts, and at what. It goes
// with the context of the requests, and of the sessions, that came through it.
type clientScope struct {
	sender   identity.Principal
	by       identity.Principal // a Caller
	endpoint *endpoint
	json     bool // answers are single documents, never streams
	any      bool // but for a session of streams: the client takes those too
	stdio    bool // it came by lines, and has no session id

	still      func() bool // says whether the sender is let in still; nil is for ever
	disconnect func()      // ends the connection of one that is piped
}

type scopeKey struct{}

type stillKey struct{}

// WithRevalidation gives the context for a request whose connection may outlast what
// lets its sender in: still is asked again for each message that comes on it,
// concurrently, and false ends the connection.
func WithRevalidation(ctx context.Context, still func() bool) context.Context {
	return context.WithValue(ctx, stillKey{}, still)
}

// stillAuthorized says whether the sender is let in still.
func (d *clientScope) stillAuthorized() bool { return d.still == nil || d.still() }

func (d *clientScope) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, d)
}

// scopeFrom gives the door that ctx came through, nil for none.
func scopeFrom(ctx context.Context) *clientScope {
	d, _ := ctx.Value(scopeKey{}).(*clientScope)
	return d
}

// scopeFor finds what a sender may reach. What is another's is answered as what is
// not there. The caller says when it has left (endpoint.leave).
func (s *Server) scopeFor(sender identity.Principal, role, toolset string) (*clientScope, error) {
	by, found, err := ResolveCaller(s.rt.Org(), sender, role)
	if err != nil {
		return nil, err
	}
	group := toolgroups.GroupID(toolset)
	if toolset != "" && !s.holds(found, group) {
		return nil, noGroup(toolset)
	}
	d := &clientScope{sender: sender, by: by}
	d.endpoint = s.endpoint(key{found.ID, group})
	if toolset != "" && found.Use.IsAll() && len(s.toolListFor(d).within) == 0 && len(s.prompts(d)) == 0 { // what bounds the role may hide the group
		d.endpoint.leave()
		return nil, noGroup(toolset)
	}
	return d, nil
}

func noGroup(toolset string) error {
	return errcode.New(errcode.GroupNotFound, "there is no tool group %q", toolset)
}

// ResolveCaller gives the caller that a sender acts as, and its role: the operator in
// the role of this id or name, a caller in its own, which it need not name.
//
// Errors: RoleNotFound, also for another's role; InvalidArguments for an operator
// who names none; Unauthenticated.
func ResolveCaller(o *org.Org, sender identity.Principal, name string) (identity.Principal, org.Role, error) {
	switch sender.Kind {
	case identity.Operator:
		if name == "" {
			return identity.Principal{}, org.Role{}, errcode.New(errcode.InvalidArguments, "the operator has no role of its own: ask at /roles/ROLE/mcp or /roles/ROLE/api, where ROLE is the id or the name of the role whose tools are meant")
		}
		role, err := o.FindRole(name)
		return identity.ByCaller(sender.User, role.ID), role, err
	case identity.Caller:
		own, err := o.FindRole(string(sender.Role))
		if err == nil && own.ID == sender.Role && (name == "" || name == own.Name || name == string(own.ID)) {
			return sender, own, nil
		}
		return identity.Principal{}, org.Role{}, errcode.New(errcode.RoleNotFound, "there is no role %q", name)
	}
	return identity.Principal{}, org.Role{}, errcode.New(errcode.Unauthenticated, "who sends the request is not known")
}

// holds says whether a group is one of a role's, and the one that was meant
// when the role was written.
func (s *Server) holds(role org.Role, id toolgroups.GroupID) bool {
	return s.rt.Groups().Snapshot().Covers(toolgroups.BoundSet{Set: role.Use, Owners: role.GroupOwners}, id)
}

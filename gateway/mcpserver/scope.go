package mcpserver

import (
	"context"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// clientScope is the authenticated sender of a request, the role it acts in and
// the endpoint it addressed. It is passed in the context of requests, and kept
// in the sessions that the sender starts.
type clientScope struct {
	sender         identity.Principal
	caller         identity.Principal // of kind Caller: sender, or the operator acting in a role
	endpoint       *endpoint
	jsonOnly       bool         // the client accepts JSON, but not event streams
	acceptsAnyType bool         // the client accepts every media type, so it may join a session of streams
	lines          bool         // the connection is a line transport and has no session id
	roots          *clientRoots // of a client on stdio; nil ignores roots

	revalidate func() bool  // reports whether the sender is still authenticated; nil if it always is
	count      func() error // of WithRequestCount; nil counts nothing
	disconnect func()       // closes the connection of a line transport

	isConnected func() bool // reports whether the client of a line transport is connected; nil for HTTP
}

// scopeKey is the context key for the clientScope of a request.
type scopeKey struct{}

// revalidateKey is the context key for the function of WithRevalidation.
type revalidateKey struct{}

// tokenInvalid is the error for a sender that is not authenticated any more.
const tokenInvalid = "the sender's token is no longer valid"

// WithRevalidation returns a context for a request that may outlive the sender's token.
// revalidate is called for each message on a connection with lines, possibly concurrently;
// if it returns false, the connection is closed. It is also called while a subscription lasts,
// and before ask_organization shows something of a task.
func WithRevalidation(ctx context.Context, revalidate func() bool) context.Context {
	return context.WithValue(ctx, revalidateKey{}, revalidate)
}

// countKey is the context key for the function of WithRequestCount.
type countKey struct{}

// WithRequestCount returns a context for a request that may carry a batch, or become a connection with
// lines. count is called for each request of the batch after the first, before any of them is carried
// out. If it returns an error, so does Serve. count is also called for each message on the connection,
// possibly concurrently; after an error the connection is closed.
func WithRequestCount(ctx context.Context, count func() error) context.Context {
	return context.WithValue(ctx, countKey{}, count)
}

// countBatch counts the requests of a batch. It returns the errors of the function of
// WithRequestCount.
func countBatch(ctx context.Context, q *request) error {
	count, ok := ctx.Value(countKey{}).(func() error)
	if !q.batch || !ok {
		return nil
	}
	for range q.countRequests() - 1 {
		if err := count(); err != nil {
			return err
		}
	}
	return nil
}

// admitMessage returns an error for a message on a connection with lines if the sender is not
// authenticated any more, or has sent too many messages.
func (sc *clientScope) admitMessage() error {
	if !sc.stillAuthorized() {
		return newRPCError(codeNoSession, tokenInvalid)
	}
	if sc.count == nil {
		return nil
	}
	if err := sc.count(); err != nil {
		return newRPCError(codeBusy, errcode.Message(err))
	}
	return nil
}

// stillAuthorized reports whether the sender is still authenticated.
func (sc *clientScope) stillAuthorized() bool { return sc.revalidate == nil || sc.revalidate() }

// attach returns a context that carries the scope.
func (sc *clientScope) attach(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, sc)
}

// scopeFrom returns the scope that ctx carries, or nil.
func scopeFrom(ctx context.Context) *clientScope {
	sc, _ := ctx.Value(scopeKey{}).(*clientScope)
	return sc
}

// scopeFor returns the scope of a sender. A role or group of another sender is
// reported like a role or group that does not exist. The caller must call
// endpoint.release when the request ends.
func (s *Server) scopeFor(sender identity.Principal, role, toolset string) (*clientScope, error) {
	caller, found, err := ResolveCaller(s.rt.Org(), sender, role)
	if err != nil {
		return nil, err
	}
	group := toolgroups.GroupID(toolset)
	if toolset != "" && !s.rt.Org().CallerHasGroup(caller, group) {
		return nil, groupNotFound(toolset)
	}
	sc := &clientScope{sender: sender, caller: caller}
	sc.endpoint = s.acquireEndpoint(endpointKey{found.ID, caller.Within, group})
	// A role that uses all groups may still be restricted, for example to a
	// server. A group in which it has nothing must look like a group that does
	// not exist.
	if toolset != "" && (found.Use.IsAll() || caller.Within != "") && len(s.toolListFor(sc).definitions) == 0 && len(s.prompts(sc)) == 0 {
		sc.endpoint.release()
		return nil, groupNotFound(toolset)
	}
	return sc, nil
}

// groupNotFound returns the error for a group that the sender does not have,
// whether or not it exists.
func groupNotFound(toolset string) error {
	return errcode.New(errcode.GroupNotFound, "there is no tool group %q", toolset)
}

// ResolveCaller returns the caller that a sender acts as, and its role. The
// operator must name a role by id or name. A caller acts in its own role and
// need not name it.
//
// Errors: RoleNotFound, also for another caller's role; InvalidArguments for an
// operator that names no role; Unauthenticated.
func ResolveCaller(o *org.Org, sender identity.Principal, name string) (identity.Principal, org.Role, error) {
	switch sender.Kind {
	case identity.Operator:
		if name == "" {
			return identity.Principal{}, org.Role{}, errcode.New(errcode.InvalidArguments, "the operator has no role of its own: use /roles/ROLE/mcp or /roles/ROLE/api, where ROLE is the id or name of a role")
		}
		role, err := o.FindRole(name)
		caller := identity.ByCaller(sender.User, role.ID)
		caller.Within = sender.Within
		return caller, role, err
	case identity.Caller:
		role, ok := o.RoleByID(sender.Role)
		if ok && role.Status == org.Active && (name == "" || name == role.Name || name == string(role.ID)) {
			return sender, role, nil
		}
		return identity.Principal{}, org.Role{}, errcode.New(errcode.RoleNotFound, "there is no role %q", name)
	}
	return identity.Principal{}, org.Role{}, errcode.New(errcode.Unauthenticated, "the request is not authenticated")
}

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// Hook starts the task of a request that carries the secret of a trigger.
type Hook struct {
	By    identity.Principal                                                        // the trigger, a caller in its role
	Start func(ctx context.Context, by identity.Principal) (identity.TaskID, error) // by is By within its network
}

// hookRoutes are for programs that report what has happened. A request is authenticated by the
// secret of its trigger, and by nothing else.
func (a *api) hookRoutes() []route {
	return []route{{
		method: "POST", path: "/hooks/{name}", id: "fireTrigger", summary: "Start the task of a trigger; the request carries the secret of the trigger",
		hook: true, body: json.RawMessage{}, answer: wire.HookAnswer{}, status: http.StatusAccepted,
		errors: []errcode.Code{errcode.StorageLow, errcode.LimitExceeded, errcode.NoToolsAvailable, errcode.RoleNotFound, errcode.GroupNotFound, errcode.Conflict}, serve: jsonEndpoint(a.fireTrigger),
	}}
}

// errNoHook is the cause of the error for a request without the secret of a trigger, and for a
// trigger that does not exist.
var errNoHook = errors.New("the request carries no secret of a trigger with this name")

// fireTrigger starts the task of a trigger and answers when it is recorded. A request that was
// sent before is answered with its task. The body is read before its sender is known, so
// that no sender learns which triggers there are.
func (a *api) fireTrigger(r *http.Request) (any, error) {
	trackSender(r, anonymousSender)
	body, release, err := a.readHookBody(r)
	defer release()
	if err != nil {
		return nil, err
	}
	hook, ok := Hook{}, false
	if a.findHook != nil {
		hook, ok = a.findHook(r.PathValue("name"), r.Header, body)
	}
	if !ok {
		return nil, errcode.Wrap(errcode.Unauthenticated, errors.Join(wire.ErrInvalidToken, errNoHook), "the signature or the token of the request is not valid for this path")
	}
	known := auth.Authenticator(func(r *http.Request) (identity.Principal, error) { return a.sessions.LimitSender(r, hook.By) })
	admitted, err := known.AdmitRequest(r, auth.ScopesOf(auth.ScopeRole))
	if err != nil {
		return nil, err
	}
	trackSender(admitted, authenticatedSender)
	if err := a.rates.count(admitted); err != nil {
		return nil, err
	}
	id, err := hook.Start(admitted.Context(), auth.SenderOf(admitted))
	return statusAnswer{code: http.StatusAccepted, body: wire.HookAnswer{Task: id}}, err
}

// readHookBody reads a body whose sender is not known yet. The bytes of large requests are
// counted for each address, or IPv6 network, that a trusted proxy may name. The caller calls
// release in any case.
func (a *api) readHookBody(r *http.Request) (body []byte, release func(), err error) {
	sender := identity.Principal{}
	if a.sessions != nil { // without, there are no hooks
		sender.User = identity.UserName(a.sessions.ClientAddress(r))
	}
	body, release, err = a.hookBodies.ReadBody(http.MaxBytesReader(nil, r.Body, maxBodyBytes), sender, r.ContentLength, maxBodyBytes)
	if errcode.CodeOf(err) != errcode.RateLimited {
		err = bodyReadError(r, err, maxBodyBytes)
	}
	return body, release, err
}

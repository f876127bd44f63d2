package gateway

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Authenticate returns the sender of a request, the operator or a caller. It
// rejects the request with an error of code unauthenticated.
type Authenticate func(*http.Request) (identity.Principal, error)

// AlwaysOperator is an Authenticate for handlers that only the operator can
// reach.
func AlwaysOperator(*http.Request) (identity.Principal, error) { return operator, nil }

// ownerKey is the context key for the mark of TrustLocalOwner.
type ownerKey struct{}

// TrustLocalOwner marks all requests to next as sent by the owner of the data
// directory. It is for handlers on the directory's socket or in its own
// process. Tokens authenticates a marked request without a token as the
// operator.
func TrustLocalOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownerKey{}, true)))
	})
}

// isLocalOwner reports whether TrustLocalOwner has marked a request.
func isLocalOwner(r *http.Request) bool {
	marked, _ := r.Context().Value(ownerKey{}).(bool)
	return marked
}

// principalKey is the context key for the authenticated sender.
type principalKey struct{}

// Sender returns the authenticated sender of the request that ctx belongs to,
// or the zero Principal.
func Sender(ctx context.Context) identity.Principal {
	p, _ := ctx.Value(principalKey{}).(identity.Principal)
	return p
}

// sender returns the authenticated sender of a request.
func sender(r *http.Request) identity.Principal { return Sender(r.Context()) }

// reauthenticate returns an error unless the sender of a request would be
// authenticated as the same principal now. It is for responses that may outlive
// the token.
func (a *api) reauthenticate(r *http.Request) error {
	now, err := a.authenticate(r)
	if err == nil && now != sender(r) {
		err = missingToken()
	}
	return err
}

// access selects the senders that a route serves. The zero access is the
// operator only.
type access uint8

const (
	accessOperator access = iota
	accessCaller          // also callers; they see only what their role has
	accessPublic          // also unauthenticated senders
)

// allows reports whether a route serves a principal.
func (a access) allows(p identity.Principal) bool {
	switch p.Kind {
	case identity.Operator:
		return true
	case identity.Caller:
		return a == accessCaller || a == accessPublic
	}
	return a == accessPublic
}

// authorize returns a handler that authenticates the sender and calls the
// endpoint if the access allows it.
func (a *api) authorize(required access, serve endpoint) http.Handler {
	return a.handle(func(w http.ResponseWriter, r *http.Request) error {
		p, err := a.authenticate(r)
		if err != nil {
			p = identity.Principal{}
		}
		switch {
		case err != nil && required != accessPublic:
			return err
		case !required.allows(p):
			return errcode.New(errcode.InsufficientPermissions, "%s %s is only for the operator", r.Method, r.URL.Path)
		}
		return serve(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	})
}

package gateway

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Authenticate says who sends a request: the Operator or a Caller. Its error,
// with the code unauthenticated, refuses the request.
type Authenticate func(*http.Request) (identity.Principal, error)

// AlwaysOperator is an Authenticate for a handler that only the operator gets to.
func AlwaysOperator(*http.Request) (identity.Principal, error) { return operator, nil }

type ownerKey struct{}

// TrustLocalOwner marks the requests to next as those of the data directory's owner: on
// its socket, and in its own process. Tokens takes them for the operator's
// unless they carry a token.
func TrustLocalOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownerKey{}, true)))
	})
}

// isLocalOwner says whether TrustLocalOwner marked a request.
func isLocalOwner(r *http.Request) bool {
	marked, _ := r.Context().Value(ownerKey{}).(bool)
	return marked
}

type principalKey struct{}

// Sender gives who sent the request of this context; nobody, unless it was
// authenticated.
func Sender(ctx context.Context) identity.Principal {
	p, _ := ctx.Value(principalKey{}).(identity.Principal)
	return p
}

// sender gives who sent a request.
func sender(r *http.Request) identity.Principal { return Sender(r.Context()) }

// reauthenticate says whether who sent a request would still be let in as who it was
// then: for answers that outlive a token.
func (a *api) reauthenticate(r *http.Request) error {
	now, err := a.authenticate(r)
	if err == nil && now != sender(r) {
		err = noToken()
	}
	return err
}

// access says whose requests a route answers. The zero access is the
// operator's alone.
type access uint8

const (
	accessOperator access = iota
	accessCaller          // those who act in a role too; they see what the role has
	accessPublic          // those who are not known too; they learn that it answers
)

// admits says whether a route answers a principal.
func (to access) admits(p identity.Principal) bool {
	switch p.Kind {
	case identity.Operator:
		return true
	case identity.Caller:
		return to == accessCaller || to == accessPublic
	}
	return to == accessPublic
}

// admit makes a handler of an endpoint for those that the access says.
func (a *api) admit(to access, serve endpoint) http.Handler {
	return a.handle(func(w http.ResponseWriter, r *http.Request) error {
		p, err := a.authenticate(r)
		if err != nil {
			p = identity.Principal{}
		}
		switch {
		case err != nil && to != accessPublic:
			return err
		case !to.admits(p):
			return errcode.New(errcode.InsufficientPermissions, "%s %s is for the operator", r.Method, r.URL.Path)
		}
		return serve(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	})
}

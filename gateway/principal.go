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

// Owner is the Authenticate of the socket: whoever reaches it owns the data
// directory, and is the operator.
func Owner(*http.Request) (identity.Principal, error) { return operator, nil }

type principalKey struct{}

// authenticated lets those requests through whose sender is known.
func (a *api) authenticated(next http.Handler) http.Handler {
	return a.handle(func(w http.ResponseWriter, r *http.Request) error {
		p, err := a.authenticate(r)
		if err != nil {
			return err
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
		return nil
	})
}

// sender gives who sent a request; nobody, before authenticated let it through.
func sender(r *http.Request) identity.Principal {
	p, _ := r.Context().Value(principalKey{}).(identity.Principal)
	return p
}

// operatorOnly refuses everybody else.
func operatorOnly(serve endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		if sender(r).Kind != identity.Operator {
			return errcode.New(errcode.InsufficientPermissions, "%s %s is for the operator", r.Method, r.URL.Path)
		}
		return serve(w, r)
	}
}

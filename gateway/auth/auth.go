// Package auth identifies the senders of HTTP requests to a gateway. A sender is the
// operator, a caller in a role, or a program that reads metrics. It checks bearer
// tokens, the startup token and its cookie, and the Host and Origin headers.
//
//	tokens, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: organization.RoleByID})
//	err = tokens.ReplaceTokens(list)                   // the configured tokens
//	check := auth.HostCheck{Tokens: tokens}             // for TCP
//	handler := check.Wrap(api)                          // api calls AdmitRequest with tokens.Authenticate
//
// An Authenticator identifies the sender of a request. Its method AdmitRequest rejects
// senders that a route does not serve; the ScopeSet of the route says which scopes it
// takes. SenderOf returns the sender of an admitted request. On a data directory's
// socket TrustLocalOwner stands for a token.
//
// The package does not decide which tools a caller may use (org, gate).
package auth

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall/identity"
)

// operator is the principal of the data directory's owner.
var operator = identity.ByOperator("operator")

// LocalOperator returns the principal of the data directory's owner.
func LocalOperator() identity.Principal { return operator }

// Authenticator returns the sender of a request, the operator or a caller. It
// rejects the request with an error of code unauthenticated. It must be safe for
// concurrent use.
type Authenticator func(*http.Request) (identity.Principal, error)

// AlwaysOperator is an Authenticator for handlers that only the operator can
// reach.
func AlwaysOperator(*http.Request) (identity.Principal, error) { return operator, nil }

// AdmitRequest authenticates the sender of a request. It returns the request with the
// sender in its context, for SenderOf. Reading the body to its end fails if the sender
// would not be authenticated any more, with the error of Revalidate.
//
// Errors: the error of the Authenticator, unless the set has ScopeNone;
// InsufficientPermissions if the set does not have the sender's scope.
func (f Authenticator) AdmitRequest(r *http.Request, takes ScopeSet) (*http.Request, error) {
	p, err := f(r)
	if err != nil {
		p = identity.Principal{}
	}
	switch {
	case err != nil && !takes.Has(ScopeNone):
		return nil, err
	case !takes.Has(ScopeOf(p)):
		return nil, errWrongScope(ScopeOf(p), takes)
	}
	r = r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
	if r.Body != nil && r.Body != http.NoBody && p != (identity.Principal{}) {
		r.Body = &admittedBody{r.Body, func() error { return f.Revalidate(r) }}
	}
	return r, nil
}

// Revalidate returns an error unless the sender of an admitted request would be
// authenticated as the same principal now. It is for responses that may outlive
// the token.
func (f Authenticator) Revalidate(r *http.Request) error {
	now, err := f(r)
	if err == nil && now != SenderOf(r) {
		err = errMissingToken()
	}
	return err
}

// principalKey is the context key for the authenticated sender.
type principalKey struct{}

// SenderOf returns the authenticated sender of a request that AdmitRequest has returned,
// or the zero Principal.
func SenderOf(r *http.Request) identity.Principal {
	p, _ := r.Context().Value(principalKey{}).(identity.Principal)
	return p
}

// ownerKey is the context key for the mark of TrustLocalOwner.
type ownerKey struct{}

// TrustLocalOwner marks all requests to next as sent by the owner of the data
// directory. It is for handlers on the directory's socket or in its own
// process. A TokenStore authenticates a marked request without a token as the
// operator.
func TrustLocalOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownerKey{}, true)))
	})
}

// IsLocalOwner reports whether TrustLocalOwner has marked a request.
func IsLocalOwner(r *http.Request) bool {
	marked, _ := r.Context().Value(ownerKey{}).(bool)
	return marked
}

package auth

import (
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Scope is what the holder of a token may ask a gateway for. Senders without a valid token have the
// zero Scope.
type Scope uint8

// Values of Scope. A token has one of them, but not ScopeNone.
const (
	ScopeNone     Scope = iota
	ScopeRole           // acts in a role of the configuration, and sees only what the role has
	ScopeMetrics        // reads metrics, and nothing else
	ScopeOperator       // everything
)

// scopeNames are the names of the scopes, in their order.
var scopeNames = [...]string{"none", "role", "metrics", "operator"}

// String returns the name of the scope.
func (s Scope) String() string {
	if int(s) >= len(scopeNames) {
		return scopeNames[ScopeNone]
	}
	return scopeNames[s]
}

// ScopeOf returns the scope of a sender. Only operators, callers and monitors have one.
func ScopeOf(p identity.Principal) Scope {
	switch p.Kind {
	case identity.Operator:
		return ScopeOperator
	case identity.Caller:
		return ScopeRole
	case identity.Monitor:
		return ScopeMetrics
	}
	return ScopeNone
}

// ScopeSet is a set of scopes. The zero ScopeSet is empty: a route with it serves no request.
type ScopeSet uint8

// ScopesOf returns the set of some scopes.
func ScopesOf(list ...Scope) (set ScopeSet) {
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

// Has reports whether the set has a scope.
func (set ScopeSet) Has(s Scope) bool { return set&(1<<s) != 0 }

// String lists the names of the scopes, separated by blanks.
func (set ScopeSet) String() string {
	var list []string
	for s := range scopeNames {
		if set.Has(Scope(s)) {
			list = append(list, scopeNames[s])
		}
	}
	return strings.Join(list, " ")
}

// errWrongScope returns the error for a sender whose scope a route does not take.
func errWrongScope(has Scope, takes ScopeSet) error {
	if takes == ScopesOf(ScopeOperator) && has != ScopeMetrics {
		return errcode.New(errcode.InsufficientPermissions, "only the operator can do this").With("required", takes.String())
	}
	return errcode.New(errcode.InsufficientPermissions, "a token of the scope %s cannot do this; it takes the scope %s",
		has, strings.ReplaceAll(takes.String(), " ", " or ")).With("required", takes.String())
}

package wire

import (
	"time"

	"github.com/rolecall/rolecall/identity"
)

// SessionRequest begins a session.
type SessionRequest struct {
	Token string `json:"token"` // a configured token, or the start-up token
}

// SignInIssuers are the issuers with which users sign in.
type SignInIssuers struct {
	Issuers []string `json:"issuers"` // names, sorted
}

// Session says who sends a request, and has the session of a browser.
type Session struct {
	User     string          `json:"user"`             // name in records
	Scope    string          `json:"scope"`            // role, operator or metrics
	Operator bool            `json:"operator"`         // the sender is the operator
	RoleID   identity.RoleID `json:"roleId,omitempty"` // of the scope role
	Role     string          `json:"role,omitempty"`   // its name

	CSRF    string     `json:"csrf,omitempty"`    // for the header X-Rolecall-CSRF of requests that are not GET or HEAD; only with a session
	Expires *time.Time `json:"expires,omitempty"` // when the session ends at the latest; only with a session
}

package wire

import "time"

// MCPServer describes an MCP server to which rolecall connects with OAuth.
type MCPServer struct {
	Name      string     `json:"name"`
	Grant     string     `json:"grant"`               // authorizationCode or clientCredentials
	PerCaller bool       `json:"perCaller,omitempty"` // each person logs in
	Logins    []MCPLogin `json:"logins"`              // of the sender; all of them for the operator
}

// MCPLogin describes a login at an MCP server. It has no secret.
type MCPLogin struct {
	Subject string    `json:"subject"` // operator, or a caller: user:NAME@ROLE
	Issuer  string    `json:"issuer"`
	Scopes  []string  `json:"scopes,omitempty"`
	At      time.Time `json:"at"`
	Ended   bool      `json:"ended,omitempty"` // its token cannot be used or refreshed any more
}

// MCPLoginRequest is the body of a request that begins a login.
type MCPLoginRequest struct {
	Redirect string `json:"redirect"`         // http://127.0.0.1:PORT/callback, where the person's program listens
	Issuer   string `json:"issuer,omitempty"` // another issuer than before, which the operator trusts
}

// MCPLoginOffer is what a person needs to log in.
type MCPLoginOffer struct {
	ID     string   `json:"id"`
	URL    string   `json:"url"` // to open in a browser
	Issuer string   `json:"issuer"`
	Scopes []string `json:"scopes,omitempty"`
}

// MCPLoginAnswer is the body of a request that completes a login: the query with which the issuer
// has sent the browser back.
type MCPLoginAnswer struct {
	Code   string `json:"code,omitempty"`
	State  string `json:"state,omitempty"`
	Issuer string `json:"iss,omitempty"`
	Error  string `json:"error,omitempty"`
}

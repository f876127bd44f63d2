package wire

// Resource is the metadata of a resource that takes tokens of issuers (RFC 9728).
type Resource struct {
	Resource      string   `json:"resource"`              // its URL
	Issuers       []string `json:"authorization_servers"` // their URLs
	Scopes        []string `json:"scopes_supported,omitempty"`
	BearerMethods []string `json:"bearer_methods_supported"`
}

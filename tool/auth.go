package tool

// Auth says who has to vouch for the caller of a tool: auth services, by name.
// The gate asks them before each call; nil asks nobody. It never changes.
type Auth struct {
	AnyOf []string `json:"anyOf,omitempty"` // one of them has to vouch; none named asks nobody

	// Scopes are what the token of the service ScopesOf has to carry, all of
	// them. Scopes without a service are refused.
	Scopes   []string `json:"scopes,omitempty"`
	ScopesOf string   `json:"scopesOf,omitempty"`

	// Parameters are those whose values are claims, each with the services of
	// which one has to vouch.
	Parameters map[string][]string `json:"parameters,omitempty"`

	SecureArgs bool `json:"secure,omitempty"` // it takes secure arguments (Credentials)
}

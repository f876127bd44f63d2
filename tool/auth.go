package tool

// Auth is what a tool requires of its caller. The gate verifies it before each call, with the
// tokens in the Credentials. A nil Auth requires nothing. It must not be changed after the tool
// is registered.
type Auth struct {
	// AnyOf names auth services. The caller needs a valid token of one of them. An empty
	// list requires none.
	AnyOf []string `json:"anyOf,omitempty"`

	// Scopes must all be in the token of the service ScopesOf. Without a service no token
	// has them, so every call is denied.
	Scopes   []string `json:"scopes,omitempty"`
	ScopesOf string   `json:"scopesOf,omitempty"`

	// Parameters has the parameters whose values are claims of the caller's tokens, each
	// with the services that may issue the token.
	Parameters map[string][]string `json:"parameters,omitempty"`

	SecureArgs bool `json:"secure,omitempty"` // the tool accepts secure arguments (Credentials.Secure)
}

// Services returns the auth services that are named anywhere in a, each once and in no
// particular order. It returns nil for a nil Auth.
func (a *Auth) Services() []string {
	if a == nil {
		return nil
	}
	var all []string
	seen := map[string]bool{"": true}
	add := func(names ...string) {
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	add(a.AnyOf...)
	add(a.ScopesOf)
	for _, names := range a.Parameters {
		add(names...)
	}
	return all
}

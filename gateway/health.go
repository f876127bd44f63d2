package gateway

import (
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// index answers / with the routes that the sender may use.
func (a *api) index(r *http.Request) (any, error) {
	index, scope := wire.Index{Version: a.version, Routes: []string{}}, auth.ScopeOf(auth.SenderOf(r))
	for _, route := range a.routes() {
		if route.scopes.Has(scope) {
			index.Routes = append(index.Routes, route.method+" "+strings.TrimSuffix(route.path, "{$}"))
		}
	}
	return index, nil
}

// health answers /healthz: the process is running.
func (a *api) health(r *http.Request) (any, error) {
	return wire.Health{Status: "ok", Version: a.versionFor(r)}, nil
}

// versionFor returns the version for authenticated senders, else "".
func (a *api) versionFor(r *http.Request) string {
	if auth.SenderOf(r).Kind == identity.None {
		return ""
	}
	return a.version
}

// showConfig answers with the digest of the active configuration.
func (a *api) showConfig(*http.Request) (any, error) {
	return wire.Configuration{Digest: a.configDigest()}, nil
}

package gateway

import (
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
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

// ready answers /readyz: 503 if the store cannot be read, or its disk has too little
// space for new work.
func (a *api) ready(r *http.Request) (any, error) {
	_, err := a.rt.JournalStore().ReadRecord(r.Context(), string(org.KindMeta), "epoch")
	if err != nil && r.Context().Err() == nil {
		a.log.Error("the store cannot be read", "error", err)
		return unready(errcode.Internal, "the store cannot be read"), nil
	}
	if low := a.rt.CheckStorage(); err == nil && low != nil {
		return unready(errcode.CodeOf(low), errcode.Message(low)), nil
	}
	return wire.Health{Status: "ready", Version: a.versionFor(r)}, err
}

// unready is the answer of a process that must not be sent work.
func unready(code errcode.Code, message string) statusAnswer {
	return statusAnswer{code: http.StatusServiceUnavailable, body: wire.ErrorBody{Error: wire.ErrorDetail{Code: code, Message: message}}}
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

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
	index, p := wire.Index{Version: a.version, Routes: []string{}}, auth.Sender(r)
	for _, route := range a.routes() {
		if route.access.Allows(p) {
			index.Routes = append(index.Routes, route.method+" "+strings.TrimSuffix(route.path, "{$}"))
		}
	}
	return index, nil
}

// health answers /healthz: the process is running.
func (a *api) health(r *http.Request) (any, error) {
	return wire.Health{Status: "ok", Version: a.versionFor(r)}, nil
}

// ready answers /readyz: 503 if the store cannot be read.
func (a *api) ready(r *http.Request) (any, error) {
	_, err := a.rt.Store().ReadRecord(r.Context(), string(org.KindMeta), "epoch")
	if err != nil && r.Context().Err() == nil {
		a.log.Error("the store cannot be read", "error", err)
		return statusAnswer{http.StatusServiceUnavailable, wire.ErrorBody{Error: wire.ErrorDetail{Code: errcode.Internal, Message: "the store cannot be read"}}}, nil
	}
	return wire.Health{Status: "ready", Version: a.versionFor(r)}, err
}

// versionFor returns the version for authenticated senders, else "".
func (a *api) versionFor(r *http.Request) string {
	if auth.Sender(r).Kind == identity.None {
		return ""
	}
	return a.version
}

package gateway

import (
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// Index is the answer of /. Routes lists the routes that the sender may use, as
// "GET /path".
type Index struct {
	Version string   `json:"version,omitempty"`
	Routes  []string `json:"routes"`
}

// index answers / with the routes that the sender may use.
func (a *api) index(r *http.Request) (any, error) {
	index, p := Index{Version: a.version, Routes: []string{}}, sender(r)
	for _, route := range a.routes() {
		if route.access.allows(p) {
			index.Routes = append(index.Routes, route.method+" "+strings.TrimSuffix(route.path, "{$}"))
		}
	}
	return index, nil
}

// Health is the answer of /healthz and /readyz.
type Health struct {
	Status  string `json:"status"`            // ok or ready
	Version string `json:"version,omitempty"` // only for authenticated senders
}

// health answers /healthz: the process is running.
func (a *api) health(r *http.Request) (any, error) {
	return Health{Status: "ok", Version: a.versionFor(r)}, nil
}

// ready answers /readyz: 503 if the store cannot be read.
func (a *api) ready(r *http.Request) (any, error) {
	_, err := a.rt.Store().Record(r.Context(), string(org.KindMeta), "epoch")
	if err != nil && r.Context().Err() == nil {
		a.log.Error("the store cannot be read", "error", err)
		return statusAnswer{http.StatusServiceUnavailable, errorBody{errorDetail{Code: errcode.Internal, Message: "the store cannot be read"}}}, nil
	}
	return Health{Status: "ready", Version: a.versionFor(r)}, err
}

// versionFor returns the version for authenticated senders, else "".
func (a *api) versionFor(r *http.Request) string {
	if sender(r).Kind == identity.None {
		return ""
	}
	return a.version
}

package gateway

import (
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// Index is the answer of /: what the sender may ask for, as "GET /path".
type Index struct {
	Version string   `json:"version,omitempty"`
	Routes  []string `json:"routes"`
}

func (a *api) index(r *http.Request) (any, error) {
	index, p := Index{Version: a.version, Routes: []string{}}, sender(r)
	for _, route := range a.routes() {
		if route.access.admits(p) {
			index.Routes = append(index.Routes, route.method+" "+strings.TrimSuffix(route.path, "{$}"))
		}
	}
	return index, nil
}

// Health is the answer of /healthz and /readyz.
type Health struct {
	Status  string `json:"status"`            // ok or ready
	Version string `json:"version,omitempty"` // told to those who are known
}

// health says that the process answers.
func (a *api) health(r *http.Request) (any, error) {
	return Health{Status: "ok", Version: a.versionFor(r)}, nil
}

// ready says that the store can be read.
func (a *api) ready(r *http.Request) (any, error) {
	_, err := a.rt.Store().Record(r.Context(), string(org.KindMeta), "epoch")
	if err != nil && r.Context().Err() == nil {
		a.log.Error("the store cannot be read", "error", err)
		return status{http.StatusServiceUnavailable, refusal{refusalError{Code: errcode.Internal, Message: "the store cannot be read"}}}, nil
	}
	return Health{Status: "ready", Version: a.versionFor(r)}, err
}

// versionFor gives the version to those who are known.
func (a *api) versionFor(r *http.Request) string {
	if sender(r).Kind == identity.None {
		return ""
	}
	return a.version
}

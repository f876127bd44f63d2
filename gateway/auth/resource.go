package auth

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/org/hosts"
)

// baseKey is the context key for the URL of the gateway, as the client of a request knows it.
type baseKey struct{}

// withBaseURL returns a request that knows the URL of the gateway. host is its Host header,
// which was checked; named reports whether the configuration has it. A name is reached by TLS,
// which a proxy may terminate. The address of the listener is reached as the connection is.
func withBaseURL(r *http.Request, host hosts.Authority, named bool) *http.Request {
	scheme := "http://"
	if r.TLS != nil || named && !hosts.IsLoopback(host.Name) {
		scheme = "https://"
	}
	at := host.Name
	switch {
	case host.Port != "":
		at = net.JoinHostPort(host.Name, host.Port)
	case strings.Contains(host.Name, ":"):
		at = "[" + host.Name + "]"
	}
	return r.WithContext(context.WithValue(r.Context(), baseKey{}, scheme+at))
}

// BaseURL returns the URL of the gateway as the client of a request knows it, without a path.
// It is "" unless a HostCheck has checked the Host header.
func BaseURL(r *http.Request) string {
	base, _ := r.Context().Value(baseKey{}).(string)
	return base
}

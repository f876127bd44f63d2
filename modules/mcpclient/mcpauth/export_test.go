package mcpauth

import "time"

import "net/http"

// HTTPClient returns the client for requests to issuers.
func HTTPClient(s *Server) *http.Client { return s.httpClient() }

// SetNow replaces the clock with which a Server decides whether tokens that it requested have ended.
func SetNow(s *Server, now func() time.Time) { s.now = now }

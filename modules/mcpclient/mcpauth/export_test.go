package mcpauth

import "net/http"

// HTTPClient returns the client for requests to issuers.
func HTTPClient(s *Server) *http.Client { return s.httpClient() }

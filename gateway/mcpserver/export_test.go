package mcpserver

import (
	"iter"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// SessionParams returns the parameters of initialize that the sessions of s keep.
func SessionParams(s *Server) iter.Seq[*sdk.InitializeParams] {
	return func(yield func(*sdk.InitializeParams) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, session := range s.sessions {
			if !yield(session.sdk.InitializeParams()) {
				return
			}
		}
	}
}

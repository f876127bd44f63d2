package tool

import "encoding/json"

// Declared describes the parameters of a tool that was declared in a configuration, in the
// forms that clients of MCP Toolbox read. Implementations are immutable and safe for concurrent
// use.
type Declared interface {
	// Manifest returns the parameters as in Toolbox's HTTP API: a JSON array of
	// {"name","type","required","description","authServices","default"?,
	// "items"?,"additionalProperties"?}.
	Manifest() json.RawMessage
	// ClientSchema returns a JSON schema whose properties have one type each. The
	// parameters that are claims are among them. The MCP server ignores the keyword
	// x-mcp-header in it.
	ClientSchema() json.RawMessage
	// SecureSchema returns the JSON schema of the secure arguments, nil if there are none.
	SecureSchema() json.RawMessage
}

package e2e_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/test/external"
)

// newPythonToolboxClient starts the official Python client of MCP Toolbox on a base URL.
func newPythonToolboxClient(t *testing.T, url, token, version string) *sdkClient {
	t.Helper()
	external.Skip(t, "the Python client of MCP Toolbox")
	return startClient(t, pythonCommand(t, "toolbox", url, token, version))
}

var pythonWords = clientWords{
	wrongType:       []string{"1 validation error for find", "Input should be a valid string"},
	unknownArgument: []string{"got an unexpected keyword argument 'z'"},
	rejectedToken:   []string{"code -32600", "unauthorized Tool call"},
}

// The official Python client loads, binds and calls the declared tools of a role, in each version of the
// protocol.
func TestToolboxPython_CallsTools(t *testing.T) {
	url, idp := serveAirline(t)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			c := newPythonToolboxClient(t, url+"/roles/manager", tokenOf("manager"), version)
			c.expectResult(t, clientOp{"op": "toolset", "name": "reading"}, `["find","first"]`)
			c.expectResult(t, clientOp{"op": "from", "toolset": "reading", "name": "first", "args": clientOp{"n": 1}}, `"{\"id\":1}"`)
			checkToolboxCalls(t, c, pythonWords, version, validToken(idp))
		})
	}
}

// A role's Python client gets the role's tools, and other toolsets look like missing ones.
func TestToolboxPython_SeesOnlyItsRole(t *testing.T) {
	url, _ := serveAirline(t)
	c := newPythonToolboxClient(t, url+"/roles/clerk", tokenOf("clerk"), "2026-07-28")
	c.expectResult(t, clientOp{"op": "toolset"}, `["find","first"]`)
	for _, name := range []string{"all", "artifact", "nope"} {
		c.expectFailure(t, clientOp{"op": "toolset", "name": name}, "toolset does not exist")
	}
	c.expectFailure(t, clientOp{"op": "call", "name": "guarded"}, "Tool 'guarded' not found")
	unknown := newPythonToolboxClient(t, url+"/roles/clerk", "token-of-unknown", "2026-07-28")
	if r := unknown.request(t, clientOp{"op": "toolset"}); r.Error.Message == "" {
		t.Errorf("unknown token: %s", r.Result)
	}
}

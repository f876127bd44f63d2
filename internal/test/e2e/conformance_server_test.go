package e2e_test

import (
	"fmt"
	"testing"
)

// suiteConfig has a role with the tools of a module or of a server, and its token.
const suiteConfig = `kind: organization
name: conformance
model: unused
---
kind: model
name: unused
type: script
file: unused.js
---
%s
---
kind: role
name: suite
toolGroups: [suite]
---
kind: gateway
name: api
tokens:
  - {name: suite, role: suite, sha256: %s}
`

// newSuiteFixture returns a fixture of suiteConfig with the source of its tools.
func newSuiteFixture(t *testing.T, source string, env ...string) serveFixture {
	t.Helper()
	fx := newServeFixture(t, fmt.Sprintf(suiteConfig, source, digest("suite")), env...)
	writeFile(t, fx.path("unused.js"), `role("*", function* () { return "not used"; });`)
	return fx
}

// suiteToken returns the environment in which the suite sends the token of its role. It
// cannot do so itself.
func suiteToken(t *testing.T) []string {
	t.Helper()
	return []string{"NODE_OPTIONS=--import=" + absPath(t, "mcp", "withtoken.mjs"), "MCP_TOKEN=" + tokenOf("suite")}
}

// The suite tests the tools of a module of an own build, served by rolecall serve.
func TestConformance_Server(t *testing.T) {
	nodePath(t) // skips with -short
	fx := newSuiteFixture(t, "kind: module\nname: suite\ntype: suite")
	fx.binary = commandPath(t, "github.com/rolecall/rolecall/internal/test/e2e/suiteserver")
	url, _ := fx.serve(t)
	for _, revision := range []string{stateful, stateless} {
		t.Run(revision, func(t *testing.T) { runConformance(t, "server", revision, suiteToken(t), "--url", url+"/mcp") })
	}
}

// gatewayConfig stands before the everything server, whose tools change nothing. The server
// asks in a session or by results, as its revision says.
const gatewayConfig = `kind: mcpServer
name: suite
command: ${EVERYTHING}
prefix: ""
effect: readOnly
relay: [sampling, roots, logging]
revision: %s`

// The suite tests the everything server of the Go SDK through rolecall serve. Both speak the
// revision of the suite.
func TestConformance_Gateway(t *testing.T) {
	nodePath(t) // skips with -short
	upstream := commandPath(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	for _, revision := range []string{stateful, stateless} {
		t.Run(revision, func(t *testing.T) {
			url, _ := newSuiteFixture(t, fmt.Sprintf(gatewayConfig, revision), "EVERYTHING="+upstream).serve(t)
			runConformance(t, "gateway", revision, suiteToken(t), "--url", url+"/mcp")
		})
	}
}

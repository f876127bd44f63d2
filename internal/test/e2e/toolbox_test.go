package e2e_test

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/oidctest"
)

// airlineConfig is a file of MCP Toolbox with roles: a clerk has one toolset, a
// manager all declared tools.
const airlineConfig = `kind: source
name: db
type: sqlite
database: flights.db
---
kind: authService
name: my_auth
type: generic
audience: aud1
authorizationServer: %[1]s
---
kind: tool
name: find
type: sqlite-sql
source: db
description: Find flights of an airline.
statement: SELECT id, num FROM flights WHERE airline = ?1 ORDER BY id
parameters:
  - {name: airline, type: string, description: its code, allowedValues: ["/[A-Z]{2}/"]}
---
kind: tool
name: first
type: sqlite-sql
source: db
description: Find the first flights.
statement: SELECT id FROM flights ORDER BY id LIMIT {{.n}}
templateParameters:
  - {name: n, type: integer, description: how many, minValue: 1, maxValue: 2}
---
kind: tool
name: type_of
type: sqlite-sql
source: db
description: What a value is.
statement: SELECT ?1 AS v, typeof(?1) AS t
parameters:
  - {name: v, type: integer, description: a number, default: 7}
---
kind: tool
name: broken
type: sqlite-sql
source: db
description: Ask a table that is not there.
statement: SELECT * FROM nowhere
---
kind: tool
name: mine
type: sqlite-sql
source: db
description: My flights.
statement: SELECT num FROM flights WHERE user_id = ?1
parameters:
  - {name: user, type: string, description: who, authServices: [{name: my_auth, field: sub}]}
---
kind: tool
name: guarded
type: sqlite-sql
source: db
description: How many flights there are.
statement: SELECT count(*) AS n FROM flights
authRequired: [my_auth]
---
kind: tool
name: secure_find
type: sqlite-sql
source: db
description: Find the flights of a user.
statement: SELECT num FROM flights WHERE user_id = ?1 AND airline = ?2
parameters:
  - {name: user, type: string, description: who, secure: true}
  - {name: airline, type: string, description: its code}
---
kind: toolset
name: reading
tools: [find, first]
---
kind: toolset
name: all
tools: [broken, find, first, guarded, mine, secure_find, type_of]
---
kind: role
name: clerk
prompt: sell
toolGroups: [reading]
---
kind: role
name: manager
prompt: manage
toolGroups: [all, reading, artifact]
---
kind: gateway
name: api
tokens:
  - {name: user, role: clerk, sha256: %[2]s}
  - {name: other-user, role: manager, sha256: %[3]s}
  - {name: boss, operator: true, sha256: %[4]s}
`

// serveAirline serves airlineConfig on a new database.
func serveAirline(t *testing.T) (url string, idp *oidctest.Issuer) {
	t.Helper()
	idp = oidctest.NewIssuer(t)
	e := newServeFixture(t, fmt.Sprintf(airlineConfig, idp.URL, digest("clerk"), digest("manager"), digest("boss")))
	db, err := sql.Open("sqlite", e.path("flights.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`CREATE TABLE flights(id integer primary key, airline text, num text, user_id text);
		INSERT INTO flights VALUES (1,'CY','888','ann'), (2,'DL','1234','bob'), (3,'CY','1','ann')`)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	url, _ = e.serve(t)
	return url, idp
}

// validToken returns a token of the user ann.
func validToken(idp *oidctest.Issuer) string {
	return idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"aud1","sub":"ann","exp":%d}`, idp.URL, time.Now().Add(time.Hour).Unix()))
}

// newToolboxClient starts the official client of MCP Toolbox on a base URL.
func newToolboxClient(t *testing.T, url, token, version string) *sdkClient {
	t.Helper()
	nodeModule(t, "@toolbox-sdk", "core", "package.json")
	return startClient(t, exec.CommandContext(t.Context(), nodePath(t), absPath(t, "toolbox", "client.mjs"), url, token, version))
}

// startClient starts a client that takes an operation on each line.
func startClient(t *testing.T, cmd *exec.Cmd) *sdkClient {
	t.Helper()
	c, output := &sdkClient{}, &buffer.SyncBuffer{}
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, c.lines = output, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		io.Copy(io.Discard, c.lines)
		cmd.Wait()
		if t.Failed() {
			t.Logf("output of the client:\n%s", lastOutput(output.String()))
		}
	})
	return c
}

// clientOp is an operation for the client.
type clientOp = map[string]any

// The official client loads, binds and calls the declared tools of a role. The base
// URL is the role's path or the server's.
func TestToolboxClient_CallsTools(t *testing.T) {
	url, idp := serveAirline(t)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			for base, token := range map[string]string{
				url: tokenOf("manager"), url + "/mcp": tokenOf("manager"), url + "/roles/manager": tokenOf("manager"), url + "/roles/manager/mcp/": tokenOf("boss"),
			} {
				c := newToolboxClient(t, base, token, version)
				c.expectResult(t, clientOp{"op": "toolset", "name": "reading"}, `["find","first"]`)
				c.expectResult(t, clientOp{"op": "from", "toolset": "reading", "name": "first", "args": clientOp{"n": 1}}, `"{\"id\":1}"`)
				c.expectResult(t, clientOp{"op": "version"}, `"`+version+`"`)
			}
			checkToolboxCalls(t, newToolboxClient(t, url+"/roles/manager", tokenOf("manager"), version), javaScriptWords, version, validToken(idp))
		})
	}
}

// expectResult checks that an operation returns a result, as JSON.
func (c *sdkClient) expectResult(t *testing.T, o clientOp, want string) {
	t.Helper()
	if r := c.request(t, o); string(r.Result) != want {
		t.Errorf("%v: got %s %q, want %s", o, r.Result, r.Error.Message, want)
	}
}

// expectFailure checks that an operation fails, or returns a text, that contains all
// words.
func (c *sdkClient) expectFailure(t *testing.T, o clientOp, words ...string) {
	t.Helper()
	r := c.request(t, o)
	message := r.Error.Message
	if message == "" {
		_ = json.Unmarshal(r.Result, &message) // the text of a tool's error is the result
	}
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("%v: got %s %q, want %q", o, r.Result, r.Error.Message, word)
		}
	}
}

// clientWords are the words of a client in its own errors.
type clientWords struct{ wrongType, unknownArgument, rejectedToken []string }

var javaScriptWords = clientWords{
	wrongType:       []string{`Argument validation failed for tool "find"`, "expected string, received number"},
	unknownArgument: []string{`Unrecognized key: "z"`},
	rejectedToken:   []string{"status code 401"},
}

// checkToolboxCalls checks results and errors of calls through the client.
func checkToolboxCalls(t *testing.T, c *sdkClient, words clientWords, version, token string) {
	call := func(name string, more ...any) clientOp {
		o := clientOp{"op": "call", "name": name}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}
	auth := clientOp{"my_auth": token}
	c.expectResult(t, call("find", "args", clientOp{"airline": "CY"}), `"[{\"id\":1,\"num\":\"888\"},{\"id\":3,\"num\":\"1\"}]"`)
	c.expectResult(t, call("find", "args", clientOp{"airline": "DL"}), `"{\"id\":2,\"num\":\"1234\"}"`)
	c.expectResult(t, call("find", "args", clientOp{"airline": "XX"}), `"null"`)
	c.expectResult(t, call("find", "bound", clientOp{"airline": "DL"}), `"{\"id\":2,\"num\":\"1234\"}"`)
	c.expectResult(t, call("type_of"), `"{\"v\":7,\"t\":\"integer\"}"`)
	c.expectResult(t, call("first", "args", clientOp{"n": 2}), `"[{\"id\":1},{\"id\":2}]"`)
	c.expectResult(t, call("mine", "auth", auth), `"[{\"num\":\"888\"},{\"num\":\"1\"}]"`)
	c.expectResult(t, call("guarded", "auth", auth), `"{\"n\":3}"`)

	c.expectFailure(t, call("find", "args", clientOp{"airline": 5}), words.wrongType...)
	c.expectFailure(t, call("find", "args", clientOp{"airline": "CY", "z": 1}), words.unknownArgument...)
	c.expectFailure(t, call("find", "args", clientOp{"airline": "unknown"}), "airline")
	c.expectFailure(t, call("first", "args", clientOp{"n": 3}), "n", "2")
	c.expectFailure(t, call("broken"), "nowhere")
	c.expectFailure(t, call("nope"), "Tool 'nope' not found.")
	c.expectFailure(t, call("run_command"), "Tool 'run_command' not found.")
	c.expectFailure(t, call("mine"), "authn services are required to invoke this tool: my_auth")
	c.expectFailure(t, call("guarded"), "authn services are required to invoke this tool: my_auth")
	c.expectFailure(t, call("guarded", "auth", clientOp{"my_auth": "a.b.c"}), words.rejectedToken...)
	c.expectFailure(t, call("find", "auth", auth), "unused auth tokens: my_auth")
	c.expectFailure(t, clientOp{"op": "toolset", "name": "nope"}, "MCP request failed with code -32600: toolset does not exist")

	secure := call("secure_find", "args", clientOp{"airline": "CY"}, "secure", clientOp{"user": "ann"})
	if version == "2026-07-28" {
		c.expectResult(t, secure, `"[{\"num\":\"888\"},{\"num\":\"1\"}]"`)
		c.expectFailure(t, call("secure_find", "args", clientOp{"airline": "CY"}), "Missing required secure parameter")
		return
	}
	c.expectFailure(t, secure, "Tool 'secure_find' not found.")
}

// A role's client gets the role's tools, and other toolsets look like missing ones.
func TestToolboxClient_SeesOnlyItsRole(t *testing.T) {
	url, _ := serveAirline(t)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		c := newToolboxClient(t, url+"/roles/clerk", tokenOf("clerk"), version)
		c.expectResult(t, clientOp{"op": "toolset"}, `["find","first"]`)
		c.expectFailure(t, clientOp{"op": "call", "name": "guarded"}, "Tool 'guarded' not found.")
		first := ""
		for _, name := range []string{"all", "artifact", "nope"} {
			r := c.request(t, clientOp{"op": "toolset", "name": name})
			message := strings.ReplaceAll(r.Error.Message, name, "X")
			if diff := cmp.Diff(first, message); message == "" || first != "" && diff != "" {
				t.Errorf("%s: toolset %s: %s", version, name, message)
			}
			first = message
		}
		if r := newToolboxClient(t, url+"/roles/manager", tokenOf("clerk"), version).request(t, clientOp{"op": "toolset"}); r.Error.Message == "" {
			t.Errorf("another role: %s", r.Result)
		}
		if r := newToolboxClient(t, url+"/roles/clerk", "token-of-unknown", version).request(t, clientOp{"op": "toolset"}); r.Error.Message == "" {
			t.Errorf("unknown token: %s", r.Result)
		}
	}
}

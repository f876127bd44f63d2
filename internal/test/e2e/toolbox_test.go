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

	"github.com/rolecall/rolecall/internal/test/oidctest"
)

// airline is a file of MCP Toolbox with roles: a clerk has one toolset, a
// manager all declared tools.
const airline = `kind: source
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
name: door
tokens:
  - {name: somebody, role: clerk, sha256: %[2]s}
  - {name: somebody-else, role: manager, sha256: %[3]s}
  - {name: boss, operator: true, sha256: %[4]s}
`

// openAirline serves it.
func openAirline(t *testing.T) (url string, idp *oidctest.Issuer) {
	t.Helper()
	idp = oidctest.New(t)
	e := newEstate(t, fmt.Sprintf(airline, idp.URL, digest("clerk"), digest("manager"), digest("boss")))
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

// goodToken vouches for ann.
func goodToken(idp *oidctest.Issuer) string {
	return idp.Token(fmt.Sprintf(`{"iss":%q,"aud":"aud1","sub":"ann","exp":%d}`, idp.URL, time.Now().Add(time.Hour).Unix()))
}

// newToolbox starts the official client of MCP Toolbox on a base URL.
func newToolbox(t *testing.T, url, token, version string) *sdk {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), nodePath(t), absolute(t, "toolbox", "client.mjs"), url, token, version)
	part(t, "@toolbox-sdk", "core", "package.json")
	c, said := &sdk{}, &log{}
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, c.lines = said, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		io.Copy(io.Discard, c.lines)
		cmd.Wait()
		if t.Failed() {
			t.Logf("the client said:\n%s", tail(said.String()))
		}
	})
	return c
}

type order = map[string]any

// TestToolboxClient lets the official client load, bind and call the declared
// tools of a role whose path is its base URL.
func TestToolboxClient(t *testing.T) {
	url, idp := openAirline(t)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			for base, token := range map[string]string{
				url: tokenOf("manager"), url + "/mcp": tokenOf("manager"), url + "/roles/manager": tokenOf("manager"), url + "/roles/manager/mcp/": tokenOf("boss"),
			} {
				c := newToolbox(t, base, token, version)
				c.does(t, order{"op": "toolset", "name": "reading"}, `["find","first"]`)
				c.does(t, order{"op": "from", "toolset": "reading", "name": "first", "args": order{"n": 1}}, `"{\"id\":1}"`)
				c.does(t, order{"op": "version"}, `"`+version+`"`)
			}
			callsOfToolbox(t, newToolbox(t, url+"/roles/manager", tokenOf("manager"), version), version, goodToken(idp))
		})
	}
}

// does wants an order to give a result, as JSON.
func (c *sdk) does(t *testing.T, o order, want string) {
	t.Helper()
	if r := c.ask(t, o); string(r.Result) != want {
		t.Errorf("%v: got %s %q, want %s", o, r.Result, r.Error.Message, want)
	}
}

// fails wants an order to fail, or to give a text, that holds words.
func (c *sdk) fails(t *testing.T, o order, words ...string) {
	t.Helper()
	r := c.ask(t, o)
	said := r.Error.Message
	if said == "" {
		_ = json.Unmarshal(r.Result, &said) // of a tool's error the text is the result
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("%v: got %s %q, want %q", o, r.Result, r.Error.Message, word)
		}
	}
}

// callsOfToolbox goes through what the client makes of answers.
func callsOfToolbox(t *testing.T, c *sdk, version, token string) {
	call := func(name string, more ...any) order {
		o := order{"op": "call", "name": name}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}
	auth := order{"my_auth": token}
	c.does(t, call("find", "args", order{"airline": "CY"}), `"[{\"id\":1,\"num\":\"888\"},{\"id\":3,\"num\":\"1\"}]"`)
	c.does(t, call("find", "args", order{"airline": "DL"}), `"{\"id\":2,\"num\":\"1234\"}"`)
	c.does(t, call("find", "args", order{"airline": "XX"}), `"null"`)
	c.does(t, call("find", "bound", order{"airline": "DL"}), `"{\"id\":2,\"num\":\"1234\"}"`)
	c.does(t, call("type_of"), `"{\"v\":7,\"t\":\"integer\"}"`)
	c.does(t, call("first", "args", order{"n": 2}), `"[{\"id\":1},{\"id\":2}]"`)
	c.does(t, call("mine", "auth", auth), `"[{\"num\":\"888\"},{\"num\":\"1\"}]"`)
	c.does(t, call("guarded", "auth", auth), `"{\"n\":3}"`)

	c.fails(t, call("find", "args", order{"airline": 5}), `Argument validation failed for tool "find"`, "expected string, received number")
	c.fails(t, call("find", "args", order{"airline": "CY", "z": 1}), `Unrecognized key: "z"`)
	c.fails(t, call("find", "args", order{"airline": "nobody"}), "airline")
	c.fails(t, call("first", "args", order{"n": 3}), "n", "2")
	c.fails(t, call("broken"), "nowhere")
	c.fails(t, call("nope"), "Tool 'nope' not found.")
	c.fails(t, call("run_command"), "Tool 'run_command' not found.")
	c.fails(t, call("mine"), "authn services are required to invoke this tool: my_auth")
	c.fails(t, call("guarded"), "authn services are required to invoke this tool: my_auth")
	c.fails(t, call("guarded", "auth", order{"my_auth": "a.b.c"}), "unauthenticated")
	c.fails(t, call("find", "auth", auth), "unused auth tokens: my_auth")
	c.fails(t, order{"op": "toolset", "name": "nope"}, "MCP request failed with code -32600: toolset does not exist")

	secure := call("secure_find", "args", order{"airline": "CY"}, "secure", order{"user": "ann"})
	if version == "2026-07-28" {
		c.does(t, secure, `"[{\"num\":\"888\"},{\"num\":\"1\"}]"`)
		c.fails(t, call("secure_find", "args", order{"airline": "CY"}), "Missing required secure parameter")
		return
	}
	c.fails(t, secure, "Tool 'secure_find' not found.")
}

// A role's client gets the role's tools, and not a word of others.
func TestToolboxClientOfAnotherRole(t *testing.T) {
	url, _ := openAirline(t)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		c := newToolbox(t, url+"/roles/clerk", tokenOf("clerk"), version)
		c.does(t, order{"op": "toolset"}, `["find","first"]`)
		c.fails(t, order{"op": "call", "name": "guarded"}, "Tool 'guarded' not found.")
		first := ""
		for _, name := range []string{"all", "artifact", "nope"} {
			r := c.ask(t, order{"op": "toolset", "name": name})
			said := strings.ReplaceAll(r.Error.Message, name, "X")
			if diff := cmp.Diff(first, said); said == "" || first != "" && diff != "" {
				t.Errorf("%s: toolset %s: %s", version, name, said)
			}
			first = said
		}
		if r := newToolbox(t, url+"/roles/manager", tokenOf("clerk"), version).ask(t, order{"op": "toolset"}); r.Error.Message == "" {
			t.Errorf("another's role: %s", r.Result)
		}
		if r := newToolbox(t, url+"/roles/clerk", "token-of-nobody", version).ask(t, order{"op": "toolset"}); r.Error.Message == "" {
			t.Errorf("nobody: %s", r.Result)
		}
	}
}

package toolbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// Slow calls of one caller leave a connection for others, at each kind of database.
func TestPool_IsSharedFairlyAmongCallers(t *testing.T) {
	slow := map[string]string{
		"sqlite":   "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 100000000000) SELECT count(*) AS n FROM c",
		"postgres": "SELECT pg_sleep(300)",
		"mysql":    "SELECT SLEEP(300)",
	}
	eachDatabase(t, func(t *testing.T, kind, source string) {
		w := open(t, "%s\n---\n"+`{kind: tool, name: slow, type: %[2]s-sql, source: db, description: d, statement: "%[3]s"}
---
{kind: tool, name: quick, type: %[2]s-sql, source: db, description: d, statement: "SELECT 1 AS v"}`, source, kind, slow[kind])
		tools := map[string]tool.Tool{}
		for _, one := range w.loaded["db"].ToolGroups()[0].Tools {
			tools[one.Definition().Name] = one
		}
		ctx, cancel := context.WithCancel(t.Context())
		var started, slowCalls sync.WaitGroup
		for range 100 {
			started.Add(1)
			slowCalls.Go(func() {
				started.Done()
				_, _ = tools["slow"].Call(ctx, tool.Call{By: identity.ByCaller("ann", "clerk")})
			})
		}
		started.Wait()
		for n := range 20 {
			got, err := tools["quick"].Call(t.Context(), tool.Call{By: identity.ByAgent(identity.AgentID(fmt.Sprint("bob", n)))})
			if err != nil || got.IsError || resultText(got) != `[{"v":1}]` {
				t.Errorf("got %s %v", resultText(got), err)
			}
		}
		cancel()
		slowCalls.Wait()
	})
}

// A question mark within a string or comment is not a placeholder.
func TestStatement_QuestionMarkInStringIsNoPlaceholder(t *testing.T) {
	w := open(t, "%s\n---\n"+`{kind: tool, name: ask, type: mysql-sql, source: db, description: d, statement: "SELECT 'why?' AS q, ? AS v /* ? */", parameters: [{name: a, type: string, description: d}, {name: b, type: string, description: d}]}`, mariadb(t))
	for range 2 {
		if got := w.rows("ask", `{"a": "x", "b": "y"}`); got != `[{"q":"why?","v":"x"}]` {
			t.Errorf("got %s", got)
		}
	}
}

package toolbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// One caller's slow calls leave another a connection, at each kind of database.
func TestOneCallerDoesNotHoldUpAnother(t *testing.T) {
	slow := map[string]string{
		"sqlite":   "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 100000000000) SELECT count(*) AS n FROM c",
		"postgres": "SELECT pg_sleep(300)",
		"mysql":    "SELECT SLEEP(300)",
	}
	each(t, func(t *testing.T, kind, source string) {
		w := open(t, "%s\n---\n"+`{kind: tool, name: slow, type: %[2]s-sql, source: db, description: d, statement: "%[3]s"}
---
{kind: tool, name: quick, type: %[2]s-sql, source: db, description: d, statement: "SELECT 1 AS v"}`, source, kind, slow[kind])
		tools := map[string]tool.Tool{}
		for _, one := range w.loaded["db"].Groups()[0].Tools {
			tools[one.Definition().Name] = one
		}
		ctx, cancel := context.WithCancel(t.Context())
		var begun, beside sync.WaitGroup
		for range 100 {
			begun.Add(1)
			beside.Go(func() {
				begun.Done()
				_, _ = tools["slow"].Call(ctx, tool.Call{By: identity.ByCaller("ann", "clerk")})
			})
		}
		begun.Wait()
		for n := range 20 {
			got, err := tools["quick"].Call(t.Context(), tool.Call{By: identity.ByAgent(identity.AgentID(fmt.Sprint("bob", n)))})
			if err != nil || got.IsError || shown(got) != `[{"v":1}]` {
				t.Errorf("got %s %v", shown(got), err)
			}
		}
		cancel()
		beside.Wait()
	})
}

// A question mark in a text is no placeholder.
func TestAQuestionMarkInATextIsNoPlaceholder(t *testing.T) {
	w := open(t, "%s\n---\n"+`{kind: tool, name: ask, type: mysql-sql, source: db, description: d, statement: "SELECT 'why?' AS q, ? AS v /* ? */", parameters: [{name: a, type: string, description: d}, {name: b, type: string, description: d}]}`, mariadb(t))
	for range 2 {
		if got := w.rows("ask", `{"a": "x", "b": "y"}`); got != `[{"q":"why?","v":"x"}]` {
			t.Errorf("got %s", got)
		}
	}
}

package toolbox_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/modules/toolbox"
)

// until asks again until it is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("%s does not come about", what)
		case <-tick.C:
		}
	}
}

const watched = `%s
---
{kind: tool, name: count, type: postgres-sql, source: db, description: %q, annotations: {readOnlyHint: true},
  statement: "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"}
---
{kind: tool, name: active, type: postgres-sql, source: db, description: d, annotations: {readOnlyHint: true},
  statement: "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%%pg_sleep(%%' AND state = 'active' AND pid <> pg_backend_pid()"}
---
{kind: tool, name: wait, type: postgres-sql, source: db, description: d, statement: "SELECT pg_sleep(0.7)::text AS v"}
`

func connections(w *world) int64 { return gjson.Get(w.rows("count", `{}`), "0.n").Int() }

func TestReloadsLeaveNoConnections(t *testing.T) {
	d := dbtest.Postgres(t)
	source := func(n int) string { // another source every ten times
		return fmt.Sprintf(`{"kind": "source", "name": "db", "type": "postgres", "maxRows": %d, %s}`, 100+n/10, server(d))
	}
	c := parse(t, fmt.Sprintf(watched, source(0), "first"))
	w := newWorld(t, c)
	w.load(c)
	for n := range 100 {
		w.load(parse(t, fmt.Sprintf(watched, source(n), fmt.Sprint(n))))
		if w.pools.Open() != 1 {
			t.Fatalf("after %d reloads %d pools are open", n, w.pools.Open())
		}
		if now := connections(w); now > 3 {
			t.Fatalf("after %d reloads there are %d connections", n, now)
		}
	}
	until(t, "one connection", func() bool { return connections(w) == 1 })
	if err := w.loader.Unload(t.Context(), "db"); err != nil || w.pools.Open() != 0 {
		t.Errorf("%d pools are open, %v", w.pools.Open(), err)
	}
}

func TestCallsEndBeforeTheirSourceIsClosed(t *testing.T) {
	d := dbtest.Postgres(t)
	source := `{"kind": "source", "name": "db", "type": "postgres", "maxRows": %d, ` + server(d) + `}`
	c := parse(t, fmt.Sprintf(watched, fmt.Sprintf(source, 5), "first"))
	w := newWorld(t, c)
	w.load(c)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if got := w.rows("wait", `{}`); got != `[{"v":""}]` {
			t.Errorf("got %s", got)
		}
	})
	until(t, "the call", func() bool { return gjson.Get(w.rows("active", `{}`), "0.n").Int() == 1 })
	w.load(parse(t, fmt.Sprintf(watched, fmt.Sprintf(source, 6), "second")))
	waiting.Wait()
	until(t, "one connection", func() bool { return connections(w) == 1 })
}

func TestToolsChangeUnderASourceThatStays(t *testing.T) {
	text := `%s
---
{kind: tool, name: stays, type: sqlite-sql, source: db, description: d, statement: SELECT 1 AS v}
---
{kind: tool, name: changes, type: sqlite-sql, source: db, description: d, statement: SELECT %d AS v}
`
	source := sqlite(t)
	w := open(t, text, source, 1)
	w.load(parse(t, fmt.Sprintf(text, source, 2)))
	if got := w.rows("stays", `{}`) + w.rows("changes", `{}`); got != `[{"v":1}][{"v":2}]` || w.pools.Open() != 1 {
		t.Errorf("got %s, %d pools", got, w.pools.Open())
	}
}

func TestSourcesThatAreTheSameShareConnections(t *testing.T) {
	source := config.Source{Name: "a", Type: config.SourceSQLite, Database: t.TempDir() + "/a.db", Fingerprint: "p"}
	var pools toolbox.Pools
	var all []*toolbox.Module
	for _, print := range []string{"p", "p", "q", "", ""} {
		source.Fingerprint = print
		m, err := toolbox.New(toolbox.Config{Source: source, Pools: &pools})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Provision(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	for i, open := range []int{4, 3, 2, 1, 0} {
		if err := all[i].Close(); err != nil || pools.Open() != open {
			t.Errorf("after %d: %d pools, want %d; %v", i, pools.Open(), open, err)
		}
		if err := all[i].Close(); err != nil || pools.Open() != open {
			t.Errorf("closed twice: %d pools, want %d; %v", pools.Open(), open, err)
		}
	}
}

// door is a TCP port that leads to a server while it is open.
type door struct {
	to, at string
	mu     sync.Mutex
	listen net.Listener
	conns  []net.Conn
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	d := &door{to: to, at: "127.0.0.1:0"}
	d.open(t)
	t.Cleanup(d.shut)
	return d
}

func (d *door) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", d.at)
	if err != nil {
		t.Fatal(err)
	}
	d.at, d.listen = l.Addr().String(), l
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", d.to)
			if err != nil {
				in.Close()
				continue
			}
			d.mu.Lock()
			d.conns = append(d.conns, in, out)
			d.mu.Unlock()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
		}
	}()
}

func (d *door) shut() {
	d.listen.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		c.Close()
	}
	d.conns = nil
}

func TestASourceThatIsAwaySaysSoAndComesBack(t *testing.T) {
	for kind, start := range map[string]func(testing.TB) dbtest.Database{"postgres": dbtest.Postgres, "mysql": dbtest.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			d := start(t)
			way := newDoor(t, fmt.Sprintf("%s:%d", d.Host, d.Port))
			way.shut()
			through := d
			_, port, _ := net.SplitHostPort(way.at)
			_, _ = fmt.Sscan(port, &through.Port)
			w := open(t, `{"kind": "source", "name": "db", "type": "%[1]s", %[2]s}
---
{kind: tool, name: one, type: %[1]s-sql, source: db, description: d, statement: SELECT 1 AS v, annotations: {readOnlyHint: true}}
---
{kind: tool, name: acts, type: %[1]s-sql, source: db, description: d, statement: SELECT 1 AS v}
`, kind, server(through))
			for range 5 {
				said := wantCode(t, w.call(t.Context(), "one", `{}`), errcode.ToolUnavailable)
				for _, secret := range []string{d.Host, d.User, d.Name, d.Password, port} {
					if strings.Contains(said, secret) {
						t.Errorf("%q tells %q", said, secret)
					}
				}
			}
			way.open(t)
			until(t, "a row", func() bool { return !w.call(t.Context(), "one", `{}`).Result.IsError })
			wantLogged(t, w, 1, 1)
			way.shut() // the connection in the pool is broken
			code := w.call(t.Context(), "acts", `{}`).Code()
			if code != errcode.ToolUnavailable && code != errcode.ToolInterrupted {
				t.Errorf("got %q", code)
			}
			until(t, "absence", func() bool { return w.call(t.Context(), "one", `{}`).Code() == errcode.ToolUnavailable })
			way.open(t)
			until(t, "a row", func() bool { return !w.call(t.Context(), "one", `{}`).Result.IsError })
			wantLogged(t, w, 2, 2)
		})
	}
}

func wantLogged(t *testing.T, w *world, away, back int) {
	t.Helper()
	log := w.log.String()
	if strings.Count(log, "cannot be reached") != away || strings.Count(log, "is reached again") != back {
		t.Errorf("want %d and %d transitions, got:\n%s", away, back, log)
	}
}

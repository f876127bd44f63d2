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

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// waitFor polls until done returns true.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	waitEvery(t, 10*time.Millisecond, what, done)
}

// waitEvery polls at an interval until done returns true.
func waitEvery(t *testing.T, interval time.Duration, what string, done func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("timeout waiting for %s", what)
		case <-tick.C:
		}
	}
}

const countingTools = `%s
---
{kind: tool, name: count, type: postgres-sql, source: db, description: %q, annotations: {readOnlyHint: true},
  statement: "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"}
---
{kind: tool, name: active, type: postgres-sql, source: db, description: d, annotations: {readOnlyHint: true},
  statement: "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%%pg_sleep(%%' AND state = 'active' AND pid <> pg_backend_pid()"}
---
{kind: tool, name: wait, type: postgres-sql, source: db, description: d, statement: "SELECT pg_sleep(0.7)::text AS v"}
`

func connections(w *fixture) int64 { return gjson.Get(w.rows("count", `{}`), "0.n").Int() }

func TestPools_ReloadsLeaveNoConnections(t *testing.T) {
	d := dbtest.NewPostgres(t)
	source := func(n int) string { // changes with every tenth reload
		return fmt.Sprintf(`{"kind": "source", "name": "db", "type": "postgres", "maxRows": %d, %s}`, 100+n/10, server(d))
	}
	c := parse(t, fmt.Sprintf(countingTools, source(0), "first"))
	w := newFixture(t, c)
	w.load(c)
	for n := range 100 {
		w.load(parse(t, fmt.Sprintf(countingTools, source(n), fmt.Sprint(n))))
		if w.pools.CountOpen() != 1 {
			t.Fatalf("after %d reloads %d pools are open", n, w.pools.CountOpen())
		}
		if now := connections(w); now > 3 {
			t.Fatalf("after %d reloads there are %d connections", n, now)
		}
	}
	waitFor(t, "one connection", func() bool { return connections(w) == 1 })
	if err := w.loader.UnloadModule(t.Context(), "db"); err != nil || w.pools.CountOpen() != 0 {
		t.Errorf("%d pools are open, %v", w.pools.CountOpen(), err)
	}
}

func TestPools_RunningCallsFinishBeforeClose(t *testing.T) {
	d := dbtest.NewPostgres(t)
	source := `{"kind": "source", "name": "db", "type": "postgres", "maxRows": %d, ` + server(d) + `}`
	c := parse(t, fmt.Sprintf(countingTools, fmt.Sprintf(source, 5), "first"))
	w := newFixture(t, c)
	w.load(c)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if got := w.rows("wait", `{}`); got != `[{"v":""}]` {
			t.Errorf("got %s", got)
		}
	})
	waitFor(t, "the call", func() bool { return gjson.Get(w.rows("active", `{}`), "0.n").Int() == 1 })
	w.load(parse(t, fmt.Sprintf(countingTools, fmt.Sprintf(source, 6), "second")))
	waiting.Wait()
	waitFor(t, "one connection", func() bool { return connections(w) == 1 })
}

func TestPools_KeepUnchangedSource(t *testing.T) {
	text := `%s
---
{kind: tool, name: stays, type: sqlite-sql, source: db, description: d, statement: SELECT 1 AS v}
---
{kind: tool, name: changes, type: sqlite-sql, source: db, description: d, statement: SELECT %d AS v}
`
	source := sqlite(t)
	w := open(t, text, source, 1)
	w.load(parse(t, fmt.Sprintf(text, source, 2)))
	if got := w.rows("stays", `{}`) + w.rows("changes", `{}`); got != `[{"v":1}][{"v":2}]` || w.pools.CountOpen() != 1 {
		t.Errorf("got %s, %d pools", got, w.pools.CountOpen())
	}
}

func TestPools_ShareConnectionsByFingerprint(t *testing.T) {
	source := toolboxfile.Source{Name: "a", Type: toolboxfile.SourceSQLite, Database: t.TempDir() + "/a.db", Fingerprint: "p"}
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
		if err := all[i].Close(); err != nil || pools.CountOpen() != open {
			t.Errorf("after %d: %d pools, want %d; %v", i, pools.CountOpen(), open, err)
		}
		if err := all[i].Close(); err != nil || pools.CountOpen() != open {
			t.Errorf("closed twice: %d pools, want %d; %v", pools.CountOpen(), open, err)
		}
	}
}

// tcpProxy forwards a TCP port to a server while it is open.
type tcpProxy struct {
	to, addr string
	mu       sync.Mutex
	listen   net.Listener
	conns    []net.Conn
}

func newTCPProxy(t *testing.T, to string) *tcpProxy {
	t.Helper()
	p := &tcpProxy{to: to, addr: "127.0.0.1:0"}
	p.open(t)
	t.Cleanup(p.shut)
	return p
}

func (p *tcpProxy) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	p.addr, p.listen = l.Addr().String(), l
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
		}
	}()
}

func (p *tcpProxy) shut() {
	p.listen.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func TestPool_UnreachableSourceRecovers(t *testing.T) {
	for kind, start := range map[string]func(testing.TB) dbtest.Database{"postgres": dbtest.NewPostgres, "mysql": dbtest.NewMariaDB} {
		t.Run(kind, func(t *testing.T) {
			d := start(t)
			proxy := newTCPProxy(t, fmt.Sprintf("%s:%d", d.Host, d.Port))
			proxy.shut()
			through := d
			_, port, _ := net.SplitHostPort(proxy.addr)
			_, _ = fmt.Sscan(port, &through.Port)
			w := open(t, `{"kind": "source", "name": "db", "type": "%[1]s", %[2]s}
---
{kind: tool, name: one, type: %[1]s-sql, source: db, description: d, statement: SELECT 1 AS v, annotations: {readOnlyHint: true}}
---
{kind: tool, name: acts, type: %[1]s-sql, source: db, description: d, statement: SELECT 1 AS v}
`, kind, server(through))
			for range 5 {
				message := wantCode(t, w.call(t.Context(), "one", `{}`), errcode.ToolUnavailable)
				for _, secret := range []string{d.Host, d.User, d.Name, d.Password, port} {
					if strings.Contains(message, secret) {
						t.Errorf("%q reveals %q", message, secret)
					}
				}
			}
			proxy.open(t)
			waitFor(t, "a row", func() bool { return !w.call(t.Context(), "one", `{}`).Result.IsError })
			wantLogged(t, w, 1, 1)
			proxy.shut() // the connection in the pool is broken
			code := w.call(t.Context(), "acts", `{}`).Code()
			if code != errcode.ToolUnavailable && code != errcode.ToolInterrupted {
				t.Errorf("got %q", code)
			}
			waitFor(t, "the source to be unreachable", func() bool { return w.call(t.Context(), "one", `{}`).Code() == errcode.ToolUnavailable })
			proxy.open(t)
			waitFor(t, "a row", func() bool { return !w.call(t.Context(), "one", `{}`).Result.IsError })
			wantLogged(t, w, 2, 2)
		})
	}
}

func wantLogged(t *testing.T, w *fixture, lost, restored int) {
	t.Helper()
	log := w.log.String()
	if strings.Count(log, "source unreachable") != lost || strings.Count(log, "source reachable again") != restored {
		t.Errorf("want %d and %d transitions, got:\n%s", lost, restored, log)
	}
}

// The log says once why a source cannot be reached, also if several attempts failed.
func TestPool_LogsCauseOnce(t *testing.T) {
	w := open(t, `{kind: source, name: db, type: postgres, host: 127.0.0.1, port: "1", database: d, user: u, password: p}
---
{kind: tool, name: one, type: postgres-sql, source: db, description: d, statement: SELECT 1}
`)
	wantCode(t, w.call(t.Context(), "one", `{}`), errcode.ToolUnavailable)
	waitFor(t, "the log", func() bool { return strings.Contains(w.log.String(), "source unreachable") })
	if n := strings.Count(w.log.String(), "connection refused"); n != 1 {
		t.Errorf("the cause is told %d times: %s", n, w.log.String())
	}
}

package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestABackupIsTheWholeOrganization(t *testing.T) {
	overBoth(t, func(t *testing.T, dial func(*house) *gateway.Client) {
		h := open(t, team)
		task := h.work(t, "go")
		from, err := dial(h).Backup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		dir := t.TempDir()
		if err := persist.Restore(t.Context(), from, dir); err != nil {
			t.Fatal(err)
		}
		got, err := persisttest.OpenIn(t, dir).Record(t.Context(), "task", string(task.ID))
		want, wantErr := h.store.Record(t.Context(), "task", string(task.ID))
		if err := errors.Join(err, wantErr); err != nil || len(got) == 0 || !cmp.Equal(got, want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	})
}

// A copy that breaks off is not taken for a whole one.
func TestABackupThatBreaksOffSaysSo(t *testing.T) {
	for name, begun := range map[string]bool{"before it began": false, "in the middle": true} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, dial func(*house) *gateway.Client) {
				h := open(t, team)
				journaltest.Commit(t, h.store, &journal.Batch{Put: []journal.Record{{Kind: "blob", Key: "large", Value: make([]byte, 1<<20)}}})
				whole := h.handler
				h.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithCancel(r.Context())
					defer cancel()
					if !begun {
						cancel()
					}
					whole.ServeHTTP(&endsAfterOne{w, cancel}, r.WithContext(ctx))
				})
				from, err := dial(h).Backup(t.Context())
				if err == nil {
					_, err = io.Copy(io.Discard, from)
					from.Close()
				}
				if err == nil {
					t.Error("the copy ended as if it were whole")
				}
			})
		})
	}
}

// endsAfterOne ends a request's context behind its first piece.
type endsAfterOne struct {
	http.ResponseWriter
	end context.CancelFunc
}

func (w *endsAfterOne) Write(p []byte) (int, error) {
	defer w.end()
	return w.ResponseWriter.Write(p)
}

// A backup holds everything, and the socket is its owner's alone: whoever
// comes over a network finds no such route.
func TestNobodyGetsABackupOverANetwork(t *testing.T) {
	h := open(t, team)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, h.handler) }()
	defer func() { cancel(); <-done }()
	answer, err := http.Get("http://" + l.Addr().String() + "/api/v1/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if got := refused(t, string(body)); err != nil || answer.StatusCode != http.StatusNotFound || got.Code != gateway.RouteNotFound {
		t.Errorf("got %d %s, %v", answer.StatusCode, body, err)
	}
}

func TestAStoreWithoutBackupsHasNoRouteToThem(t *testing.T) {
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: toolgroups.NewManager(toolgroups.Reserved()...), Workspaces: t.TempDir(),
		Model: func(string) (model.Model, error) { return brain(team), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	h := &house{rt: rt}
	if h.handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.AlwaysOperator}); err != nil {
		t.Fatal(err)
	}
	status, body := h.ask(t, "/api/v1/backup", "")
	if got := refused(t, body); status != http.StatusNotFound || got.Code != gateway.RouteNotFound {
		t.Errorf("got %d %s", status, body)
	}
}

// A reader that is stuck does not hold the store for ever.
func TestAReaderOfABackupHasToKeepUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	synctest.Test(t, func(t *testing.T) {
		h := openAt(t, dir, team)
		defer h.close(t)
		ours, theirs := net.Pipe() // holds nothing: who does not read stops who writes
		ctx, cancel := context.WithCancel(t.Context())
		l := &oneConn{conn: theirs, closed: make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- gateway.Serve(ctx, l, h.handler) }()
		if _, err := io.WriteString(ours, "GET /api/v1/backup HTTP/1.1\r\nHost: rolecall\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		from := bufio.NewReader(ours)
		answer, err := http.ReadResponse(from, nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", answer, err)
		}
		time.Sleep(time.Minute) // of the test's own time
		_, err = io.Copy(io.Discard, answer.Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %v: got %v, want a copy that is cut off", time.Since(began), err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// oneConn is the listener of a socket to which one peer comes.
type oneConn struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (conn net.Conn, err error) {
	if conn, l.conn = l.conn, nil; conn != nil {
		return socketConn{conn}, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "s", Net: "unix"} }

// socketConn says that it came over a socket.
type socketConn struct{ net.Conn }

func (socketConn) LocalAddr() net.Addr { return &net.UnixAddr{Name: "s", Net: "unix"} }

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
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestBackup_RestoresOrganization(t *testing.T) {
	gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
		f := newFixture(t, gatewaytest.TeamModel)
		task := f.RunTask(t, "go")
		from, err := dial(f).OpenBackup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		dir := t.TempDir()
		if err := persist.RestoreBackup(t.Context(), from, dir); err != nil {
			t.Fatal(err)
		}
		got, err := persisttest.OpenIn(t, dir).ReadRecord(t.Context(), "task", string(task.ID))
		want, wantErr := f.Store.ReadRecord(t.Context(), "task", string(task.ID))
		if err := errors.Join(err, wantErr); err != nil || len(got) == 0 || !cmp.Equal(got, want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	})
}

// A client notices that a backup was aborted.
func TestBackup_AbortedIsAnError(t *testing.T) {
	for name, begun := range map[string]bool{"before the first byte": false, "after the first bytes": true} {
		t.Run(name, func(t *testing.T) {
			gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
				f := newFixture(t, gatewaytest.TeamModel)
				journaltest.Commit(t, f.Store, &journal.Batch{Put: []journal.Record{{Kind: "blob", Key: "large", Value: make([]byte, 1<<20)}}})
				complete := f.Handler
				f.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithCancel(r.Context())
					defer cancel()
					if !begun {
						cancel()
					}
					complete.ServeHTTP(&cancelingWriter{w, cancel}, r.WithContext(ctx))
				})
				from, err := dial(f).OpenBackup(t.Context())
				if err == nil {
					_, err = io.Copy(io.Discard, from)
					from.Close()
				}
				if err == nil {
					t.Error("the backup ended without an error")
				}
			})
		})
	}
}

// cancelingWriter cancels a request's context after its first write.
type cancelingWriter struct {
	http.ResponseWriter
	cancel context.CancelFunc
}

func (w *cancelingWriter) Write(p []byte) (int, error) {
	defer w.cancel()
	return w.ResponseWriter.Write(p)
}

// A backup contains everything, so over TCP the route does not exist.
func TestBackup_NotServedOverTCP(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, f.Handler, nil) }()
	defer func() { cancel(); <-done }()
	answer, err := http.Get("http://" + l.Addr().String() + "/api/v1/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if got := gatewaytest.DecodeError(t, string(body)); err != nil || answer.StatusCode != http.StatusNotFound || got.Code != wire.RouteNotFound {
		t.Errorf("got %d %s, %v", answer.StatusCode, body, err)
	}
}

func TestBackup_StoreWithoutBackups(t *testing.T) {
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: toolgroups.NewManager(toolgroups.ReservedIDs()...), Workspaces: t.TempDir(),
		Model: func(string) (model.Model, error) { return gatewaytest.ModelFunc(gatewaytest.TeamModel), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	f := &gatewaytest.Fixture{Runtime: rt}
	if f.Handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: auth.AlwaysOperator}); err != nil {
		t.Fatal(err)
	}
	status, body := f.SendText(t, "/api/v1/backup", "")
	if got := gatewaytest.DecodeError(t, body); status != http.StatusNotFound || got.Code != wire.RouteNotFound {
		t.Errorf("got %d %s", status, body)
	}
}

// A stuck reader does not hold the store forever.
func TestBackup_AbortsSlowReader(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureIn(t, dir, gatewaytest.TeamModel)
		defer closeFixture(t, f)
		ours, theirs := net.Pipe() // unbuffered: a write blocks until it is read
		ctx, cancel := context.WithCancel(t.Context())
		l := &singleConnListener{conn: theirs, closed: make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- gateway.Serve(ctx, l, f.Handler, nil) }()
		if _, err := io.WriteString(ours, "GET /api/v1/backup HTTP/1.1\r\nHost: rolecall\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		from := bufio.NewReader(ours)
		answer, err := http.ReadResponse(from, nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", answer, err)
		}
		time.Sleep(time.Minute) // fake time of synctest
		_, err = io.Copy(io.Discard, answer.Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %v: got %v, want io.ErrUnexpectedEOF", time.Since(began), err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// singleConnListener is the listener of a Unix socket that accepts one
// connection.
type singleConnListener struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *singleConnListener) Accept() (conn net.Conn, err error) {
	if conn, l.conn = l.conn, nil; conn != nil {
		return unixConn{conn}, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *singleConnListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *singleConnListener) Addr() net.Addr { return &net.UnixAddr{Name: "s", Net: "unix"} }

// unixConn is a connection with the address of a Unix socket.
type unixConn struct{ net.Conn }

func (unixConn) LocalAddr() net.Addr { return &net.UnixAddr{Name: "s", Net: "unix"} }

package gateway_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/toolgroups"
)

// serve serves a house on a socket and gives its directory.
func serve(t *testing.T, h *house) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, h.handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return dir
}

// overBoth runs a test with a client over a socket and with one in the process.
func overBoth(t *testing.T, test func(t *testing.T, dial func(*house) *gateway.Client)) {
	t.Run("socket", func(t *testing.T) {
		test(t, func(h *house) *gateway.Client {
			client, err := gateway.Dial(serve(t, h))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			return client
		})
	})
	t.Run("local", func(t *testing.T) { test(t, (*house).client) })
}

func TestTheSocketIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	l, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, gateway.SocketName)
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("got %v, %v, want a socket of mode 0600", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the directory holds %v", entries)
	}
	for range 2 {
		err = l.Close()
	}
	if _, statErr := os.Lstat(path); !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("closed, it is still there: %v, %v", statErr, err)
	}
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, gateway.SocketName)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false) // as after SIGKILL
	stale.Close()
	if _, err := gateway.Dial(dir); !errors.Is(err, gateway.ErrNotServed) {
		t.Errorf("dialling a stale socket: %v, want ErrNotServed", err)
	}
	first, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := gateway.Dial(dir); err != nil {
		t.Errorf("closing the first took the second's socket: %v", err)
	}
}

func TestASocketThatCannotBeIsExplained(t *testing.T) {
	dir := t.TempDir()
	if _, err := gateway.Dial(dir); !errors.Is(err, gateway.ErrNotServed) {
		t.Errorf("dialling nobody: %v, want ErrNotServed", err)
	}
	if err := os.WriteFile(filepath.Join(dir, gateway.SocketName), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.Listen(dir); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a file in its place: %v", err)
	}
	long := filepath.Join(dir, strings.Repeat("x", gateway.MaxSocketPath-len(dir)-len(gateway.SocketName)-1))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.Listen(long); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a path of %d bytes: %v", len(long)+len(gateway.SocketName)+1, err)
	}
	if _, err := gateway.Dial(long); !errors.Is(err, gateway.ErrNotServed) {
		t.Errorf("dialling it: %v, want ErrNotServed", err)
	}
	fits := long[:len(long)-1]
	if err := os.Mkdir(fits, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := gateway.Listen(fits)
	if err != nil {
		t.Fatalf("the longest path that fits: %v", err)
	}
	l.Close()
}

func TestAClientIsToldTheSameOverBothTransports(t *testing.T) {
	overBoth(t, func(t *testing.T, dial func(*house) *gateway.Client) {
		h := open(t, team)
		c := dial(h)
		use := toolgroups.Of("artifact")
		role, err := c.CreateRole(t.Context(), gateway.RoleRequest{Name: "a/b", Use: &use}, false)
		if err != nil || role.ID == "" {
			t.Fatalf("created %+v, %v", role, err)
		}
		_, err = c.CreateRole(t.Context(), gateway.RoleRequest{Name: "a/b"}, false)
		refused, ok := errors.AsType[*errcode.Error](err)
		if !ok || refused.Code != errcode.RoleExists || refused.Details["roleId"] != string(role.ID) {
			t.Errorf("the same name again: %v", err)
		}
		got, err := c.Role(t.Context(), "a/b")
		if err != nil || got.ID != role.ID {
			t.Errorf("by name: %+v, %v", got, err)
		}
		verdict, err := c.Can(t.Context(), gateway.Question{Role: "a/b", Tool: "put_artifact"})
		if err != nil || !verdict.Allowed {
			t.Errorf("can: %+v, %v", verdict, err)
		}
		holders, err := c.Who(t.Context(), gateway.Question{Who: "put_artifact"})
		if err != nil || len(holders.Roles) != 1 {
			t.Errorf("who: %+v, %v", holders, err)
		}
		task := h.work(t, "go")
		shown, err := c.Task(t.Context(), string(task.ID))
		if err != nil || string(shown.Result) != `"done"` || shown.Groups.String() != "*" {
			t.Errorf("task: %+v, %v", shown, err)
		}
		artifacts := collect(t, c.Artifacts(t.Context(), ""))
		content, err := c.Content(t.Context(), artifacts[0].ID)
		if err != nil || string(content) != "figures" {
			t.Errorf("content: %q, %v", content, err)
		}
		if health, err := c.Health(t.Context()); err != nil || health.Status != "ok" {
			t.Errorf("health: %+v, %v", health, err)
		}
	})
}

func TestWhatIsUnderWayIsAnsweredBeforeTheServerEnds(t *testing.T) {
	dir := t.TempDir()
	l, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	reached, release := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-release
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, slow) }()
	client, err := gateway.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := client.Health(context.Background())
		answered <- err
	}()
	<-reached
	cancel()
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the answer under way: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := gateway.Dial(dir); !errors.Is(err, gateway.ErrNotServed) {
		t.Errorf("after the end: %v, want ErrNotServed", err)
	}
}

func TestAServerThatEndsDoesNotWaitForThoseWhoFollow(t *testing.T) {
	b, release := held()
	h := open(t, b)
	defer close(release)
	dir := t.TempDir()
	l, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, h.handler) }()
	client, err := gateway.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	var broken error
	for _, err := range client.Events(t.Context(), string(h.start(t, "go")), 0, true) {
		cancel()
		broken = err
	}
	if broken == nil {
		t.Error("the stream ended as if the task had")
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

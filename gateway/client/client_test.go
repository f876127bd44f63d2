package client_test

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestRemote_RejectsTokenOverPlainHTTP(t *testing.T) {
	for base, want := range map[string]bool{
		"http://127.0.0.1:7464": true, "http://localhost:7464/": true, "http://[::1]": true, "https://gw.example.com/team": true,
		"http://gw.example.com": false, "http://192.0.2.1": false, "http://localhost.example.com": false, "http://0.0.0.0": false,
		"ftp://127.0.0.1": false, "127.0.0.1:7464": false, "": false, "http://": false, "http://me:rc_x@127.0.0.1": false, "http://127.0.0.1/?token=rc_x": false, "http://127.0.0.1/#x": false,
	} {
		if _, err := client.NewRemote(base, "rc_x"); (err == nil) != want || err != nil && (errcode.CodeOf(err) != errcode.InvalidArguments || strings.Contains(err.Error(), "rc_x")) {
			t.Errorf("%q: %v, want accepted: %v", base, err, want)
		}
	}
	if _, err := client.NewRemote("http://gw.example.com", ""); err != nil {
		t.Errorf("without a token: %v", err)
	}
	if _, err := client.NewRemote("http://127.0.0.1", "a b"); err == nil || strings.Contains(err.Error(), "a b") {
		t.Errorf("an invalid token: %v", err)
	}
}

// A client of a process that has ended since says that none serves the directory.
func TestDial_ProcessHasEnded(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, wire.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CheckHealth(t.Context()); !errors.Is(err, client.ErrNotServed) {
		t.Errorf("got %v, want ErrNotServed", err)
	}
}

// A client does not send its token to the target of a redirect.
func TestClient_FollowsNoRedirect(t *testing.T) {
	asked := make(chan string, 10)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization")
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	c, err := client.NewRemote(gatewaytest.ServeChecked(t, auth.HostCheck{}, handler)+"/team/", "rc_x")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.FindRole(t.Context(), "a"); err == nil {
		t.Error("no error")
	}
	if got := <-asked; got != "/team/api/v1/roles/a Bearer rc_x" || len(asked) > 0 {
		t.Errorf("got request %s and %d more", got, len(asked))
	}
}

func TestClient_SameOverBothTransports(t *testing.T) {
	gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
		f := gatewaytest.NewFixture(t, persisttest.Open(t), gatewaytest.ModelFunc(gatewaytest.TeamModel))
		c := dial(f)
		use := toolgroups.SetOf("artifact")
		role, err := c.CreateRole(t.Context(), wire.RoleRequest{Name: "a/b", Use: &use}, false)
		if err != nil || role.ID == "" {
			t.Fatalf("created %+v, %v", role, err)
		}
		_, err = c.CreateRole(t.Context(), wire.RoleRequest{Name: "a/b"}, false)
		refused, ok := errors.AsType[*errcode.Error](err)
		if !ok || refused.Code != errcode.RoleExists || refused.Details["roleId"] != string(role.ID) {
			t.Errorf("the same name again: %v", err)
		}
		got, err := c.FindRole(t.Context(), "a/b")
		if err != nil || got.ID != role.ID {
			t.Errorf("by name: %+v, %v", got, err)
		}
		verdict, err := c.CheckAccess(t.Context(), wire.Question{Role: "a/b", Tool: "put_artifact"})
		if err != nil || !verdict.Allowed {
			t.Errorf("can: %+v, %v", verdict, err)
		}
		holders, err := c.ListHolders(t.Context(), wire.Question{Who: "put_artifact"})
		if err != nil || len(holders.Roles) != 1 {
			t.Errorf("who: %+v, %v", holders, err)
		}
		task := f.RunTask(t, "go")
		shown, err := c.FindTask(t.Context(), string(task.ID))
		if err != nil || string(shown.Result) != `"done"` || shown.Groups.String() != "*" {
			t.Errorf("task: %+v, %v", shown, err)
		}
		artifacts := gatewaytest.CollectAll(t, c.ListArtifacts(t.Context(), ""))
		content, err := c.ArtifactContent(t.Context(), artifacts[0].ID)
		if err != nil || string(content) != "figures" {
			t.Errorf("content: %q, %v", content, err)
		}
		if health, err := c.CheckHealth(t.Context()); err != nil || health.Status != "ok" {
			t.Errorf("health: %+v, %v", health, err)
		}
	})
}

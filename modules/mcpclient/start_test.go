package mcpclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
)

// The error for a missing program names it once.
func TestModule_NamesMissingProgramOnce(t *testing.T) {
	for path, want := range map[string]string{
		"/no/such/program": "start /no/such/program: no such file or directory",
		"nonesuch-program": "start nonesuch-program: executable file not found in $PATH",
	} {
		fx := newFixture(t)
		err := fx.loader.LoadModule(t.Context(), fx.newModule(mcpclient.Config{Name: "bad", Command: mcpclient.Command{Path: path}}))
		e, ok := errors.AsType[*mcpclient.ServerError](err)
		if !ok || e.Error() != want || strings.Count(err.Error(), path) != 1 {
			t.Errorf("got %v, want a ServerError with %q", err, want)
		}
		if got, want := errcode.Message(err), `MCP server "bad" failed to start`; got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
	}
}

// The error for an address where no server is names what failed, not the library's steps.
func TestModule_NamesRefusedAddress(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	fx := newFixture(t)
	err := fx.loader.LoadModule(t.Context(), fx.newModule(mcpclient.Config{Name: "bad", URL: closed.URL}))
	e, ok := errors.AsType[*mcpclient.ServerError](err)
	if want := strings.TrimPrefix(closed.URL, "http://") + " refuses connections"; !ok || e.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The error for an answer that is not of the protocol has no name of the library's code.
func TestModule_NamesWrongType(t *testing.T) {
	for result, want := range map[string]string{
		`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":"text"}`:            `connect: calling "initialize": the field "serverInfo" of the answer has a value of the wrong type: `,
		`{"protocolVersion":7,"capabilities":{},"serverInfo":{"name":"raw","version":"1"}}`: `connect: calling "initialize": the field "protocolVersion" of the answer has a value of the wrong type: `,
		`["2025-06-18"]`: `connect: calling "initialize": the answer has a value of the wrong type: `,
	} {
		at := newRawServer(t, func(w http.ResponseWriter, r *http.Request, method string) {
			if method == "initialize" {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, idOf(r), result)
			}
		})
		fx := newFixture(t)
		err := fx.loader.LoadModule(t.Context(), fx.newModule(mcpclient.Config{Name: "bad", URL: at}))
		e, ok := errors.AsType[*mcpclient.ServerError](err)
		if !ok || !strings.HasPrefix(e.Error(), want) || strings.Contains(e.Error(), "mcp.") || strings.Contains(e.Error(), "Go ") {
			t.Errorf("%s: got %v, want %s", result, err, want)
		}
	}
}

// The error for a program that is not a server says what it did, not what the library's
// steps were.
func TestModule_NamesWhatProgramDid(t *testing.T) {
	for script, want := range map[string]string{
		"echo hello; cat >/dev/null": `the server sent a line that is not a message: "hello"`,
		"exit 3":                     "the server ended: exit status 3",
	} {
		fx := newFixture(t)
		err := fx.loader.LoadModule(t.Context(), fx.newModule(mcpclient.Config{Name: "bad", Command: mcpclient.Command{Path: "sh", Args: []string{"-c", script}}}))
		e, ok := errors.AsType[*mcpclient.ServerError](err)
		if !ok || e.Error() != want {
			t.Errorf("%s: got %v, want %s", script, err, want)
		}
	}
}

// When the caller stops waiting for a silent server, the error has the server's stderr.
func TestModule_ReportsStderrWhenCancelled(t *testing.T) {
	fx := newFixture(t)
	dir := t.TempDir()
	program := mcpclient.Command{Path: "sh", Args: []string{"-c", "echo waiting for the database >&2; : >begun; cat >/dev/null"}, Dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- fx.loader.LoadModule(ctx, fx.newModule(mcpclient.Config{Name: "bad", Command: program}))
	}()
	for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server did not start")
		}
	}
	cancel()
	err := <-done
	e, ok := errors.AsType[*mcpclient.ServerError](err)
	if !ok || !errors.Is(err, context.Canceled) || e.Stderr != "waiting for the database" {
		t.Errorf("got %v, want context.Canceled with the server's stderr", err)
	}
}

// Calls of a server that was connected before get an error with the time of the next
// attempt.
func TestModule_ReportsNextRetry(t *testing.T) {
	fx := newFixture(t)
	c := fx.childConfig("fs", "real")
	link := filepath.Join(t.TempDir(), "server")
	if err := os.Symlink(c.Command.Path, link); err != nil {
		t.Fatal(err)
	}
	c.Command.Path = link
	fx.load(c)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	fx.want(fx.call("fs__crash", `{}`), string(errcode.ToolInterrupted))
	got := fx.call("fs__again", `{}`)
	fx.want(got, `tool_unavailable: fs__again did not run: MCP server "fs" is unavailable; the next attempt is in `)
	if strings.Contains(got, link) {
		t.Errorf("the error for models contains the path of the program: %q", got)
	}
}

// Every pending tool has a description, also those that the module makes itself.
func TestQuarantine_DescribesPendingTools(t *testing.T) {
	fx := newFixture(t)
	if _, err := fx.pins.UpdateTools(t.Context(), modules.OwnerOf("fs"), "fs__", nil); err != nil {
		t.Fatal(err)
	}
	fx.load(fx.childConfig("fs", "real"))
	if err := fx.loader.ProvisionModule(t.Context(), "fs"); err != nil {
		t.Fatal(err)
	}
	list, err := fx.pins.ListQuarantine(t.Context())
	if err != nil || len(list) != len(realTools)+1 { // and a prompt
		t.Fatalf("%d are pending, %v, want %d", len(list), err, len(realTools)+1)
	}
	for _, w := range list {
		if w.Offered.Description == "" {
			t.Errorf("%s has no description", w.Name)
		}
		if w.Offered.Kind != "mcp" {
			continue
		}
		fx.accept(w.Name)
		fx.waitFor(w.Name+" is active", func() bool { return fx.hasTool(w.Name) })
		if got := fx.handle(w.Name).Definition.Description; got != w.Offered.Description {
			t.Errorf("%s was described as %q and is %q", w.Name, w.Offered.Description, got)
		}
	}
}

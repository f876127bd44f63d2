package mcpclient_test

import (
	"context"
	"errors"
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

// A program that is missing is named once, as what is wrong with its server.
func TestAProgramThatIsMissing(t *testing.T) {
	for path, want := range map[string]string{
		"/no/such/program": "start /no/such/program: no such file or directory",
		"nonesuch-program": "start nonesuch-program: executable file not found in $PATH",
	} {
		k := newKit(t)
		err := k.loader.Load(t.Context(), k.make(mcpclient.Config{Name: "bad", Command: mcpclient.Command{Path: path}}))
		e, ok := errors.AsType[*mcpclient.ServerError](err)
		if !ok || e.Error() != want || strings.Count(err.Error(), path) != 1 {
			t.Errorf("got %v, want it to hold %q alone", err, want)
		}
		if got, want := errcode.Message(err), `MCP server "bad" does not come up`; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// Who gives up a server that is silent is told what it wrote meanwhile.
func TestAServerThatIsGivenUp(t *testing.T) {
	k := newKit(t)
	dir := t.TempDir()
	program := mcpclient.Command{Path: "sh", Args: []string{"-c", "echo waiting for the database >&2; : >begun; cat >/dev/null"}, Dir: dir}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	over := make(chan error, 1)
	go func() { over <- k.loader.Load(ctx, k.make(mcpclient.Config{Name: "bad", Command: program})) }()
	for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server did not begin")
		}
	}
	giveUp()
	err := <-over
	e, ok := errors.AsType[*mcpclient.ServerError](err)
	if !ok || !errors.Is(err, context.Canceled) || e.Stderr != "waiting for the database" {
		t.Errorf("got %v, want what it wrote, and that it was given up", err)
	}
}

// Of a server that was up, calls are told when it is tried again.
func TestAProgramThatGoesMissing(t *testing.T) {
	k := newKit(t)
	c := k.child("fs", "real")
	link := filepath.Join(t.TempDir(), "server")
	if err := os.Symlink(c.Command.Path, link); err != nil {
		t.Fatal(err)
	}
	c.Command.Path = link
	k.load(c)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	k.want(k.call("fs__crash", `{}`), string(errcode.ToolInterrupted))
	got := k.call("fs__again", `{}`)
	k.want(got, `tool_unavailable: fs__again did not run: MCP server "fs" cannot be used now; the next try is in `)
	if strings.Contains(got, link) {
		t.Errorf("a model reads where the program was: %q", got)
	}
}

// What waits says what it is, also what the module makes itself.
func TestWhatWaitsIsDescribed(t *testing.T) {
	k := newKit(t)
	if _, err := k.pins.Update(t.Context(), modules.Owner("fs"), "fs__", nil); err != nil {
		t.Fatal(err)
	}
	k.load(k.child("fs", "real"))
	if err := k.loader.Provision(t.Context(), "fs"); err != nil {
		t.Fatal(err)
	}
	list, err := k.pins.Quarantine(t.Context())
	if err != nil || len(list) != len(realTools) {
		t.Fatalf("%d wait, %v, want %d", len(list), err, len(realTools))
	}
	for _, w := range list {
		if w.Offered.Description == "" {
			t.Errorf("%s is not described", w.Name)
		}
		if w.Offered.Kind == "" {
			continue
		}
		k.accept(w.Name)
		k.until(w.Name+" is there", func() bool { return k.has(w.Name) })
		if got := k.handle(w.Name).Definition.Description; got != w.Offered.Description {
			t.Errorf("%s was described as %q and is %q", w.Name, w.Offered.Description, got)
		}
	}
}

package mcpserver_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// watching is a session with the URIs of which it is notified.
type watching struct {
	*sdk.ClientSession
	updates chan string
}

// watch connects a client that receives notifications of changed resources.
func (f *fixture) watch(t testing.TB, sender, version string) watching {
	t.Helper()
	updates := make(chan string, 1000)
	o := &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI }}
	return watching{f.connect(t, sender, "/mcp", version, o), updates}
}

// next returns the URI of the next notification.
func (w watching) next(t testing.TB) string {
	t.Helper()
	select {
	case uri := <-w.updates:
		return uri
	case <-time.After(30 * time.Second):
		t.Fatal("no notification came")
	}
	return ""
}

// subscribe subscribes and returns the error as text.
func (w watching) subscribe(t testing.TB, uri string) string {
	t.Helper()
	if err := w.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
		return err.Error()
	}
	return ""
}

func openWatched(t testing.TB) *fixture {
	t.Helper()
	return fixtureConfig{config: mcpserver.Config{WatchInterval: 10 * time.Millisecond}}.open(t)
}

// A client is notified of the files of its own caller only, although other callers of the role
// have files of the same URI.
func TestSubscriptions_NotifyOfOwnFiles(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			f := openWatched(t)
			ann, bob := f.watch(t, "ann@clerk", version), f.watch(t, "bob@clerk", version)
			for _, w := range []watching{ann, bob} {
				for _, name := range []string{"a.txt", "b.txt"} {
					callTool(t, w.ClientSession, "write_file", obj{"path": name, "content": "1"})
					if failed := w.subscribe(t, "workspace:///"+name); failed != "" {
						t.Fatal(failed)
					}
				}
			}
			for i, name := range []string{"a.txt", "b.txt", "a.txt"} {
				callTool(t, ann.ClientSession, "write_file", obj{"path": name, "content": strings.Repeat("x", i+2)})
				if got := ann.next(t); got != "workspace:///"+name {
					t.Errorf("ann is notified of %s, want %s", got, name)
				}
			}
			callTool(t, bob.ClientSession, "write_file", obj{"path": "b.txt", "content": "changed"})
			if got := bob.next(t); got != "workspace:///b.txt" || len(ann.updates) > 0 || len(bob.updates) > 0 {
				t.Errorf("bob is notified of %s first, then %d; ann of %d more", got, len(bob.updates), len(ann.updates))
			}
		})
	}
}

// A client that may no longer read a resource, or has unsubscribed, is not notified.
func TestSubscriptions_EndWithPermission(t *testing.T) {
	f := openWatched(t)
	f.role(t, "witness", "workspace")
	ann, witness := f.watch(t, "ann@clerk", "2025-11-25"), f.watch(t, "wit@witness", "2025-11-25")
	for _, w := range []watching{ann, witness} {
		for _, name := range []string{"a.txt", "b.txt"} {
			callTool(t, w.ClientSession, "write_file", obj{"path": name, "content": "1"})
			if failed := w.subscribe(t, "workspace:///"+name); failed != "" {
				t.Fatal(failed)
			}
		}
	}
	if err := ann.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "workspace:///a.txt"}); err != nil {
		t.Fatal(err)
	}
	callTool(t, ann.ClientSession, "write_file", obj{"path": "a.txt", "content": "22"})
	callTool(t, ann.ClientSession, "write_file", obj{"path": "b.txt", "content": "22"})
	if got := ann.next(t); got != "workspace:///b.txt" {
		t.Errorf("after Unsubscribe ann is notified of %s", got)
	}
	f.setGroups(t, "clerk", "console")
	f.rewrite(t, "22", "changed")
	for i := range 2 { // looks have passed
		callTool(t, witness.ClientSession, "write_file", obj{"path": "a.txt", "content": strings.Repeat("x", i+2)})
		witness.next(t)
	}
	if len(ann.updates) > 0 {
		t.Errorf("without permission ann is notified of %s", <-ann.updates)
	}
}

// rewrite changes the content of all files in workspaces that have a content, without a tool.
func (f *fixture) rewrite(t testing.TB, from, to string) {
	t.Helper()
	changed := 0
	err := filepath.WalkDir(f.files, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != from {
			return err
		}
		changed++
		return os.WriteFile(path, []byte(to), 0o600)
	})
	if err != nil || changed == 0 {
		t.Fatalf("%d files changed, %v", changed, err)
	}
}

// To subscribe is to read: what the caller may not read is answered like what does not exist,
// and the record has it.
func TestSubscriptions_RequireRead(t *testing.T) {
	f := openWatched(t)
	blind := f.watch(t, "ann@tester", "2025-11-25")
	want := blind.subscribe(t, "workspace:///none")
	if !strings.Contains(want, "Resource not found") {
		t.Fatalf("an absent file: %s", want)
	}
	clerk := f.watch(t, "ann@clerk", "2025-11-25")
	callTool(t, clerk.ClientSession, "write_file", obj{"path": "a.txt", "content": "1"})
	for _, uri := range append([]string{"workspace:///a.txt", "artifact:x", "mcp://x/y"}, climbing...) {
		if got := blind.subscribe(t, uri); got != want && uri != "" {
			t.Errorf("%.80q: %s, want %s", uri, got, want)
		}
	}
	if err := f.rt.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.calls(t), "\n"); !strings.Contains(got, `resources/read denied {"uri":"workspace:///a.txt"}`) {
		t.Errorf("the record has %s", got)
	}
}

// A flood of subscriptions is rejected, in sessions and in one request.
func TestSubscriptions_AreLimited(t *testing.T) {
	f := openWatched(t)
	clerk := f.watch(t, "ann@clerk", "2025-11-25")
	rejected := 0
	for i := range 70 {
		name := fmt.Sprintf("%d.txt", i)
		callTool(t, clerk.ClientSession, "write_file", obj{"path": name, "content": "1"})
		if got := clerk.subscribe(t, "workspace:///"+name); got != "" {
			if rejected++; !strings.Contains(got, "too many subscriptions") {
				t.Error(got)
			}
		}
	}
	if rejected != 6 {
		t.Errorf("%d of 70 subscriptions are rejected, want 6", rejected)
	}
	if err := clerk.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "workspace:///0.txt"}); err != nil {
		t.Fatal(err)
	}
	if got := clerk.subscribe(t, "workspace:///69.txt"); got != "" {
		t.Errorf("after one has ended: %s", got)
	}
	other := f.watch(t, "bob@clerk", "2025-11-25")
	callTool(t, other.ClientSession, "write_file", obj{"path": "a.txt", "content": "1"})
	if got := other.subscribe(t, "workspace:///a.txt"); got != "" {
		t.Errorf("another caller: %s", got)
	}
}

// Subscriptions end with their sessions, and nothing of them stays: not even the URIs, of which
// one file has many.
func TestSubscriptions_LeaveNothing(t *testing.T) {
	f := openWatched(t)
	f.role(t, "writer", "workspace", "artifact")
	writer := f.connect(t, "ann@writer", "/mcp", "", nil)
	callTool(t, writer, "write_file", obj{"path": "aaa.txt", "content": "1"})
	ref := gjson.Get(callTool(t, writer, "put_artifact", obj{"type": "report", "content": "1"}), "artifactRef").Str
	for range 3 {
		session := f.watch(t, "ann@writer", "2025-11-25")
		for _, uri := range []string{"workspace:///aaa.txt", "workspace:///%61aa.txt", "workspace:///%61%61a.txt", ref} {
			if failed := session.subscribe(t, uri); failed != "" {
				t.Fatalf("%s: %s", uri, failed)
			}
		}
		if got := mcpserver.SubscribedURIs(f.server); got != 4 {
			t.Errorf("%d URIs are subscribed to, want 4", got)
		}
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
		tick, patience := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
		for mcpserver.SubscribedURIs(f.server) > 0 {
			select {
			case <-tick.C:
			case <-patience:
				t.Fatalf("after the session, %d URIs are remembered", mcpserver.SubscribedURIs(f.server))
			}
		}
		tick.Stop()
	}
}

// A server's notification reaches the clients that have subscribed to the resource.
func TestSubscriptions_OfUpstream(t *testing.T) {
	f := openWatched(t)
	subscribed := make(chan struct{}, 10)
	server := upstreamWith("one", &sdk.ServerOptions{
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { subscribed <- struct{}{}; return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	f.connectUpstream(t, map[string]*sdk.Server{"one": server})
	f.role(t, "first", "one")
	session := f.watch(t, "ann@first", "2025-11-25")
	if failed := session.subscribe(t, "mcp://one/memo:a"); failed != "" {
		t.Fatal(failed)
	}
	waitFor(t, "the client subscribes at the server", subscribed)
	update := func() {
		if err := server.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: "memo:a"}); err != nil {
			t.Error(err)
		}
	}
	stop := time.AfterFunc(time.Second, update) // the server may not have registered it at the first one
	defer stop.Stop()
	update()
	if got := session.next(t); got != "mcp://one/memo:a" {
		t.Errorf("the notification is of %s", got)
	}
}

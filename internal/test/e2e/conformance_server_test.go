package e2e_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
)

// The conformance suite tests our server, as a client with a role, in both protocol
// revisions.
func TestConformance_Server(t *testing.T) {
	for _, revision := range []string{stateful, stateless} {
		t.Run(revision, func(t *testing.T) {
			runConformance(t, "server", revision, nil, "--url", serveSuite(t))
		})
	}
}

// serveSuite serves the suite's tools through the gateway's host check without
// authentication, because the suite sends no token.
func serveSuite(t *testing.T) (url string) {
	t.Helper()
	rt := newRuntime(t)
	newSuiteTools(t, rt)
	caller := identity.ByCaller("suite", newRole(t, rt, "suite", suiteGroup))
	server, err := mcpserver.New(mcpserver.Config{Runtime: rt, Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	handler := auth.HostCheck{}.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := server.Serve(w, r, caller); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.Serve(ctx, listener, handler, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/mcp"
}

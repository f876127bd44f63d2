package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Requests of an MCP client, with and without a session, and the canned answer.
const (
	mcpInit          = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	mcpCall          = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool_0_0","arguments":{"path":"notes/today.md"}}}`
	mcpList          = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	mcpMeta          = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	mcpCallNew       = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + mcpMeta + `,"name":"tool_0_0","arguments":{"path":"notes/today.md"}}}`
	mcpListNew       = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + mcpMeta + `}}`
	mcpResult        = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}`
	mcpVersion       = "2026-07-28"
	mcpCallsPerRound = 2000 // requests per round
	mcpListsPerRound = 500
)

// mcpPeer is a server on loopback and the request to send to it.
type mcpPeer struct {
	url    string
	body   string
	header http.Header
}

// candidate returns a candidate that sends the same request repeatedly over one
// connection.
func (p mcpPeer) candidate(name string, n int) candidate {
	client := &http.Client{Transport: &http.Transport{}}
	return candidate{name, n, func(n int) {
		for range n {
			sink.Add(uint64(len(must(p.send(client)))))
		}
	}}
}

func (p mcpPeer) send(client *http.Client) (answer []byte, err error) {
	r, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(p.body))
	if err != nil {
		return nil, err
	}
	r.Header = p.header
	got, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	answer, err = io.ReadAll(got.Body)
	if err == nil && (got.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"result"`)) {
		err = fmt.Errorf("%s answered %d %.200s", p.url, got.StatusCode, answer)
	}
	return answer, err
}

// startServer serves a handler on loopback.
func startServer(handler http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

// mcpFixture is an MCP server with 100 tools and one role that may use them.
type mcpFixture struct {
	rt     *runtime.Runtime
	mcp    *mcpserver.Server
	caller identity.Principal
	tools  []tool.Tool
}

func newMCPFixture() (*mcpFixture, error) {
	groups, fx := toolgroups.NewManager(), &mcpFixture{}
	group := toolgroups.Group{ID: "bench", Description: "a group of the benchmark"}
	for i := range 100 {
		t, err := newTool(fmt.Sprintf("tool_%d_%d", i/10, i%10), nil)
		if err != nil {
			return nil, err
		}
		group.Tools = append(group.Tools, t)
	}
	fx.tools = group.Tools
	if _, err := grouptest.RegisterGroup(groups, "bench", group); err != nil {
		return nil, err
	}
	var err error
	fx.rt, err = runtime.New(runtime.Config{Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return scriptedModel{}, nil }})
	if err != nil {
		return nil, err
	}
	role, err := fx.rt.CreateRole(context.Background(), tool.Call{ID: "role", By: identity.ByOperator("bench")}, org.RoleSpec{Name: "client", Prompt: rolePrompt})
	if err != nil {
		return nil, err
	}
	fx.caller = identity.ByCaller("bench", role.ID)
	fx.mcp, err = mcpserver.New(mcpserver.Config{Runtime: fx.rt})
	return fx, err
}

// ServeHTTP implements http.Handler.
func (fx *mcpFixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := fx.mcp.Serve(w, r, fx.caller); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// sdkHandler returns the SDK's server with the same tools, set up as in its
// documentation.
func (fx *mcpFixture) sdkHandler() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	for _, t := range fx.tools {
		d := t.Definition()
		server.AddTool(&sdk.Tool{Name: d.Name, Description: d.Description, InputSchema: d.Input}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{}}}, nil
		})
	}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{JSONResponse: true})
}

// cannedHandler answers every request with the same bytes.
func cannedHandler(answer []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})
}

// mcpHeader returns the headers of a client of this version. For the older version it
// starts a session.
func mcpHeader(url, method, version string) (http.Header, error) {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if version == mcpVersion {
		h.Set("Mcp-Protocol-Version", version)
		h.Set("Mcp-Method", method)
		h.Set("Mcp-Name", "tool_0_0")
		return h, nil
	}
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(mcpInit))
	if err != nil {
		return nil, err
	}
	r.Header = h.Clone()
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	h.Set("Mcp-Session-Id", got.Header.Get("Mcp-Session-Id"))
	h.Set("Mcp-Protocol-Version", "2025-11-25")
	return h, nil
}

// mcpServers are the servers of a comparison.
type mcpServers struct {
	fixture   *mcpFixture
	sdk       http.Handler
	url, peer string // base URLs of the fixture and the SDK
	stops     []func()
}

func newMCPServers() (*mcpServers, error) {
	fx, err := newMCPFixture()
	if err != nil {
		return nil, err
	}
	s := &mcpServers{fixture: fx, sdk: fx.sdkHandler()}
	s.url, err = s.start(fx)
	var err2 error
	s.peer, err2 = s.start(s.sdk)
	return s, errors.Join(err, err2)
}

func (s *mcpServers) start(handler http.Handler) (string, error) {
	url, stop, err := startServer(handler)
	if err == nil {
		s.stops = append(s.stops, stop)
	}
	return url, err
}

func (s *mcpServers) close() {
	for _, stop := range s.stops {
		stop()
	}
	_ = errors.Join(s.fixture.mcp.Close(), s.fixture.rt.Close()) // nothing to lose in memory
}

// addCandidate adds a candidate for a server and protocol version.
func (s *mcpServers) addCandidate(c *comparison, name, url, method, version, body string, n int) error {
	header, err := mcpHeader(url, method, version)
	c.candidates = append(c.candidates, mcpPeer{url, body, header}.candidate(name, n))
	return err
}

// mcpComparison compares tools/call with a canned answer. rolecall runs with
// everything enabled: the gate, the argument check, and both records.
func mcpComparison() (comparison, error) {
	s, err := newMCPServers()
	if err != nil {
		return comparison{}, err
	}
	floor, err := s.start(cannedHandler([]byte(mcpResult)))
	c := comparison{title: "mcp: tools/call over HTTP on loopback, client and server", cleanup: s.close, goals: []goal{
		{part: "mcp", claim: "tools/call in a session, compared with a canned answer", candidate: 1, baseline: 0, maxRatio: 1.5},
		{part: "mcp", claim: "tools/call without a session, compared with a canned answer", candidate: 2, baseline: 0, maxRatio: 1.5},
	}}
	return c, errors.Join(err,
		s.addCandidate(&c, "canned net/http answer", floor, "tools/call", mcpVersion, mcpCall, mcpCallsPerRound),
		s.addCandidate(&c, "rolecall, 2025-11-25", s.url, "tools/call", "2025-11-25", mcpCall, mcpCallsPerRound),
		s.addCandidate(&c, "rolecall, 2026-07-28", s.url, "tools/call", mcpVersion, mcpCallNew, mcpCallsPerRound),
		s.addCandidate(&c, "go-sdk, 2025-11-25", s.peer, "tools/call", "2025-11-25", mcpCall, mcpCallsPerRound))
}

// mcpListComparison compares tools/list with a copy of the same bytes. It calls the
// handlers directly, because reading so much data in a client would hide the
// difference.
func mcpListComparison() (comparison, error) {
	s, err := newMCPServers()
	if err != nil {
		return comparison{}, err
	}
	header, err := mcpHeader(s.url, "tools/list", "2025-11-25")
	if err != nil {
		return comparison{}, err
	}
	peer, err := mcpHeader(s.peer, "tools/list", "2025-11-25")
	if err != nil {
		return comparison{}, err
	}
	alone, err := mcpHeader(s.url, "tools/list", mcpVersion)
	if err != nil {
		return comparison{}, err
	}
	var kept bytes.Buffer
	serveDirect(s.fixture, mcpListNew, alone, &kept)
	ready := kept.Bytes()
	c := comparison{title: fmt.Sprintf("mcp: tools/list of 100 tools, %d KB, handler only", len(ready)>>10), cleanup: s.close, goals: []goal{
		atLeastTimesFaster("mcp", "tools/list compared with the SDK", 1, 3, 10),
	}}
	for _, p := range []struct {
		name    string
		handler http.Handler
		body    string
		header  http.Header
	}{
		{"canned answer", cannedHandler(ready), mcpListNew, alone},
		{"rolecall, 2025-11-25", s.fixture, mcpList, header},
		{"rolecall, 2026-07-28", s.fixture, mcpListNew, alone},
		{"go-sdk, 2025-11-25", s.sdk, mcpList, peer},
	} {
		if n := serveDirect(p.handler, p.body, p.header, nil); n < len(ready)/2 {
			return c, fmt.Errorf("%s answered %d bytes, want about %d", p.name, n, len(ready))
		}
		c.candidates = append(c.candidates, candidate{p.name, mcpListsPerRound, func(n int) {
			for range n {
				sink.Add(uint64(serveDirect(p.handler, p.body, p.header, nil)))
			}
		}})
	}
	return c, nil
}

// countingWriter is a ResponseWriter that counts the bytes written.
type countingWriter struct {
	header http.Header
	size   int
	copyTo *bytes.Buffer // nil discards the bytes
}

func (d *countingWriter) Header() http.Header { return d.header }
func (d *countingWriter) WriteHeader(int)     {}
func (d *countingWriter) Write(b []byte) (int, error) {
	if d.copyTo != nil {
		d.copyTo.Write(b)
	}
	d.size += len(b)
	return len(b), nil
}

// serveDirect has a handler answer a request without a network and returns the size of
// the answer.
func serveDirect(handler http.Handler, body string, header http.Header, keep *bytes.Buffer) int {
	r := must(http.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body)))
	r.Header = header
	w := &countingWriter{header: http.Header{}, copyTo: keep}
	handler.ServeHTTP(w, r)
	return w.size
}

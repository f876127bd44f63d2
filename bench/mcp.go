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
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Requests of an MCP client, in a session and without, and what a server that
// knows the answer by heart says.
const (
	mcpInit     = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	mcpCall     = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool_0_0","arguments":{"path":"notes/today.md"}}}`
	mcpList     = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	mcpMeta     = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	mcpCallNew  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + mcpMeta + `,"name":"tool_0_0","arguments":{"path":"notes/today.md"}}}`
	mcpListNew  = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + mcpMeta + `}}`
	mcpResult   = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}`
	mcpVersion  = "2026-07-28"
	mcpEach     = 2000 // requests of a round
	mcpEachList = 500
)

// mcpPeer is a server on loopback, and what a request to it is.
type mcpPeer struct {
	url    string
	body   string
	header http.Header
}

// ask gives a candidate: the same request again and again, over one connection.
func (p mcpPeer) ask(name string, n int) candidate {
	client := &http.Client{Transport: &http.Transport{}}
	return candidate{name, n, func(n int) {
		for range n {
			sink.Add(uint64(len(made(p.send(client)))))
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
		err = fmt.Errorf("%s was answered %d %.200s", p.url, got.StatusCode, answer)
	}
	return answer, err
}

// serving puts a handler on loopback.
func serving(handler http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

// mcpHouse is a house with 100 tools and one role that has them.
type mcpHouse struct {
	rt    *runtime.Runtime
	mcp   *mcpserver.Server
	by    identity.Principal
	tools []tool.Tool
}

func newMCPHouse() (*mcpHouse, error) {
	groups, h := toolgroups.NewManager(), &mcpHouse{}
	group := toolgroups.Group{ID: "bench", Description: "a group of the benchmark"}
	for i := range 100 {
		t, err := newTool(fmt.Sprintf("tool_%d_%d", i/10, i%10), nil)
		if err != nil {
			return nil, err
		}
		group.Tools = append(group.Tools, t)
	}
	h.tools = group.Tools
	if _, err := groups.RegisterGroup("bench", group); err != nil {
		return nil, err
	}
	var err error
	h.rt, err = runtime.New(runtime.Config{Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return scripted{}, nil }})
	if err != nil {
		return nil, err
	}
	role, err := h.rt.CreateRole(context.Background(), tool.Call{ID: "role", By: identity.ByOperator("bench")}, org.RoleSpec{Name: "client", Prompt: rolePrompt})
	if err != nil {
		return nil, err
	}
	h.by = identity.ByCaller("bench", role.ID)
	h.mcp, err = mcpserver.New(mcpserver.Config{Runtime: h.rt})
	return h, err
}

// ServeHTTP implements http.Handler.
func (h *mcpHouse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.mcp.Serve(w, r, h.by); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// plainSDK is the SDK's server as its documentation has it, with the same
// tools.
func (h *mcpHouse) plainSDK() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	for _, t := range h.tools {
		d := t.Definition()
		server.AddTool(&sdk.Tool{Name: d.Name, Description: d.Description, InputSchema: d.Input}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{}}}, nil
		})
	}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{JSONResponse: true})
}

// byHeart answers everything with the same bytes.
func byHeart(answer []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})
}

// mcpHeader is what a client of this version sends; a session is begun when it
// has them.
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
	house     *mcpHouse
	sdk       http.Handler
	url, peer string // of both
	stops     []func()
}

func newMCPServers() (*mcpServers, error) {
	h, err := newMCPHouse()
	if err != nil {
		return nil, err
	}
	s := &mcpServers{house: h, sdk: h.plainSDK()}
	s.url, err = s.start(h)
	var err2 error
	s.peer, err2 = s.start(s.sdk)
	return s, errors.Join(err, err2)
}

func (s *mcpServers) start(handler http.Handler) (string, error) {
	url, stop, err := serving(handler)
	if err == nil {
		s.stops = append(s.stops, stop)
	}
	return url, err
}

func (s *mcpServers) close() {
	for _, stop := range s.stops {
		stop()
	}
	_ = errors.Join(s.house.mcp.Close(), s.house.rt.Close()) // nothing is left to lose
}

// compared adds a candidate for a server and version.
func (s *mcpServers) compared(c *comparison, name, url, method, version, body string, n int) error {
	header, err := mcpHeader(url, method, version)
	c.candidates = append(c.candidates, mcpPeer{url, body, header}.ask(name, n))
	return err
}

// mcpComparison holds tools/call against an answer that is known by heart. Of
// ours everything is on: the gate, the arguments' check, and both records.
func mcpComparison() (comparison, error) {
	s, err := newMCPServers()
	if err != nil {
		return comparison{}, err
	}
	floor, err := s.start(byHeart([]byte(mcpResult)))
	c := comparison{title: "mcp: tools/call over HTTP on loopback, client and server", close: s.close, goals: []goal{
		{part: "mcp", claim: "tools/call in a session, beside a canned answer", of: 1, than: 0, most: 1.5},
		{part: "mcp", claim: "tools/call without a session, beside a canned answer", of: 2, than: 0, most: 1.5},
	}}
	return c, errors.Join(err,
		s.compared(&c, "canned net/http answer", floor, "tools/call", mcpVersion, mcpCall, mcpEach),
		s.compared(&c, "rolecall, 2025-11-25", s.url, "tools/call", "2025-11-25", mcpCall, mcpEach),
		s.compared(&c, "rolecall, 2026-07-28", s.url, "tools/call", mcpVersion, mcpCallNew, mcpEach),
		s.compared(&c, "go-sdk, 2025-11-25", s.peer, "tools/call", "2025-11-25", mcpCall, mcpEach))
}

// mcpListComparison holds tools/list against a copy of the same bytes: what the
// servers themselves do, since a client that reads so much hides it.
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
	handled(s.house, mcpListNew, alone, &kept)
	ready := kept.Bytes()
	c := comparison{title: fmt.Sprintf("mcp: tools/list of 100 tools, %d KB, the handler alone", len(ready)>>10), close: s.close, goals: []goal{
		faster("mcp", "tools/list beside the SDK's", 1, 3, 10),
	}}
	for _, p := range []struct {
		name    string
		handler http.Handler
		body    string
		header  http.Header
	}{
		{"canned answer", byHeart(ready), mcpListNew, alone},
		{"rolecall, 2025-11-25", s.house, mcpList, header},
		{"rolecall, 2026-07-28", s.house, mcpListNew, alone},
		{"go-sdk, 2025-11-25", s.sdk, mcpList, peer},
	} {
		if n := handled(p.handler, p.body, p.header, nil); n < len(ready)/2 {
			return c, fmt.Errorf("%s answered %d bytes, and %d are expected", p.name, n, len(ready))
		}
		c.candidates = append(c.candidates, candidate{p.name, mcpEachList, func(n int) {
			for range n {
				sink.Add(uint64(handled(p.handler, p.body, p.header, nil)))
			}
		}})
	}
	return c, nil
}

// discard is a ResponseWriter that counts what it is given.
type discard struct {
	header http.Header
	size   int
	keep   *bytes.Buffer // nil drops it
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Write(b []byte) (int, error) {
	if d.keep != nil {
		d.keep.Write(b)
	}
	d.size += len(b)
	return len(b), nil
}

// handled has a handler answer a request, without a network.
func handled(handler http.Handler, body string, header http.Header, keep *bytes.Buffer) int {
	r := made(http.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body)))
	r.Header = header
	w := &discard{header: http.Header{}, keep: keep}
	handler.ServeHTTP(w, r)
	return w.size
}

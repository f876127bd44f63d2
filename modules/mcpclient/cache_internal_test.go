package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
)

// cachingServer lets clients keep its results for an hour. Each cursor and each URI is valid.
func cachingServer(t *testing.T) *httptest.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "s"}, nil)
	var reads atomic.Int64
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: fmt.Sprint(r.Params.URI, " ", reads.Add(1))}}}, nil
	}
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "memo:{name}", Name: "memo"}, read)
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			kept := sdk.Cacheable{TTLMs: 3_600_000, CacheScope: "private"}
			switch p := req.GetParams().(type) {
			case *sdk.ListResourcesParams:
				return &sdk.ListResourcesResult{Cacheable: kept, Resources: []*sdk.Resource{{URI: "memo:a", Name: p.Cursor}}, NextCursor: p.Cursor + "+"}, nil
			case *sdk.ListPromptsParams:
				return &sdk.ListPromptsResult{Cacheable: kept, Prompts: []*sdk.Prompt{{Name: "prompt" + p.Cursor}}, NextCursor: p.Cursor + "+"}, nil
			}
			result, err := next(ctx, method, req)
			if r, ok := result.(*sdk.ReadResourceResult); ok {
				r.Cacheable = kept
			}
			return result, err
		}
	})
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(at.Close)
	return at
}

// The results of requests for ever new URIs and pages do not stay in memory while the connection lasts. None is
// given as the answer to a later request.
func TestConn_KeepsNoResults(t *testing.T) {
	var freed, results atomic.Int64
	count := func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, method, req)
			switch r := result.(type) {
			case *sdk.ReadResourceResult:
				results.Add(1)
				runtime.AddCleanup(r, func(int) { freed.Add(1) }, 0)
			case *sdk.ListResourcesResult:
				results.Add(1)
				runtime.AddCleanup(r, func(int) { freed.Add(1) }, 0)
			case *sdk.ListPromptsResult:
				results.Add(1)
				runtime.AddCleanup(r, func(int) { freed.Add(1) }, 0)
			}
			return result, err
		}
	}
	n, err := dialWithoutTimeout(t.Context(), Config{Name: "s", URL: cachingServer(t).URL}, slog.New(slog.DiscardHandler), nil, count)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	if got := n.session.InitializeResult().ProtocolVersion; got < "2026-07-28" {
		t.Fatalf("revision %s, in which the library keeps nothing", got)
	}
	const rounds = 20
	for i := range rounds {
		name := strconv.Itoa(i)
		for _, uri := range []string{"memo:" + name, "memo:same"} {
			if got, err := readResource(t.Context(), n.session, "read_resource", mustJSON(t, map[string]string{"uri": uri})); err != nil || got.Content[0].Text != fmt.Sprint(uri, " ", results.Load()-int64(4*i)) {
				t.Errorf("%s: %+v, %v", uri, got, err)
			}
		}
		for _, list := range []func(context.Context, *sdk.ClientSession, string, json.RawMessage) (tool.Result, error){listResources, listPrompts} {
			for _, cursor := range []string{"", name} {
				got, err := list(t.Context(), n.session, "list", mustJSON(t, map[string]string{"cursor": cursor}))
				if err != nil || !strings.Contains(string(got.Structured), fmt.Sprintf(`"next":"%s+"`, cursor)) {
					t.Errorf("page %q: %s, %v", cursor, got.Structured, err)
				}
			}
		}
	}
	const kinds = 3 // the last result of each stays
	for range 10 {
		runtime.GC()
		if freed.Load() >= results.Load()-kinds {
			break
		}
	}
	if results.Load() != 6*rounds || freed.Load() < results.Load()-kinds {
		t.Errorf("of %d results %d are freed, want all but %d", results.Load(), freed.Load(), kinds)
	}
}

// mustJSON returns v as JSON.
func mustJSON(t *testing.T, v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

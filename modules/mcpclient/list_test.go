package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/modules/mcpclient"
)

// pagingServer is a server whose list of a method has many pages.
type pagingServer struct {
	*testing.T
	method string
	pages  int
	page   func(i int) (items, cursor string) // cursor is a prefix of the page's cursor

	listed atomic.Int64 // pages that were requested
}

// serve answers a request for newRawServer.
func (s *pagingServer) serve(w http.ResponseWriter, r *http.Request, method string) {
	switch {
	case method == "initialize":
		s.answer(w, r, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"raw","version":"1"}}`)
	case method == s.method:
		i := int(s.listed.Add(1)) - 1
		items, cursor := s.page(i)
		if cursor += fmt.Sprint(i); i == s.pages-1 {
			cursor = ""
		}
		s.answer(w, r, fmt.Sprintf(`{%q:%s,"nextCursor":%q}`, strings.TrimSuffix(method, "/list"), items, cursor))
	}
}

func (s *pagingServer) answer(w http.ResponseWriter, r *http.Request, result string) {
	if !json.Valid([]byte(result)) {
		s.Errorf("invalid JSON: %.100s", result)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, idOf(r), result)
}

// listedTool returns a list of one tool.
func listedTool(name, description, ofSchema string) string {
	return `[{"name":"` + name + `","description":"` + description + `","inputSchema":{"type":"object","description":"` + ofSchema + `"}}]`
}

// A list that is too large ends while its pages arrive.
func TestModule_BoundsLists(t *testing.T) {
	short.SkipSequential(t) // a list has thirty seconds, and reading it takes ten times longer with the detector
	large := strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		method string
		page   func(i int) (items, cursor string)
		pages  int64 // that are requested at most
		want   string
	}{
		"definitions": {"tools/list", func(i int) (string, string) {
			return listedTool(fmt.Sprint("t", i), "", large[:60<<10]), ""
		}, 70, "the server's definitions have more than 4 MiB"},
		"cursors": {"tools/list", func(int) (string, string) {
			return `[]`, large[:256<<10]
		}, 17, "the server's definitions have more than 4 MiB"},
		"tools that are left out": {"tools/list", func(i int) (string, string) {
			return listedTool(fmt.Sprint("t", i), large, ""), ""
		}, 16, "the pages of a list have more than 16 MiB"},
		"values": {"tools/list", func(i int) (string, string) {
			return `[{"name":"t","inputSchema":{"type":"object","enum":[0` + strings.Repeat(",0", 50_000) + `]}}]`, ""
		}, 6, "the pages of a list have more than 262144 values"},
		"prompts": {"prompts/list", func(i int) (string, string) {
			return fmt.Sprintf(`[{"name":"p%d","description":"%s"}]`, i, large), ""
		}, 16, ""}, // the server counts as one without the prompts
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &pagingServer{T: t, method: tt.method, pages: 100, page: tt.page}
			fx := newFixture(t)
			err := fx.loader.LoadModule(t.Context(), fx.newModule(mcpclient.Config{Name: "web", URL: newRawServer(t, s.serve)}))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if n := s.listed.Load(); n > tt.pages {
				t.Errorf("%d pages were requested, want at most %d", n, tt.pages)
			}
		})
	}
}

// Tools of several pages are offered. Those that are left out, also for a name on another page,
// do not end the list.
func TestModule_ListsPages(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	s := &pagingServer{T: t, method: "tools/list", pages: 6, page: func(i int) (string, string) {
		return [...]string{
			listedTool("twice", "one", ""), listedTool("one", "", ""), listedTool("large", large, ""), `[]`, listedTool("twice", large, ""), listedTool("two", "", ""),
		}[i], "page"
	}}
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "web", URL: newRawServer(t, s.serve)})
	got := slices.DeleteFunc(fx.tools("web"), func(name string) bool { return strings.Contains(name, "prompt") })
	if want := []string{"web__one", "web__two"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// realTools are the tools of realServer in the group fs.
var realTools = []string{
	"fs__again", "fs__both", "fs__crash", "fs__define", "fs__echo", "fs__environment", "fs__fail", "fs__hidden", "fs__number", "fs__parts", "fs__slow",
	"fs__list_resources", "fs__read_resource", "fs__list_prompts", "fs__get_prompt",
}

// forEachTransport runs test with realServer over each transport.
func forEachTransport(t *testing.T, test func(t *testing.T, fx *fixture, c mcpclient.Config)) {
	t.Run("stdio", func(t *testing.T) {
		fx := newFixture(t)
		test(t, fx, fx.childConfig("fs", "real"))
	})
	for name, stateless := range map[string]bool{"http": false, "stateless http": true} {
		t.Run(name, func(t *testing.T) {
			server := realServer()
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true})
			at := httptest.NewServer(handler)
			t.Cleanup(at.Close)
			test(t, newFixture(t), mcpclient.Config{Name: "fs", URL: at.URL})
		})
	}
}

func TestModule_OffersServerAsGroup(t *testing.T) {
	forEachTransport(t, func(t *testing.T, fx *fixture, c mcpclient.Config) {
		fx.load(c)
		if diff := cmp.Diff(realTools, fx.tools("fs")); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		for _, c := range []struct{ name, args, want string }{
			{"fs__echo", `{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
			{"fs__number", `{}`, `{"id":12345678901234567890}`},
			{"fs__both", `{"sky":["sunny"]}`, `{"sky":["sunny"]}`},
			{"fs__both", `{"sky":"grey"}`, `{"content":[{"type":"text","text":"sunny"}],"structuredContent":{"sky":"grey"}}`},
			{"fs__fail", `{}`, `{"error":"tool_execution_failed","message":"no such city","toolName":"fs__fail"}`},
			{"fs__parts", `{}`, `{"content":[{"type":"text","text":"look"},` +
				`{"type":"image","mimeType":"image/png","size":73},{"type":"audio","mimeType":"audio/wav","size":1048577},` +
				`{"type":"resource","text":"a text","uri":"mem://a","mimeType":"text/plain"},{"type":"resource_link","uri":"mem://b","name":"b"}]}`},
			{"fs__hidden", `{}`, `{"content":[{"type":"text","text":"do this[31m\nnow"},` +
				`{"type":"resource","text":"do this[31m\nnow","uri":"mem://do this[31m now"},` +
				`{"type":"resource_link","uri":"mem://a","name":"do this[31m now","title":"do this[31m now","description":"do this[31m now"}]}`},
			{"fs__hidden", `{"structured":1}`, `{"do this[31m\nnow":["do this[31m\nnow"]}`},
			{"fs__hidden", `{"fail":1}`, `"error":"tool_execution_failed","message":"do this[31m\nnow"`},
			{"call_fs_echo", `{"n":1}`, `{"n":1}`},
			{"call_fs_fail", `{}`, `{"error":"tool_execution_failed","message":"no such city","toolName":"call_fs_fail"}`},
			{"call_fs_list-uresources", `{}`, `"uri":"mem://a"`},
			{"fs__list_resources", `{}`, `"uri":"mem://a"`},
			{"fs__read_resource", `{"uri":"mem://a"}`, "contents of a"},
			{"fs__read_resource", `{"uri":"mem://none"}`, "tool_execution_failed"},
			{"fs__list_prompts", `{}`, `"name":"greet"`},
			{"fs__get_prompt", `{"name":"greet","arguments":{"who":"you"}}`, "hello you"},
		} {
			fx.want(fx.call(c.name, c.args), c.want)
		}
		if diff := cmp.Diff([]string{"call_fs_read-uresource"}, fx.tools("fs/read_resource")); diff != "" {
			t.Errorf("a tool alone (-want +got):\n%s", diff)
		}
		info, _ := fx.manager.CurrentSnapshot().LookupGroup("fs")
		if info.Description != "Tools of the MCP server fs" {
			t.Errorf("the description of the group is %q, which was not accepted", info.Description)
		}
	})
}

// A page of a server that is longer than a result may be is read in parts.
func TestModule_LongPageIsReadInParts(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "many", Version: "1"}, &sdk.ServerOptions{PageSize: 1500})
	for i := range 1600 {
		server.AddResource(&sdk.Resource{URI: fmt.Sprintf("mem://%d", i), Name: "r"}, nil)
		server.AddPrompt(&sdk.Prompt{Name: fmt.Sprintf("p%d", i)}, nil)
	}
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(at.Close)
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "many", URL: at.URL})
	for _, name := range []string{"many__list_resources", "many__list_prompts"} {
		type page struct {
			Items      []json.RawMessage
			Next       string
			Truncated  bool
			NextOffset int
		}
		seen, args := map[string]bool{}, map[string]any{}
		for range 3 {
			text, _ := json.Marshal(args)
			var p page
			if err := json.Unmarshal([]byte(fx.call(name, string(text))), &p); err != nil {
				t.Fatal(err)
			}
			for _, item := range p.Items {
				seen[string(item)] = true
			}
			if p.Truncated != (p.NextOffset > 0) || p.Truncated && (p.Next != "" || len(p.Items) != 1000) {
				t.Errorf("%s %s: %d items, truncated %v, nextOffset %d, next %q", name, text, len(p.Items), p.Truncated, p.NextOffset, p.Next)
			}
			if p.Truncated {
				args["offset"] = p.NextOffset
			} else {
				args = map[string]any{"cursor": p.Next}
			}
		}
		if len(seen) != 1600 {
			t.Errorf("%s: %d items of 1600", name, len(seen))
		}
		fx.want(fx.call(name, `{"offset":1500}`), `"items":[],"next":`)
	}
}

// Property: hints of a server count only if it is trusted; a tool without hints is
// Mutating. No hint says which flags a tool has.
func TestModule_TrustsHintsOnlyIfConfigured(t *testing.T) {
	for trusted, want := range map[bool][]tool.Effect{
		false: {tool.Mutating, tool.Mutating, tool.Mutating, tool.Mutating},
		true:  {tool.ReadOnly, tool.Idempotent, tool.Mutating, tool.ReadOnly},
	} {
		fx := newFixture(t)
		c := fx.childConfig("fs", "real")
		c.Trusted = trusted
		fx.load(c)
		for i, name := range []string{"fs__echo", "fs__again", "fs__parts", "fs__read_resource"} {
			if got := fx.handle(name).Definition.Effect; got != want[i] {
				t.Errorf("trusted %v: %s is %v, want %v", trusted, name, got, want[i])
			}
			if fx.handle(name).Definition.Flags.Known() {
				t.Errorf("trusted %v: the server says the flags of %s", trusted, name)
			}
		}
	}
}

func TestModule_ReportsProgressAndCancels(t *testing.T) {
	forEachTransport(t, func(t *testing.T, fx *fixture, c mcpclient.Config) {
		fx.load(c)
		sign := filepath.Join(t.TempDir(), "sign")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var steps []float64
		ctx = tool.WithProgress(ctx, func(p tool.Progress) {
			if p.Message != "step[2J" || p.Total != 9 {
				t.Errorf("got %+v", p)
			}
			if steps = append(steps, p.Done); p.Done == 3 {
				cancel()
			}
		})
		args, _ := json.Marshal(map[string]string{"sign": sign})
		fx.want(fx.callWith(ctx, "fs__slow", string(args)), "internal") // the caller cancelled; the gate makes the error of it
		if !slices.Equal(steps, []float64{1, 2, 3}) {
			t.Errorf("got progress %v", steps)
		}
		waitCtx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		for waitCtx.Err() == nil { // the server keeps serving, and is notified
			if got := fx.callWith(waitCtx, "fs__again", `{}`); got != "again" {
				t.Fatalf("after the cancelled call the server answers %q", got)
			}
			if _, err := os.Stat(sign); err == nil {
				return
			}
		}
		t.Error("the server was not notified of the cancellation")
	})
}

// A program gets PATH and LANG of our environment and what is configured, nothing else.
func TestModule_CleansEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("LANG", "de_DE.UTF-8")
	fx := newFixture(t)
	c := fx.childConfig("fs", "real")
	dir := t.TempDir()
	c.Command.Dir, c.Command.Env = dir, append(c.Command.Env, "TOKEN=given")
	fx.load(c)
	got := map[string]string{}
	for line := range strings.SplitSeq(fx.call("fs__environment", `{}`), "\n") {
		name, value, _ := strings.Cut(line, "=")
		got[name] = value
	}
	home := got["HOME"]
	if home == "" || home == os.Getenv("HOME") || got["TMPDIR"] != home {
		t.Errorf("HOME is %q, TMPDIR is %q", home, got["TMPDIR"])
	}
	for _, name := range []string{"HOME", "TMPDIR", "PID", "GOCOVERDIR", "PWD"} {
		delete(got, name)
	}
	want := map[string]string{"PATH": os.Getenv("PATH"), "LANG": "de_DE.UTF-8", "TOKEN": "given", serverMode: "real", "GORACE": redact.Mask, "DIR": dir} // values of the configuration are redacted
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := fx.loader.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the home directory still exists: %v", err)
	}
}

func TestNew_RejectsInvalidConfig(t *testing.T) {
	fx := newFixture(t)
	long, bad := strings.Repeat("a", 65), "a b"
	for name, c := range map[string]mcpclient.Config{
		"no command and no URL":  {Name: "a"},
		"command and URL":        {Name: "a", URL: "http://a", Command: mcpclient.Command{Path: "a"}},
		"unknown scheme":         {Name: "a", URL: "ftp://a"},
		"URL with password":      {Name: "a", URL: "http://u:p@a"},
		"header with line break": {Name: "a", URL: "http://a", Headers: map[string]string{"X": "a\r\nY: b"}},
		"reserved name":          {Name: "builtin", URL: "http://a"},
		"long prefix":            {Name: "a", URL: "http://a", Prefix: &long},
		"invalid prefix":         {Name: "a", URL: "http://a", Prefix: &bad},
	} {
		c.Pins = fx.pins
		if m, err := mcpclient.New(c); err == nil {
			t.Errorf("%s: got %v", name, m)
		}
	}
	if _, err := mcpclient.New(mcpclient.Config{Name: "a", URL: "http://a"}); err == nil {
		t.Error("no error without pins")
	}
}

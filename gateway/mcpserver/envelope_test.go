package mcpserver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// bulk is JSON of some 100 KB that decodes to many maps.
var bulk = "[" + strings.Repeat(`{"a":1},`, 12_500) + "0]"

func TestEnvelope_LimitsMessages(t *testing.T) {
	f := openFixture(t)
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"capabilities of initialize":  {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"x":%s}},"clientInfo":{"name":"t","version":"1"}}}`, bulk), http.StatusRequestEntityTooLarge},
		"_meta of initialized":        {fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":{"x":%s}}}`, bulk), http.StatusRequestEntityTooLarge},
		"_meta of a call":             {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},"_meta":{"x":%s}}}`, bulk), http.StatusRequestEntityTooLarge},
		"arguments of another method": {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"arguments":%s}}`, bulk), http.StatusRequestEntityTooLarge},
		"arguments of a call":         {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":%q}}}`, bulk), http.StatusOK},
	} {
		if got := f.post(t, "ann@tester", "/mcp", c.body, nil); got.status != c.want {
			t.Errorf("%s: %d %.200s, want %d", name, got.status, got.body, c.want)
		}
	}
	batch := fmt.Sprintf(`[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":%s}}}]`, bulk)
	if got := f.post(t, "ann@tester", "/mcp", batch, map[string]string{"Mcp-Protocol-Version": "2025-03-26"}); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("batch: %d %.200s", got.status, got.body)
	}
}

func TestEnvelope_LimitsLines(t *testing.T) {
	f := openFixture(t)
	in := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"x":%s}},"clientInfo":{"name":"t","version":"1"}}}`, bulk) + "\n"
	var out strings.Builder
	if err := f.server.ServeStdio(t.Context(), strings.NewReader(in), &out, mcpserver.StdioClient{Sender: operator, Role: "tester"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "without its arguments") {
		t.Errorf("answer: %s", out.String())
	}
}

func TestSession_KeepsOnlyVersionOfParams(t *testing.T) {
	f := openFixture(t)
	f.connect(t, "ann@tester", "/mcp", "2025-11-25", &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{Experimental: map[string]any{"x": strings.Repeat("y", 1000)}}})
	kept := slices.Collect(mcpserver.SessionParams(f.server))
	if len(kept) != 1 || kept[0].ProtocolVersion != "2025-11-25" || kept[0].Capabilities != nil || kept[0].ClientInfo != nil || kept[0].Meta != nil {
		t.Errorf("sessions keep %+v, want one with the version alone", kept)
	}
	asked := accept(nil)
	asked.Capabilities = &sdk.ClientCapabilities{Experimental: map[string]any{"x": "y"}}
	f.connect(t, "bob@tester", "/mcp", "2025-11-25", asked)
	for _, p := range slices.Collect(mcpserver.SessionParams(f.server)) {
		if c := p.Capabilities; c != nil && (c.Experimental != nil || c.Elicitation == nil) {
			t.Errorf("a session keeps %+v, want what tools may ask for", c)
		}
	}
}

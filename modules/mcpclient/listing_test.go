package mcpclient_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// What a server says about a tool to clients is pinned as far as it is valid.
func TestPinOf_KeepsListing(t *testing.T) {
	object := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}
	const objectText = `{"properties":{"a":{"type":"string"}},"type":"object"}`
	https := sdk.Icon{Source: "https://server.example/a.png", Sizes: []string{"48x48"}}
	for _, tt := range []struct {
		name string
		tool sdk.Tool
		want tool.Listing
	}{
		{"nothing", sdk.Tool{}, tool.Listing{}},
		{"title", sdk.Tool{Title: "A\u202e title"}, tool.Listing{Title: "A title"}},
		{"title of the annotations", sdk.Tool{Annotations: &sdk.ToolAnnotations{Title: "t"}}, tool.Listing{Title: "t"}},
		{"long title", sdk.Tool{Title: strings.Repeat("a", 300)}, tool.Listing{Title: strings.Repeat("a", 256) + "…"}},
		{"output schema", sdk.Tool{OutputSchema: object}, tool.Listing{Output: json.RawMessage(objectText)}},
		{"output schema of lists", sdk.Tool{OutputSchema: map[string]any{"type": "array"}}, tool.Listing{}},
		{"output schema that does not compile", sdk.Tool{OutputSchema: map[string]any{"type": "object", "required": 1}}, tool.Listing{}},
		{"output schema with invisible characters", sdk.Tool{OutputSchema: map[string]any{"type": "object", "description": "a\u200bb"}}, tool.Listing{}},
		{"large output schema", sdk.Tool{OutputSchema: map[string]any{"type": "object", "description": strings.Repeat("a", 64<<10)}}, tool.Listing{}},
		{"icon", sdk.Tool{Icons: []sdk.Icon{https}}, tool.Listing{Icons: json.RawMessage(`[{"src":"https://server.example/a.png","sizes":["48x48"]}]`)}},
		{"picture in place", sdk.Tool{Icons: []sdk.Icon{{Source: "data:image/png;base64,AA=="}}}, tool.Listing{Icons: json.RawMessage(`[{"src":"data:image/png;base64,AA=="}]`)}},
		{"icon that is a script", sdk.Tool{Icons: []sdk.Icon{https, {Source: "javascript:alert(1)"}}}, tool.Listing{}},
		{"icon of a page", sdk.Tool{Icons: []sdk.Icon{{Source: "data:text/html,a"}}}, tool.Listing{}},
		{"too many icons", sdk.Tool{Icons: []sdk.Icon{https, https, https, https, https, https, https, https, https}}, tool.Listing{}},
		{"_meta", sdk.Tool{Meta: sdk.Meta{"example.com/a": "b"}}, tool.Listing{Meta: json.RawMessage(`{"example.com/a":"b"}`)}},
		{"large _meta", sdk.Tool{Meta: sdk.Meta{"a": strings.Repeat("a", 16<<10)}}, tool.Listing{}},
		{"_meta with invisible characters", sdk.Tool{Meta: sdk.Meta{"a": "\x1b[2J"}}, tool.Listing{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.tool.Name, tt.tool.InputSchema = "a", map[string]any{"type": "object"}
			pin, err := mcpclient.PinOf("", &tt.tool)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, pin.Listing); diff != "" {
				t.Errorf("listing (- want, + got):\n%s", diff)
			}
		})
	}
}

// A tool whose server changes only what clients are told of it waits in quarantine.
func TestQuarantine_ChangedListing(t *testing.T) {
	fx := newFixture(t)
	fx.load(fx.childConfig("fs", "real"))
	fx.want(fx.call("fs__define", `{"name":"late","description":"d","title":"A title"}`), "defined")
	fx.waitFor("late is pending", func() bool { return slices.Equal(fx.pending(), []string{"fs__late"}) })
	fx.accept("fs__late")
	fx.waitFor("late is active", func() bool {
		return fx.hasTool("fs__late") && fx.handle("fs__late").Definition.Listing.Title == "A title"
	})
	fx.want(fx.call("fs__define", `{"name":"late","description":"d","title":"Another title"}`), "defined")
	fx.waitFor("late is removed", func() bool { return !fx.hasTool("fs__late") })
	fx.accept("fs__late")
	fx.waitFor("late is active with its new title", func() bool {
		return fx.hasTool("fs__late") && fx.handle("fs__late").Definition.Listing.Title == "Another title"
	})
}

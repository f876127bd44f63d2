package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// listedTool is a tool with any Listing, also one that tool.New rejects.
type listedTool struct {
	name    string
	listing tool.Listing
}

func (l listedTool) Definition() tool.Definition {
	return tool.Definition{Name: l.name, Description: "d", Input: raw(`{"type":"object"}`), Listing: l.listing}
}

func (l listedTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Text: l.name}, nil
}

// Clients compare the structured part of failures with the output schema of a tool, too. So
// its failures are text only.
func TestToolsCall_FailureFitsOutputSchema(t *testing.T) {
	f := openFixture(t)
	typed := &tool.Options{Listing: tool.Listing{Output: raw(`{"type":"object","required":["text"]}`)}}
	f.register(t, toolgroups.Group{ID: "listed", Tools: []tool.Tool{
		must(t)(tool.New("typed", "returns its arguments", func(_ context.Context, in textArgs) (textArgs, error) {
			if in.Text == "" {
				return in, errcode.New(errcode.FileNotFound, "no text")
			}
			return in, nil
		}, typed)),
	}})
	f.role(t, "reader", "listed")
	for _, version := range versions {
		for token, meta := range map[string]sdk.Meta{"": nil, "with progress": {"progressToken": "a"}} {
			session := f.connect(t, "ann@reader", "/mcp", version, nil)
			for args, want := range map[string]string{`{"text":"a"}`: `{"text":"a"}`, `{"text":""}`: `null`, `{"other":1}`: `null`} {
				r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Meta: meta, Name: "typed", Arguments: raw(args)})
				if err != nil {
					t.Fatal(err)
				}
				got, _ := json.Marshal(r.StructuredContent)
				if string(got) != want || r.IsError != (want == "null") || len(r.Content) != 1 || r.IsError && !strings.Contains(textOf(r), `"error":`) {
					t.Errorf("%s %s: %s returned %s, %+v", version, token, args, got, r)
				}
			}
		}
	}
}

// Clients are told what the Listing of a tool says, but not what only this server may say and
// not what is no JSON.
func TestToolsList_HasListing(t *testing.T) {
	f := openFixture(t)
	f.register(t, toolgroups.Group{ID: "listed", Tools: []tool.Tool{
		listedTool{"full", tool.Listing{
			Title: "A title", Output: raw(`{"type":"object","x":1}`), Icons: raw(`[{"src":"https://a.example/b.png"}]`),
			Meta: raw(`{"a.example/b":1,"toolbox/authInvoke":["mail"],"com.google.cloud/authInvoke":["mail"],"io.modelcontextprotocol/x":1}`),
		}},
		listedTool{"bad", tool.Listing{Output: raw(`{`), Icons: raw(`{"a":1}`), Meta: raw(`[]`)}},
	}})
	f.role(t, "reader", "listed")
	for _, version := range versions {
		list, err := f.connect(t, "ann@reader", "/mcp", version, nil).ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 2 {
			t.Fatalf("%s: %+v, %v", version, list, err)
		}
		if bad := list.Tools[0]; bad.OutputSchema != nil || bad.Icons != nil || bad.Meta != nil {
			t.Errorf("%s: listed %+v", version, bad)
		}
		full := list.Tools[1]
		output, _ := full.OutputSchema.(map[string]any)
		if full.Title != "A title" || output["x"] != 1.0 || len(full.Icons) != 1 || full.Icons[0].Source != "https://a.example/b.png" || len(full.Meta) != 1 || full.Meta["a.example/b"] != 1.0 {
			t.Errorf("%s: listed %+v", version, full)
		}
	}
}

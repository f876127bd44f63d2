package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A role of all groups that is confined to a server cannot tell groups of others
// from those that are nowhere.
func TestGroupsThatGiveNothingAreNotThere(t *testing.T) {
	h := open(t)
	one := made(t)(tool.New("only", "of the server", func(context.Context, nothing) (string, error) { return "", nil }, nil))
	if _, err := h.rt.Groups().Register(toolgroups.Server("far"), toolgroups.Group{ID: "far", Tools: []tool.Tool{one}}); err != nil {
		t.Fatal(err)
	}
	all, server := toolgroups.All(), "far"
	role, err := h.rt.CreateRole(t.Context(), tool.Call{ID: identity.CallID(identity.NewID()), By: operator}, org.RoleSpec{Name: "confined", Prompt: "p", Use: &all, Server: &server})
	if err != nil {
		t.Fatal(err)
	}
	h.roles["confined"] = role.ID
	for group, want := range map[string]bool{"far": true, "probe": false, "workspace": false, "org_management": false, "nowhere": false} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/mcp/"+group, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := (&http.Client{Transport: as{sender: "ann@confined"}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if gone := strings.Contains(string(said), "toolset does not exist"); err != nil || gone == want {
			t.Errorf("%s: %d %s, want it to be there: %t", group, answer.StatusCode, said, want)
		}
	}
}

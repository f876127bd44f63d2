package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestScope_HidesOtherRoles(t *testing.T) {
	f := openFixture(t)
	there := f.post(t, "ann@tester", "/roles/clerk/mcp", `{}`, nil)
	not := f.post(t, "ann@tester", "/roles/clark/mcp", `{}`, nil)
	if strings.ReplaceAll(there.body, "clerk", "R") != strings.ReplaceAll(not.body, "clark", "R") || there.status != http.StatusNotFound {
		t.Errorf("got %d %s, an unknown role gets %s", there.status, there.body, not.body)
	}
	byID := f.post(t, "ann@tester", "/roles/"+string(f.roles["clerk"])+"/mcp", `{}`, nil)
	if !strings.Contains(byID.body, string(errcode.RoleNotFound)) {
		t.Errorf("by id: %s", byID.body)
	}
	for _, group := range []string{"workspace", "no_such_group"} {
		if got := f.post(t, "ann@tester", "/mcp/"+group, `{}`, nil); !strings.Contains(got.body, "toolset does not exist") {
			t.Errorf("group %s: %d %s", group, got.status, got.body)
		}
	}
}

func TestScope_OperatorMustNameRole(t *testing.T) {
	f := openFixture(t)
	if got := f.post(t, "operator", "/mcp", `{}`, nil); !strings.Contains(got.body, "/roles/ROLE/mcp") {
		t.Errorf("%s", got.body)
	}
	if got := f.post(t, "", "/mcp", `{}`, nil); !strings.Contains(got.body, string(errcode.Unauthenticated)) {
		t.Errorf("unauthenticated: %s", got.body)
	}
}

// A role that uses all groups but is restricted to a server cannot distinguish
// groups of other owners from groups that do not exist.
func TestScope_HidesGroupsWithoutTools(t *testing.T) {
	f := openFixture(t)
	one := must(t)(tool.New("only", "of the server", func(context.Context, noArgs) (string, error) { return "", nil }, nil))
	if _, err := grouptest.RegisterGroup(f.rt.GroupManager(), toolgroups.ServerOwner("far"), toolgroups.Group{ID: "far", Tools: []tool.Tool{one}}); err != nil {
		t.Fatal(err)
	}
	all, server := toolgroups.AllGroups(), "far"
	role, err := f.rt.CreateRole(t.Context(), tool.Call{ID: identity.CallID(identity.NewID()), By: operator}, org.RoleSpec{Name: "restricted", Prompt: "p", Use: &all, Server: &server})
	if err != nil {
		t.Fatal(err)
	}
	f.roles["restricted"] = role.ID
	for group, want := range map[string]bool{"far": true, "probe": false, "workspace": false, "org_management": false, "nowhere": false} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/mcp/"+group, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := (&http.Client{Transport: senderTransport{sender: "ann@restricted"}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if gone := strings.Contains(string(said), "toolset does not exist"); err != nil || gone == want {
			t.Errorf("%s: %d %s, want visible: %t", group, answer.StatusCode, said, want)
		}
	}
}

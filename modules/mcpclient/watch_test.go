//lint:file-ignore SA1019 The SDK announces resources by this field to clients of the older revision, which the test needs.

package mcpclient_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// A caller that watches many resources of a server, one after the other, takes none of the room of
// the others.
func TestWatch_IsShared(t *testing.T) {
	fx := newFixture(t)
	server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, &sdk.ServerOptions{HasResources: true})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	fx.load(mcpclient.Config{Name: "far", URL: web.URL})
	resources := fx.handle("far__read_resource").Definition.Catalog.(tool.ResourceVersioner)
	watch := func(user identity.UserName, n int) (allowed int) {
		for i := range n {
			if _, err := resources.ResourceVersion(t.Context(), identity.ByCaller(user, "clerk"), fmt.Sprintf("mcp://far/memo:%s%d", user, i)); err == nil {
				allowed++
			}
		}
		return allowed
	}
	if got := watch("ann", 1100); got != 256 {
		t.Errorf("ann watches %d resources, want 256", got)
	}
	watch("bob", 256)
	watch("cid", 256)
	if got := watch("dan", 50); got != 50 {
		t.Errorf("beside the others, dan watches %d resources of 50", got)
	}
}

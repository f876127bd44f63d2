package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestNew_RequiresRuntime(t *testing.T) {
	if _, err := gateway.New(gateway.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Runtime") {
		t.Errorf("got %v, want an error that names Config.Runtime", err)
	}
}

func TestHandler_HealthAndReadiness(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	if got := gatewaytest.GetJSON[wire.Health](t, f, "/healthz", ""); got != (wire.Health{Status: "ok", Version: "v0"}) {
		t.Errorf("healthz: %+v", got)
	}
	if got := gatewaytest.GetJSON[wire.Health](t, f, "/readyz", ""); got.Status != "ready" {
		t.Errorf("readyz: %+v", got)
	}
	persisttest.Close(t, storeOf(f))
	if status, body := f.SendText(t, "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("with a closed store readyz is %d %s, want 503", status, body)
	}
}

// Below the disk reserve the gateway is not ready, and refuses calls with 503.
func TestHandler_RefusesWorkBelowDiskReserve(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	caller := f.WithCaller(t, f.AddRole(t, "desk", "artifact").ID)
	for _, reserve := range []int64{1 << 50, 1} {
		if err := f.Runtime.ApplyConfig(runtime.OrgConfig{KeepRoles: true, Storage: runtime.StorageLimits{DiskReserve: reserve}}); err != nil {
			t.Fatal(err)
		}
		for path, wanted := range map[string]string{"/readyz": `"storage_low"`, "POST /api/tool/put_artifact/invoke": "less free space than its reserve"} {
			status, body := caller.SendText(t, path, `{"type":"t","content":1}`)
			refused := status == http.StatusServiceUnavailable && strings.Contains(body, wanted)
			if low := reserve > 1; refused != low || !low && status != http.StatusOK {
				t.Errorf("%s with a reserve of %d: %d %s", path, reserve, status, body)
			}
		}
	}
}

func TestListTools_AndGroups(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "desk/phones", "ring", "open")
	group := gatewaytest.GetJSON[toolgroups.GroupInfo](t, f, "/api/v1/tool-groups/desk%2Fphones", "")
	if group.Owner != "test" || group.Count != 1 || group.Tools[0] != "ring" {
		t.Errorf("group %+v", group)
	}
	ring := gatewaytest.GetJSON[wire.Tool](t, f, "/api/v1/tools/ring", "")
	if ring.Group != "desk/phones" || ring.Effect != "mutating" || len(ring.States) != 1 || len(ring.Input) == 0 {
		t.Errorf("tool %+v", ring)
	}
	if got, want := toolNames(t, f, "console"), f.ToolNames("console"); !slices.Equal(got, want) {
		t.Errorf("tools of console: %q, want %q", got, want)
	}
	ids := append(toolgroups.ReservedIDs(), "desk/phones")
	if n := len(gatewaytest.CollectAll(t, f.LocalClient().ListGroups(t.Context()))); n != len(ids) {
		t.Errorf("%d groups, want %d", n, len(ids))
	}
	if got, want := toolNames(t, f, ""), f.ToolNames(ids...); !slices.Equal(got, want) {
		t.Errorf("tools %q, want %q", got, want)
	}
}

// toolNames lists the tools that the API shows the operator; "" are those of all groups.
func toolNames(t *testing.T, f *gatewaytest.Fixture, group string) (names []string) {
	t.Helper()
	for _, one := range gatewaytest.CollectAll(t, f.LocalClient().ListTools(t.Context(), group)) {
		names = append(names, one.Name)
	}
	return names
}

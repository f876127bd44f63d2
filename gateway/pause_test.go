package gateway_test

import (
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// The operator reads which pauses are active, by whom and why. Callers do not.
func TestPause_IsShown(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	c := f.LocalClient()
	show := func() client.ActivePauses {
		t.Helper()
		got, err := c.ListPauses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := show(); got.All != nil || len(got.Roles) != 0 {
		t.Errorf("before a pause: %+v", got)
	}
	if _, err := c.Pause(t.Context(), client.PauseRequest{All: true, Reason: "inspection"}); err != nil {
		t.Fatal(err)
	}
	if got := show().All; got == nil || got.By != "operator" || got.Reason != "inspection" || got.At.IsZero() {
		t.Errorf("in a pause: %+v", got)
	}
	if status, body := f.WithCaller(t, f.AddRole(t, "desk").ID).SendText(t, "GET /api/v1/pause", ""); status != http.StatusForbidden {
		t.Errorf("a caller: %d %s", status, body)
	}
	if _, err := c.Resume(t.Context(), client.PauseRequest{All: true}); err != nil {
		t.Fatal(err)
	}
	if got := show(); got.All != nil || len(got.Roles) != 0 {
		t.Errorf("after it: %+v", got)
	}
	if _, err := c.Pause(t.Context(), client.PauseRequest{Role: "desk", Reason: "holidays"}); err != nil {
		t.Fatal(err)
	}
	if got := show().Roles; len(got) != 1 || got[0].Name != "desk" || got[0].SuspendReason != "holidays" || got[0].SuspendedBy != "operator" {
		t.Errorf("with a paused role: %+v", got)
	}
}

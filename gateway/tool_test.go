package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/modules"
)

// newQuarantineFixture returns a fixture whose module "fs" first offered read
// and write, and then a changed write and a third tool. The function returns a
// handler for an Authenticate.
func newQuarantineFixture(t *testing.T) (*gatewaytest.Fixture, *modules.PinStore, func(auth.Authenticator) http.Handler) {
	f := newFixture(t, gatewaytest.TeamModel)
	pins := modules.NewPinStore(f.Runtime.OwnerStore())
	pin := func(tool, description string) modules.ToolPin {
		return modules.ToolPin{Tool: tool, Description: description, Input: json.RawMessage(`{"type":"object"}`)}
	}
	for _, offer := range [][]modules.ToolPin{
		{pin("read", "reads"), pin("write", "writes")},
		{pin("read", "reads"), pin("write", "writes elsewhere"), pin("erase", "erases")},
	} {
		if _, err := pins.UpdateTools(t.Context(), modules.OwnerOf("fs"), "fs__", offer); err != nil {
			t.Fatal(err)
		}
	}
	return f, pins, func(authenticate auth.Authenticator) http.Handler {
		handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: authenticate, Pins: pins})
		if err != nil {
			t.Fatal(err)
		}
		return handler
	}
}

func TestQuarantine_OperatorListsAndAccepts(t *testing.T) {
	_, pins, handler := newQuarantineFixture(t)
	c := client.NewLocal(handler(auth.AlwaysOperator))
	ctx := t.Context()

	var listed []string
	for s, err := range c.ListQuarantine(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, s.Name+" of "+string(s.Owner))
	}
	if diff := cmp.Diff([]string{"fs__erase of module:fs", "fs__write of module:fs"}, listed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write, err := c.FindTool(ctx, "fs__write")
	if err != nil || write.QuarantineEntry == nil || write.Owner != "module:fs" || write.Offered.Description != "writes elsewhere" || write.Accepted.Description != "writes" {
		t.Fatalf("got %+v, %v", write, err)
	}
	if read, err := c.FindTool(ctx, "read_file"); err != nil || read.QuarantineEntry != nil {
		t.Errorf("got %+v, %v", read, err)
	}
	if _, err := c.AcceptTool(ctx, "fs__write", client.AcceptRequest{Digest: strings.Repeat("0", 64)}); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("another digest: %v", err)
	}
	if _, err := c.AcceptTool(ctx, "fs__read", client.AcceptRequest{Digest: write.Digest}); errcode.CodeOf(err) != errcode.UnknownTool {
		t.Errorf("a tool that is not in quarantine: %v", err)
	}
	accepted, err := c.AcceptTool(ctx, "fs__write", client.AcceptRequest{Digest: write.Digest})
	if err != nil || accepted.Name != "fs__write" || accepted.QuarantineEntry.Quarantined {
		t.Errorf("got %+v, %v", accepted, err)
	}
	p, err := pins.ReadPins(ctx, modules.OwnerOf("fs"))
	if err != nil || len(p.Active) != 2 || len(p.Pending) != 1 || p.Pending[0].Name != "fs__erase" {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := c.FindTool(ctx, "fs__write"); errcode.CodeOf(err) != errcode.UnknownTool { // no module registers it here
		t.Errorf("got %v", err)
	}
}

// A definition that another owner copies is not accepted in its place, and is not shown as one of
// a tool of the first owner.
func TestQuarantine_SeveralOwners(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	pins := modules.NewPinStore(f.Runtime.OwnerStore())
	for _, owner := range []string{"copy", "original"} {
		offer := []modules.ToolPin{{Tool: "forecast", Input: json.RawMessage(`{"type":"object"}`)}, {Tool: "read_file", Input: json.RawMessage(`{"type":"object"}`)}}
		if _, err := pins.QuarantineTools(t.Context(), modules.OwnerOf(owner), "", offer); err != nil {
			t.Fatal(err)
		}
	}
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, Pins: pins})
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := client.NewLocal(handler), t.Context()
	if read, err := c.FindTool(ctx, "read_file"); err != nil || read.QuarantineEntry != nil {
		t.Errorf("a built-in tool is shown with %+v, %v", read.QuarantineEntry, err)
	}
	shown, err := c.FindTool(ctx, "forecast")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AcceptTool(ctx, "forecast", client.AcceptRequest{Digest: shown.Digest}); errcode.CodeOf(err) != errcode.Conflict || !strings.Contains(err.Error(), "module:copy and module:original") {
		t.Errorf("without an owner: %v", err)
	}
	if _, err := c.AcceptTool(ctx, "forecast", client.AcceptRequest{Digest: shown.Digest, Owner: "module:none"}); errcode.CodeOf(err) != errcode.UnknownTool {
		t.Errorf("an owner that offers nothing: %v", err)
	}
	if got, err := c.AcceptTool(ctx, "forecast", client.AcceptRequest{Digest: shown.Digest, Owner: "module:original"}); err != nil || got.Owner != "module:original" {
		t.Errorf("accepted is %+v, %v", got, err)
	}
	for owner, want := range map[string]int{"copy": 0, "original": 1} {
		if p, err := pins.ReadPins(ctx, modules.OwnerOf(owner)); err != nil || len(p.Active) != want {
			t.Errorf("%s has %d accepted definitions, %v", owner, len(p.Active), err)
		}
	}
}

// To callers, a tool in quarantine does not exist.
func TestQuarantine_HiddenFromCallers(t *testing.T) {
	f, pins, handler := newQuarantineFixture(t)
	role := f.AddRole(t, "guide", "*")
	caller := handler(func(*http.Request) (identity.Principal, error) { return identity.ByCaller("ann", role.ID), nil })
	list, err := pins.ListQuarantine(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	answer := func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		caller.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	_, unknown := answer("GET", "/api/v1/tools/no__such", "")
	code, body := answer("GET", "/api/v1/tools/fs__write", "")
	if code != http.StatusNotFound || body != strings.ReplaceAll(unknown, "no__such", "fs__write") {
		t.Errorf("got %d %s", code, body)
	}
	for _, q := range [][3]string{{"GET", "/api/v1/quarantine", ""}, {"POST", "/api/v1/tools/fs__write/accept", `{"digest":"` + list[1].Digest + `"}`}} {
		if code, body := answer(q[0], q[1], q[2]); code != http.StatusForbidden || strings.Contains(body, "elsewhere") {
			t.Errorf("%s %s: %d %s", q[0], q[1], code, body)
		}
	}
	if code, body := answer("GET", "/api/v1/tools", ""); code != http.StatusOK || strings.Contains(body, "fs__") {
		t.Errorf("got %d %s", code, body)
	}
	if after, err := pins.ListQuarantine(t.Context()); err != nil || len(after) != 2 {
		t.Errorf("a caller changed the quarantine: %v, %v", after, err)
	}
}

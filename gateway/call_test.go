package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// newCallFixture returns a fixture with the role reader, which has the tool double, and the
// tool erase, which it does not have.
func newCallFixture(t *testing.T) *gatewaytest.Fixture {
	f := newFixture(t, gatewaytest.TeamModel)
	double, err := tool.New("double", "doubles a number", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (map[string]int, error) {
		if in.N < 0 {
			return nil, errcode.New(errcode.FileNotFound, "no number %d", in.N)
		}
		return map[string]int{"twice": 2 * in.N}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.AddGroup(t, "math", double)
	f.AddTool(t, "danger", "erase")
	f.AddRole(t, "reader", "math")
	return f
}

// recorded lists the calls on the record: the caller, the tool and the outcome.
func recorded(t *testing.T, f *gatewaytest.Fixture) (list []string) {
	t.Helper()
	if err := f.Runtime.Flush(); err != nil {
		t.Fatal(err)
	}
	for e, err := range f.Runtime.JournalStore().Read(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch body := e.Body.(type) {
		case journal.ToolResult:
			list = append(list, fmt.Sprintf("%s %s %s", userOf(body.Caller), body.Tool, body.Result))
		case journal.ToolError:
			list = append(list, fmt.Sprintf("%s %s %s", userOf(body.Caller), body.Tool, body.Code))
		}
	}
	return list
}

// userOf returns a caller on the record without its role.
func userOf(caller string) string {
	user, _, _ := strings.Cut(caller, "@")
	return user
}

// The operator's calls in a role pass the gate and are on the record, whatever their
// outcome.
func TestCallTool_RecordsOutcomes(t *testing.T) {
	f := newCallFixture(t)
	for _, test := range []struct {
		tool, args string
		want       client.CallResult
	}{
		{"double", `{"n":21}`, client.CallResult{Result: json.RawMessage(`{"twice":42}`)}},
		{"double", `{"n":-1}`, client.CallResult{Code: errcode.FileNotFound, IsError: true}},
		{"double", `{"n":"x"}`, client.CallResult{Denied: true, Code: errcode.InvalidArguments, IsError: true}},
		{"erase", `{}`, client.CallResult{Denied: true, Code: errcode.ToolNotAvailable, IsError: true}},
		{"no such/tool", `{}`, client.CallResult{Denied: true, Code: errcode.UnknownTool, IsError: true}},
	} {
		got, err := f.LocalClient().CallTool(t.Context(), test.tool, client.CallRequest{Role: "reader", Args: json.RawMessage(test.args)})
		if err != nil || got.Call == "" {
			t.Fatalf("%s %s: %+v, %v", test.tool, test.args, got, err)
		}
		if test.want.IsError && !strings.Contains(string(got.Result), string(test.want.Code)) {
			t.Errorf("%s %s: result %s", test.tool, test.args, got.Result)
		}
		if got.Call = ""; test.want.Result == nil {
			got.Result = nil
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", test.tool, test.args, diff)
		}
	}
	want := []string{
		`user:operator double {"twice":42}`, "user:operator double file_not_found", "user:operator double invalid_arguments",
		"user:operator erase tool_not_available", "user:operator no such/tool unknown_tool",
	}
	if diff := cmp.Diff(want, recorded(t, f)); diff != "" {
		t.Errorf("on the record (-want +got):\n%s", diff)
	}
}

// A request that names no call is an error, and nothing is on the record.
func TestCallTool_RejectsRequests(t *testing.T) {
	f := newCallFixture(t)
	for body, want := range map[string]string{
		`{"role":"reader","args":[1]}`:           "",
		`{"role":"reader","args":null}`:          `field \"args\" is null`,
		`{"role":"gone"}`:                        `there is no role \"gone\"`,
		`{"args":{}}`:                            `the body has no field \"role\"`,
		`{"role":"reader","more":1}`:             "more",
		`[]`:                                     "malformed",
		``:                                       "malformed",
		`{"role":"reader","args":{"n":1,"n":2}}`: "malformed",
		`{"role":"reader","args":{"n":"` + strings.Repeat("x", 1<<20) + `"}}`:                  "body_too_large",
		`{"role":"reader","args":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}": "malformed",
	} {
		status, text := f.SendText(t, "POST /api/v1/tools/double/call", body)
		if want == "" { // the gate denies arguments that are no object
			if status != http.StatusOK || !strings.Contains(text, `"denied":true`) {
				t.Errorf("%.60s: %d %s", body, status, text)
			}
			continue
		}
		if status < 400 || !strings.Contains(text, want) {
			t.Errorf("%.60s: %d %s, want %q", body, status, text, want)
		}
	}
	if list := recorded(t, f); len(list) != 1 {
		t.Errorf("on the record: %v", list)
	}
}

// Only the operator may call in a role that it names. A role that is gone has no calls.
func TestCallTool_NeedsOperatorAndRole(t *testing.T) {
	f := newCallFixture(t)
	role, err := f.LocalClient().FindRole(t.Context(), "reader")
	if err != nil {
		t.Fatal(err)
	}
	if status, text := f.WithCaller(t, role.ID).SendText(t, "POST /api/v1/tools/double/call", `{"role":"reader","args":{"n":1}}`); status != http.StatusForbidden {
		t.Errorf("a caller: %d %s", status, text)
	}
	if _, err := f.LocalClient().DeleteRole(t.Context(), "reader", false); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"reader", string(role.ID)} {
		_, err := f.LocalClient().CallTool(t.Context(), "double", client.CallRequest{Role: ref})
		if e, ok := errors.AsType[*errcode.Error](err); !ok || e.Code != errcode.RoleNotFound {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if list := recorded(t, f); list != nil {
		t.Errorf("on the record: %v", list)
	}
}

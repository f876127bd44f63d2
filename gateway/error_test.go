package gateway_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
)

// refused decodes an answer that must be an error.
func refused(t testing.TB, body string) errcode.Error {
	t.Helper()
	var v struct {
		Error struct {
			Code    errcode.Code
			Message string
			Details map[string]any
		}
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error.Code == "" || v.Error.Message == "" {
		t.Fatalf("not an error's shape: %s", body)
	}
	return errcode.Error{Code: v.Error.Code, Message: v.Error.Message, Details: v.Error.Details}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../errcode/errcode.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := gateway.Statuses[errcode.Code(value)]; !ok {
			t.Errorf("%s has no status", value)
		}
		found++
		return true
	})
	if found < 50 {
		t.Errorf("found %d codes: the test reads errcode.go wrongly", found)
	}
}

func TestWhatIsWrongIsAnsweredInOneShape(t *testing.T) {
	h := open(t, team)
	h.role(t, "clerk", "artifact")
	big := `{"name":"` + strings.Repeat("x", 1<<20) + `"}`
	tests := []struct {
		name, path, body string
		status           int
		code             errcode.Code
	}{
		{"unknown route", "/api/v1/nothing", "", 404, gateway.RouteNotFound},
		{"no id", "/api/v1/roles/", "", 404, gateway.RouteNotFound},
		{"wrong method", "PUT /api/v1/roles", "{}", 405, gateway.MethodNotAllowed},
		{"wrong method of one", "POST /api/v1/roles/clerk", "{}", 405, gateway.MethodNotAllowed},
		{"unknown role", "/api/v1/roles/nobody", "", 404, errcode.RoleNotFound},
		{"unknown agent", "/api/v1/agents/nobody", "", 404, errcode.AgentNotFound},
		{"unknown agent's journal", "/api/v1/agents/nobody/journal", "", 404, errcode.AgentNotFound},
		{"unknown task", "/api/v1/tasks/none", "", 404, errcode.TaskNotFound},
		{"unknown task's events", "/api/v1/tasks/none/events", "", 404, errcode.TaskNotFound},
		{"unknown task to cancel", "POST /api/v1/tasks/none/cancel", "", 404, errcode.TaskNotFound},
		{"unknown group", "/api/v1/tool-groups/none", "", 404, errcode.GroupNotFound},
		{"tools of an unknown group", "/api/v1/tools?group=none", "", 404, errcode.GroupNotFound},
		{"unknown tool", "/api/v1/tools/none", "", 404, errcode.UnknownTool},
		{"unknown artifact", "/api/v1/artifacts/none", "", 404, errcode.ArtifactNotFound},
		{"unknown parameter", "DELETE /api/v1/roles/clerk?dryrun=1", "", 400, errcode.InvalidArguments},
		{"parameter twice", "/api/v1/roles?limit=1&limit=2", "", 400, errcode.InvalidArguments},
		{"flag that is none", "DELETE /api/v1/roles/clerk?dryRun=maybe", "", 400, errcode.InvalidArguments},
		{"limit that is none", "/api/v1/roles?limit=-1", "", 400, errcode.InvalidArguments},
		{"cursor that is none", "/api/v1/roles?cursor=%25", "", 400, errcode.InvalidArguments},
		{"journal cursor that is none", "/api/v1/agents/nobody/journal?cursor=eA", "", 400, errcode.InvalidArguments},
		{"status that is none", "/api/v1/agents?status=asleep", "", 400, errcode.InvalidArguments},
		{"number of an event that is none", "/api/v1/tasks/none/events?after=x", "", 400, errcode.InvalidArguments},
		{"no body", "POST /api/v1/roles", "", 400, errcode.InvalidArguments},
		{"no object", "POST /api/v1/roles", "[]", 400, errcode.InvalidArguments},
		{"two documents", "POST /api/v1/roles", `{"name":"a"}{}`, 400, errcode.InvalidArguments},
		{"duplicate field", "POST /api/v1/roles", `{"name":"a","name":"b"}`, 400, errcode.InvalidArguments},
		{"field in another case", "POST /api/v1/roles", `{"Name":"a"}`, 400, errcode.InvalidArguments},
		{"unknown field", "POST /api/v1/roles", `{"name":"a","colour":"red"}`, 400, errcode.InvalidArguments},
		{"unknown field below", "POST /api/v1/roles", `{"name":"a","limits":{"colour":1}}`, 400, errcode.InvalidArguments},
		{"null for a list of groups", "POST /api/v1/roles", `{"name":"a","toolGroups":null}`, 400, errcode.InvalidArguments},
		{"another type", "POST /api/v1/roles", `{"name":"a","toolGroups":"artifact"}`, 400, errcode.InvalidArguments},
		{"too much", "POST /api/v1/roles", big, 413, gateway.BodyTooLarge},
		{"role without a name", "POST /api/v1/roles", `{}`, 400, errcode.InvalidRole},
		{"role that passes for root", "POST /api/v1/roles", `{"name":"Root"}`, 400, errcode.InvalidRole},
		{"role that exists", "POST /api/v1/roles", `{"name":"clerk","rolePrompt":"other"}`, 409, errcode.RoleExists},
		{"role that would exist", "POST /api/v1/roles?dryRun=1", `{"name":"clerk","rolePrompt":"other"}`, 409, errcode.RoleExists},
		{"message that says nothing", "POST /api/v1/agents/nobody/messages", `{}`, 400, errcode.InvalidArguments},
		{"message said twice", "POST /api/v1/agents/nobody/messages", `{"text":"a","payload":1}`, 400, errcode.InvalidArguments},
		{"message from the past", "POST /api/v1/agents/nobody/messages", `{"text":"a","delayMs":-1}`, 400, errcode.InvalidArguments},
		{"question about nobody", "POST /api/v1/can", `{"tool":"read_file"}`, 400, errcode.InvalidArguments},
		{"question about two", "POST /api/v1/can", `{"role":"a","agent":"b","tool":"read_file"}`, 400, errcode.InvalidArguments},
		{"question about no tool", "POST /api/v1/can", `{"role":"a"}`, 400, errcode.InvalidArguments},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, body := h.ask(t, test.path, test.body)
			if got := refused(t, body); status != test.status || got.Code != test.code {
				t.Errorf("got %d %s (%s), want %d %s", status, got.Code, got.Message, test.status, test.code)
			}
		})
	}
	if _, err := h.client().Role(t.Context(), "clerk"); err != nil {
		t.Errorf("what was refused has changed something: %v", err)
	}
}

func TestAWrongMethodNamesTheRightOnes(t *testing.T) {
	answer := open(t, team).send(t, "PUT /api/v1/roles/x", "", nil)
	if got, want := answer.Header().Get("Allow"), "GET, PATCH, DELETE"; got != want {
		t.Errorf("Allow: %q, want %q", got, want)
	}
}

func TestInternalsStayInside(t *testing.T) {
	h := open(t, team)
	persisttest.Close(t, h.store)
	for _, path := range []string{"/api/v1/tasks/x", "/api/v1/artifacts/x", "/api/v1/agents/x"} {
		status, body := h.ask(t, path, "")
		got := refused(t, body)
		if status != http.StatusInternalServerError || got.Code != errcode.Internal || strings.Contains(body, "closed") {
			t.Errorf("%s: %d %s, want 500 internal and nothing about the log", path, status, body)
		}
	}
}

func TestAPanicIsAnswered(t *testing.T) {
	handler, err := gateway.New(gateway.Config{Runtime: new(runtime.Runtime), Authenticate: gateway.AlwaysOperator}) // it has nothing, not even an organization
	if err != nil {
		t.Fatal(err)
	}
	status, body := (&house{handler: handler}).ask(t, "/api/v1/roles", "")
	if got := refused(t, body); status != http.StatusInternalServerError || got.Code != errcode.Internal || strings.Contains(body, "nil") {
		t.Errorf("got %d %s", status, body)
	}
}

package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/toolgroups"
)

// todoUsers are the users of the AuthZEN Todo scenario: their ids, and the roles that its
// policy states.
var todoUsers = map[string]struct{ name, role string }{
	"CiRmZDA2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs": {"rick", "admin"},
	"CiRmZDE2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs": {"morty", "editor"},
	"CiRmZDI2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs": {"summer", "editor"},
	"CiRmZDM2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs": {"beth", "viewer"},
	"CiRmZDQ2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs": {"jerry", "viewer"},
}

// newTodoFixture is a gateway whose roles are those of the Todo scenario. A tool has the name of
// an action.
func newTodoFixture(t *testing.T) *gatewaytest.Fixture {
	t.Helper()
	f := newFixture(t, gatewaytest.TeamModel)
	for group, tool := range map[toolgroups.GroupID]string{
		"users": "can_read_user", "todos": "can_read_todos", "new-todos": "can_create_todo", "any-todos": "can_update_todo", "any-todos-away": "can_delete_todo",
	} {
		f.AddTool(t, group, tool)
	}
	f.AddRole(t, "viewer", "users", "todos")
	f.AddRole(t, "editor", "users", "todos", "new-todos")
	f.AddRole(t, "admin", "users", "todos", "new-todos", "any-todos", "any-todos-away")
	return f
}

// todoQuestion returns a question of the scenario in the words of the gate. A user acts in a
// role, an action is a call, and what the action acts on is the tool. The resource keeps its
// properties.
func todoQuestion(t *testing.T, q gjson.Result) (user string, question map[string]any) {
	t.Helper()
	who, ok := todoUsers[q.Get("subject.id").Str]
	if !ok {
		t.Fatalf("unknown user in %s", q.Raw)
	}
	if err := json.Unmarshal([]byte(q.Raw), &question); err != nil {
		t.Fatal(err)
	}
	question["subject"] = map[string]any{"type": "user", "id": who.name + "@" + who.role}
	question["action"] = map[string]any{"name": "call"}
	if resource, ok := question["resource"].(map[string]any); ok {
		setTool(resource, q)
	}
	if list, ok := question["evaluations"].([]any); ok {
		for _, one := range list {
			setTool(one.(map[string]any)["resource"].(map[string]any), q)
		}
	}
	return who.name, question
}

// setTool makes the action of a question the tool that is called.
func setTool(resource map[string]any, q gjson.Result) {
	resource["type"], resource["id"] = "tool", q.Get("action.name").Str
}

// sendQuestion sends a question and returns the answer.
func sendQuestion(t *testing.T, f *gatewaytest.Fixture, path string, question map[string]any) string {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	status, text := f.SendText(t, "POST "+path, string(body))
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", body, status, text)
	}
	return text
}

// The gate answers the requests of the official Todo scenario of AuthZEN, except those whose
// answer depends on the owner of a todo. It denies what an editor may do with its own todos.
func TestEvaluation_TodoScenario(t *testing.T) {
	f, asked, differ := newTodoFixture(t), 0, []string{}
	check := func(q gjson.Result, want bool) {
		user, question := todoQuestion(t, q)
		text := sendQuestion(t, f, "/access/v1/evaluation", question)
		asked++
		if got := gjson.Get(text, "decision").Bool(); got != want {
			differ = append(differ, fmt.Sprintf("%s %s of %s: %t", user, q.Get("action.name").Str, q.Get("resource.properties.ownerID").Str, got))
		}
	}
	data, err := os.ReadFile("testdata/authzen/decisions.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range gjson.GetBytes(data, "evaluation").Array() {
		check(one.Get("request"), one.Get("expected").Bool())
		status, text := f.SendText(t, "POST /access/v1/evaluation", one.Get("request").Raw) // in words that the gate does not know
		if status != http.StatusOK || gjson.Get(text, "decision").Raw != "false" {
			t.Errorf("%s: %d %s", one.Get("request").Raw, status, text)
		}
	}
	const own = " of morty@the-citadel.com: false"
	want := []string{
		"morty can_update_todo" + own, "morty can_delete_todo" + own,
		"summer can_update_todo of summer@the-smiths.com: false", "summer can_delete_todo of summer@the-smiths.com: false",
	}
	if diff := cmp.Diff(want, differ); diff != "" || asked != 40 {
		t.Errorf("%d questions; answers that differ from the scenario:\n%s", asked, diff)
	}
}

// Lists of the scenario are answered in order, with the same exception.
func TestEvaluations_TodoScenario(t *testing.T) {
	f := newTodoFixture(t)
	data, err := os.ReadFile("testdata/authzen/decisions.json")
	if err != nil {
		t.Fatal(err)
	}
	lists := gjson.GetBytes(data, "evaluations").Array()
	if len(lists) != 3 {
		t.Fatalf("%d lists", len(lists))
	}
	for _, list := range lists {
		user, question := todoQuestion(t, list.Get("request"))
		var want []bool
		for i, one := range list.Get("request.evaluations").Array() {
			own := user == "morty" && one.Get("resource.properties.ownerID").Str == "morty@the-citadel.com"
			want = append(want, list.Get(fmt.Sprintf("expected.%d.decision", i)).Bool() && !own)
		}
		text := sendQuestion(t, f, "/access/v1/evaluations", question)
		var got []bool
		if err := json.Unmarshal([]byte(gjson.Get(text, "evaluations.#.decision").Raw), &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", user, diff)
		}
	}
}

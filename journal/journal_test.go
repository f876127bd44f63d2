package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

func Example() {
	e := journal.Event{
		Seq: 7, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Stream: "a1", Task: "t1", Agent: "a1", Role: "scribe",
		Body: journal.ToolCall{Call: "c1", Tool: "read_file", Group: "workspace", Decision: journal.Denied, Code: errcode.ToolNotAvailable, Reason: "tool read_file is not available to this role", Epoch: 3},
	}
	text, err := json.Marshal(e)
	fmt.Println(string(text), err)
	var back journal.Event
	err = json.Unmarshal(text, &back)
	fmt.Println(back.Seq, back.Body.(journal.ToolCall).Tool, err)
	// Output:
	// {"seq":7,"at":"2026-01-02T03:04:05Z","type":"tool_call","stream":"a1","task":"t1","agent":"a1","role":"scribe","call":"c1","tool":"read_file","group":"workspace","decision":"denied","code":"tool_not_available","reason":"tool read_file is not available to this role","epoch":3} <nil>
	// 7 read_file <nil>
}

// bodies has every Body with its fields set, and the names of its JSON fields.
var bodies = []struct {
	body   journal.EventBody
	fields string
}{
	{journal.TaskStarted{Text: "t", Caller: "operator", As: "a", AsID: "r", Groups: []string{"g"}, State: "s"}, "text caller as groups state asId"},
	{journal.AgentSpawned{Name: "r-1", Parent: "p", RoleID: "r", Tools: []string{"a", "b"}, Budget: &journal.ModelBudget{Tokens: 1}, Most: &journal.ModelBudget{Calls: 2}}, "name parent roleId tools budget most"},
	{journal.AgentTerminated{By: "agent:a", Parent: "p", Reason: "why"}, "by parent reason"},
	{journal.MessageSent{Message: message, Due: "2026-01-02T03:04:05Z"}, "message due"},
	{journal.MessageReceived{Message: message}, "message"},
	{journal.ModelAnswered{Answer: model.Answer{Text: "x", Value: json.RawMessage(`{"v":1}`), Calls: []model.Call{{ID: "c", Provider: "p", Name: "n", Args: json.RawMessage(`{}`)}},
		Finish: model.FinishToolCalls, MessagesRead: 2, Log: []string{"l"}, Usage: model.TokenUsage{Input: 1, Output: 2}, Tools: []string{"n"}, State: "s"}}, "answer"},
	{journal.ModelDelta{Text: "t", Tool: "n", Args: "a", Restart: true, Note: "w"}, "text tool args again note"},
	{journal.ToolCall{Call: "c", Tool: "t", Args: json.RawMessage(`{"a":[1]}`), Group: "g", Decision: journal.Allowed, Code: errcode.UnknownTool, Reason: "r", Epoch: 1}, "call tool args group decision code reason epoch"},
	{journal.ToolResult{Call: "c", Tool: "t", Result: json.RawMessage(`"text"`)}, "call tool result"},
	{journal.ToolError{Call: "c", Tool: "t", Code: errcode.ToolTimeout, Result: json.RawMessage(`{"error":"tool_timeout"}`)}, "call tool code result"},
	{journal.StateTransition{Tool: "t", From: "", To: "s"}, "tool from to"},
	{journal.RoleChanged{RoleID: "r", Change: "updated", By: "operator", Record: json.RawMessage(`{"id":"r"}`), Diff: json.RawMessage(`[]`), Epoch: 2}, "roleId change by record diff epoch"},
	{journal.GroupRegistered{Group: "g", Owner: "o", Tools: []string{"t"}, Epoch: 3}, "group owner tools epoch"},
	{journal.GroupUnregistered{Group: "g", Owner: "o", Epoch: 4}, "group owner epoch"},
	{journal.ItemChanged{Kind: "tool", Name: "n", Change: "applied", By: "operator", Digest: "d"}, "kind name change by digest"},
	{journal.GroupOpened{Group: "g", Owner: "o", Tools: []string{"t"}, NextChange: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Epoch: 5}, "group owner tools nextChange epoch"},
	{journal.GroupClosed{Group: "g", Owner: "o", NextChange: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Epoch: 6}, "group owner nextChange epoch"},
	{journal.ContextCompressed{Summary: "s", Items: 5}, "summary items"},
	{journal.TurnFailed{Code: errcode.LLMCallFailed, Message: "m"}, "code message"},
	{journal.TaskDenied{Caller: "user:ann@r", Role: "r", Requested: []string{"g"}, Defaults: []string{"d"}, State: "s", Decision: journal.Denied, Code: errcode.Conflict, Reason: "why"}, "caller askedRole requestedGroups defaultGroups state decision code reason"},
	{journal.PromptGot{Caller: "user:ann@r", Prompt: "p", ArgsHash: "h", ArgsSize: 2, ArgsStart: "{}"}, "caller prompt argsHash argsSize argsStart"},
	{journal.MailDropped{Count: 3, Delayed: 1}, "count delayed"},
	{journal.UngroundedAnswer{}, ""},
	{journal.QuestionAsked{Call: "c", Tool: "t", Question: "q", ID: "i", Kind: tool.PersonInput, Server: "s", Message: "m", Schema: json.RawMessage(`{}`), URL: "u", Until: time.Unix(1, 0).UTC(), Caller: "c"}, "call tool question id kind server message schema url until caller"},
	{journal.QuestionAnswered{Call: "c", Tool: "t", Question: "q", Action: tool.Accept, Content: json.RawMessage(`{}`), By: "b", Reason: "r", Caller: "c"}, "call tool question action content by reason caller"},
	{journal.ApprovalRequested{Approval: "a", Call: "c", Tool: "t", Args: json.RawMessage(`{}`), Digest: "d", Definition: "f", Rules: json.RawMessage(`[]`), Reason: "r", Epoch: 2, Until: time.Unix(1, 0).UTC(), Caller: "c", For: "p", Operation: "apply", Operator: "o", Auth: "token"}, "approval call tool args digest definition rules reason epoch until caller for operation operator auth"},
	{journal.ApprovalEscalated{Approval: "a", Call: "c", Tool: "t", Digest: "d", To: "oncall", Until: time.Unix(1, 0).UTC(), Caller: "c"}, "approval call tool digest to until caller"},
	{journal.ApprovalDecided{Approval: "a", Call: "c", Tool: "t", Outcome: journal.ApprovalGiven, By: "b", As: "finance", Auth: "token", Reason: "r", Override: true, Digest: "d", Args: json.RawMessage(`{}`), Waited: 5, Caller: "c", Pattern: json.RawMessage(`{}`), Standing: "s"}, "approval call tool outcome by as auth reason override digest args waited caller pattern standing"},
	{journal.PatternEnded{Standing: "s", Tool: "t", Outcome: journal.PatternRevoked, Used: 2, By: "b", Auth: "token", Reason: "r"}, "standing tool outcome used by auth reason"},
	{journal.BudgetWarning{Owner: "a", Quantity: "tokens", Used: 8, Limit: 10}, "owner quantity used limit"},
	{journal.TaskPaused{Code: errcode.BudgetExceeded, Reason: "why"}, "code reason"},
	{journal.TaskRetried{By: "operator", Tokens: 5, Cost: 6, Requests: 7, Calls: 8}, "by tokens costNano requests calls"},
	{journal.Paused{By: "operator", Reason: "r", RoleID: "w", All: true, Epoch: 4}, "by reason roleId all epoch"},
	{journal.Resumed{By: "operator", Reason: "r", RoleID: "w", All: true, Epoch: 5}, "by reason roleId all epoch"},
	{journal.TaskEnded{Status: "failed", Result: json.RawMessage(`null`), Incomplete: model.Length, Code: errcode.TaskStalled, Error: "e"}, "status result incomplete code error"},
	{journal.EventGap{Last: 12}, "last"},
}

var message = model.Message{ID: "m", From: "user", To: "a", Task: "t", Payload: json.RawMessage(`{"text":"<é>"}`), CreatedAt: time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC)}

func event(b journal.EventBody) journal.Event {
	return journal.Event{Seq: 9, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Stream: "s", Task: "t", Agent: "a", Role: "r", Body: b}
}

// An event is one flat JSON object that decodes to the same event.
func TestEvent_RoundTripIsFlatJSON(t *testing.T) {
	for _, tt := range bodies {
		t.Run(string(tt.body.EventType()), func(t *testing.T) {
			for i, e := range []journal.Event{event(tt.body), {At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Body: tt.body}} {
				text, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				if err := strictjson.CheckObject(text, nil); err != nil {
					t.Errorf("%s: %v", text, err)
				}
				head := "seq at type stream task agent role "
				if i == 1 {
					head = "at type "
				}
				if diff := cmp.Diff(keys(t, text), strings.Fields(head+tt.fields)); diff != "" {
					t.Errorf("fields (-got +want):\n%s", diff)
				}
				var back journal.Event
				if err := json.Unmarshal(text, &back); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(roundTrip(t, back), roundTrip(t, e)); diff != "" {
					t.Errorf("(-got +want):\n%s", diff)
				}
			}
		})
	}
}

// roundTrip returns an event whose payloads have the escapes of encoding/json.
func roundTrip(t *testing.T, e journal.Event) journal.Event {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// keys lists the keys of an object in order.
func keys(t *testing.T, text []byte) (list []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, key.(string))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// The types of public events are part of the API.
func TestType_PublicTypes(t *testing.T) {
	api := strings.Fields("task_started agent_spawned agent_terminated message model_answered model_delta tool_call tool_result tool_error " +
		"state_transition role_changed group_registered group_unregistered group_opened group_closed item_changed context_compressed mail_dropped task_denied task_paused task_retried paused resumed ungrounded_answer error result gap " +
		"question_asked question_answered prompt_got approval_requested approval_escalated approval_decided approval_pattern_ended budget_warning")
	var public []string
	seen := map[journal.EventType]bool{}
	for _, tt := range bodies {
		if seen[tt.body.EventType()] {
			t.Errorf("two bodies have type %s", tt.body.EventType())
		}
		seen[tt.body.EventType()] = true
		if journal.IsPublic(tt.body) {
			public = append(public, string(tt.body.EventType()))
		}
	}
	slices.Sort(api)
	slices.Sort(public)
	if diff := cmp.Diff(public, api); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if !seen["message_taken"] || journal.IsPublic(journal.MessageReceived{}) {
		t.Error("MessageReceived is public or missing")
	}
}

// docs/record.md has a row for each type of public events, with the fields of the type in order.
func TestDocs_ListAllEvents(t *testing.T) {
	text, err := os.ReadFile("../docs/record.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Types of events\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var want, got []string
	for _, tt := range bodies {
		if journal.IsPublic(tt.body) {
			want = append(want, fmt.Sprintf("`%s` | %s", tt.body.EventType(), fieldsOf(tt.body)))
		}
	}
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 3 && strings.HasPrefix(line, "| `") && strings.TrimSuffix(cells[2], " |") != "" {
			got = append(got, strings.TrimPrefix(cells[0], "| ")+" | "+strings.TrimSpace(cells[1]))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || !found {
		t.Errorf("the table of docs/record.md (-want +got):\n%s", diff)
	}
}

// fieldsOf lists the names of the JSON fields of a body.
func fieldsOf(b journal.EventBody) string {
	var list []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(b)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		list = append(list, "`"+name+"`")
	}
	return strings.Join(list, " ")
}

func TestEvent_ZeroBodiesRoundTrip(t *testing.T) {
	for _, tt := range bodies {
		zero := reflect.Zero(reflect.TypeOf(tt.body)).Interface().(journal.EventBody)
		text, err := json.Marshal(event(zero))
		if err != nil {
			t.Errorf("%s: %v", zero.EventType(), err)
			continue
		}
		var back journal.Event
		if err := json.Unmarshal(text, &back); err != nil || back.Body.EventType() != zero.EventType() {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestEvent_UnmarshalRejects(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"unknown type", `{"at":"2026-01-02T03:04:05Z","type":"model_dream"}`, `unknown event type "model_dream"`},
		{"no type", `{"at":"2026-01-02T03:04:05Z"}`, `unknown event type ""`},
		{"type in wrong case", `{"type":"Message"}`, `unknown event type "Message"`},
		{"field of the wrong kind", `{"type":"tool_call","tool":7}`, `event of type "tool_call"`},
		{"header field of the wrong kind", `{"type":"tool_call","seq":-1}`, "seq"},
		{"invalid time", `{"type":"tool_call","at":"yesterday"}`, "yesterday"},
		{"a list", `[]`, "array"},
		{"truncated object", `{"type":"tool_call"`, "unexpected end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := event(journal.TurnFailed{})
			if err := json.Unmarshal([]byte(tt.doc), &e); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(e, event(journal.TurnFailed{})); diff != "" {
				t.Errorf("the event changed (-got +want):\n%s", diff)
			}
		})
	}
}

func TestEvent_MarshalRejects(t *testing.T) {
	tests := []struct {
		name  string
		event journal.Event
	}{
		{"no body", event(nil)},
		{"invalid JSON arguments", event(journal.ToolCall{Args: json.RawMessage(`{`)})},
		{"year of five digits", journal.Event{At: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), Body: journal.TurnFailed{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if text, err := json.Marshal(tt.event); err == nil {
				t.Errorf("got %s, want an error", text)
			}
		})
	}
}

// A decoded event can be encoded, and decodes to the same event again.
func FuzzEvent(f *testing.F) {
	for _, tt := range bodies {
		text, err := json.Marshal(event(tt.body))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"type":"tool_call","args":null,"at":"2026-01-02T03:04:05.000000001+23:59","epoch":18446744073709551615}`))
	f.Add([]byte(`{"type":"message","message":{"payload":"\u2028<"},"TYPE":"error"}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var e journal.Event
		if json.Unmarshal(doc, &e) != nil {
			return
		}
		once, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", doc, err)
		}
		var back journal.Event
		if err := json.Unmarshal(once, &back); err != nil {
			t.Fatalf("%s was written and cannot be read: %v", once, err)
		}
		twice, err := json.Marshal(back)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v: %s became %s", err, once, twice)
		}
		if back.Seq != e.Seq || !back.At.Equal(e.At) || back.Stream != e.Stream || back.Agent != e.Agent || back.Body.EventType() != e.Body.EventType() {
			t.Fatalf("got %+v, want %+v", back, e)
		}
	})
}

// EventTypes has every type of a stored, public event.
func TestEventTypes(t *testing.T) {
	var want []journal.EventType
	for _, tt := range bodies {
		switch tt.body.(type) {
		case journal.EventGap, journal.ModelDelta: // never stored
			continue
		}
		if journal.IsPublic(tt.body) {
			want = append(want, tt.body.EventType())
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, journal.EventTypes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The head of an event has the fields of the event. A tool and a caller are read from
// calls only: other events may have fields of these names.
func TestEventHead(t *testing.T) {
	call := journal.ToolCall{Tool: "read_file", Decision: journal.Denied, Caller: "user:ann@r", Args: json.RawMessage(`{"tool":"x","caller":"y"}`)}
	for _, tt := range []struct {
		body         journal.EventBody
		tool, caller string
		denied       bool
	}{
		{call, "read_file", "user:ann@r", true},
		{journal.ToolCall{Tool: "t", Decision: journal.Allowed}, "t", "", false},
		{journal.ToolResult{Tool: "t", Caller: "user:ann@r", Result: json.RawMessage(`{"decision":"denied"}`)}, "t", "user:ann@r", false},
		{journal.ToolError{Tool: "t", Caller: "c", Result: json.RawMessage(`1`)}, "t", "c", false},
		{journal.StateTransition{Tool: "t", Caller: "c"}, "t", "c", false},
		{journal.QuestionAsked{Tool: "t", Caller: "c"}, "t", "c", false},
		{journal.QuestionAnswered{Tool: "t", Caller: "c"}, "t", "c", false},
		{journal.ApprovalRequested{Tool: "t", Caller: "c"}, "t", "c", false},
		{journal.ApprovalEscalated{Tool: "t", Caller: "c"}, "t", "c", false},
		{journal.ApprovalDecided{Tool: "t", Caller: "c"}, "t", "c", false},
		{journal.ToolError{Tool: "t", Code: errcode.InsufficientPermissions, Result: json.RawMessage(`1`)}, "t", "", true},
		{journal.TaskDenied{Caller: "user:ann@r", Decision: journal.Denied}, "", "user:ann@r", true},
		{journal.PromptGot{Caller: "user:ann@r", Prompt: "p"}, "", "user:ann@r", false},
		{journal.TaskStarted{Caller: "user:ann@r"}, "", "", false},
	} {
		e := event(tt.body)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		h := journal.NewEventHead(9, text)
		if h.Seq != 9 || h.Type() != tt.body.EventType() || h.Task() != e.Task || h.Agent() != e.Agent || h.Stream() != e.Stream || h.Role() != e.Role || !h.At().Equal(e.At) {
			t.Errorf("%s: another head", text)
		}
		if h.Tool() != tt.tool || h.Caller() != tt.caller || h.IsDenied() != tt.denied {
			t.Errorf("%s: tool %q, caller %q, denied %v", text, h.Tool(), h.Caller(), h.IsDenied())
		}
		if !h.IsType(tt.body.EventType()) || h.IsType("other") || h.IsCaller("other") || h.IsCaller("") || h.IsCaller("user:ann@r") != (tt.caller == "user:ann@r") {
			t.Errorf("%s: another type or caller", text)
		}
	}
}

package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// recordingOrg records each request as text, and the call that made it.
type recordingOrg struct {
	requests []string
	calls    []tool.Call
	err      error // returned by all methods
}

func (o *recordingOrg) record(c tool.Call, format string, args ...any) error {
	o.requests, o.calls = append(o.requests, fmt.Sprintf(format, args...)), append(o.calls, c)
	return o.err
}

func (o *recordingOrg) FindRole(_ context.Context, c tool.Call, name string) (*org.Role, error) {
	if name == "nobody" {
		return nil, o.record(c, "find %s", name)
	}
	return &org.Role{ID: "r1", Name: name, Prompt: "p", Status: org.Active, Caller: "user:ann", Tasks: org.RoleTasks{As: "r2"}}, o.record(c, "find %s", name)
}

func (o *recordingOrg) SearchRoles(_ context.Context, c tool.Call, query string, limit int) ([]org.Role, int, error) {
	total := len(query) // so that a query tells how many roles it finds
	var list []org.Role
	for i := range min(total, limit) {
		list = append(list, org.Role{ID: identity.RoleID(fmt.Sprint("r", i)), Name: "worker", Description: "Works\x1b.", Prompt: "p", Use: toolgroups.SetOf("workspace")})
	}
	return list, total, o.record(c, "search %q", query)
}

func (o *recordingOrg) CreateRole(_ context.Context, c tool.Call, s org.RoleSpec) (org.Role, error) {
	r := org.Role{ID: "r1", Name: s.Name}
	if s.Use != nil {
		r.Use, r.GroupOwners = *s.Use, map[toolgroups.GroupID]toolgroups.GroupOwner{"workspace": toolgroups.Builtin}
	}
	return r, o.record(c, "create %s %q%s use %v grant %v", s.Name, s.Prompt, s.Description, s.Use, s.Grant)
}

func (o *recordingOrg) SpawnAgent(_ context.Context, c tool.Call, s org.SpawnSpec, first json.RawMessage) (org.SpawnResult, error) {
	brief, err := json.Marshal(s.Brief)
	if err != nil {
		return org.SpawnResult{}, err
	}
	out := org.SpawnResult{ID: "a1", Role: s.Role, RoleName: "worker"}
	if first != nil {
		out.MessageID = "m1"
	}
	budget := ""
	if s.Budget != (org.ModelAllowance{}) {
		budget = fmt.Sprintf(" budget %+v", s.Budget)
	}
	return out, errors.Join(s.Brief.Check(), o.record(c, "spawn %s %s %s%s", s.Role, brief, first, budget))
}

func (o *recordingOrg) TerminateAgent(_ context.Context, c tool.Call, id identity.AgentID, reason string) error {
	return o.record(c, "end %s %q", id, reason)
}

func (o *recordingOrg) AgentBelow(_ context.Context, _ tool.Call, name identity.AgentID) (identity.AgentID, error) {
	if name == "clerk-1" {
		return "a1", nil
	}
	return name, nil
}

func (o *recordingOrg) SendAll(_ context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]org.SendResult, error) {
	var list []org.SendResult
	for i := range to {
		s := org.SendResult{MessageID: fmt.Sprint("m", i+1)}
		if delay > 0 {
			due := time.Unix(0, 0).UTC().Add(delay)
			s.Due = &due
		}
		list = append(list, s)
	}
	return list, o.record(c, "send %s %s after %v", strings.Join(to, ","), payload, delay)
}

func orgFixture(t testing.TB, o *recordingOrg) fixture {
	tools, err := organizationTools(o, o, o)
	return newFixture(t, tools, err)
}

const validBrief = `{"objective":"o","constraints":[],"inputs":"i","outputs":"u","completion_criteria":"c"}`

func TestOrgManagement_PassesArguments(t *testing.T) {
	for _, c := range []struct{ name, tool, args, request, answer string }{
		{"find role", "find_role_by_name", `{"name":"worker"}`, `find worker`,
			`{"id":"r1","name":"worker","rolePrompt":"p","createdBy":"","createdByRole":"","createdAt":"0001-01-01T00:00:00Z","status":"active","llmServiceId":null,"toolGroups":[],"grant":[],"groupOwners":null,"revision":0}`},
		{"create role with unknown group", "create_role", `{"name":"worker","rolePrompt":"p","toolGroups":["workspace","wrokspace"]}`, `create worker "p" use workspace,wrokspace grant <nil>`,
			`{"id":"r1","name":"worker","rolePrompt":"","createdBy":"","createdByRole":"","createdAt":"0001-01-01T00:00:00Z","status":"","llmServiceId":null,"toolGroups":["workspace","wrokspace"],"grant":[],"groupOwners":{"workspace":"builtin"},"revision":0,"dangling":["wrokspace"]}`},
		{"find missing role", "find_role_by_name", `{"name":"nobody"}`, `find nobody; search ""`, `null`},
		{"search roles", "find_role_by_name", `{"query":"w"}`, `search "w"`, `{"roles":[{"id":"r0","name":"worker","description":"Works�.","toolGroups":["workspace"]}]}`},
		{"search roles without a match", "find_role_by_name", `{"query":""}`, `search ""`, `{"roles":[]}`},
		{"list roles", "find_role_by_name", `{}`, `search ""`, `{"roles":[]}`},
		{"create role with description", "create_role", `{"name":"worker","rolePrompt":"p","description":" Works.","toolGroups":[]}`, `create worker "p" Works. use - grant <nil>`,
			`{"id":"r1","name":"worker","rolePrompt":"","createdBy":"","createdByRole":"","createdAt":"0001-01-01T00:00:00Z","status":"","llmServiceId":null,"toolGroups":[],"grant":[],"groupOwners":{"workspace":"builtin"},"revision":0}`},
		{"terminate", "terminate_agent", `{"agentId":"a1","reason":"done"}`, `end a1 "done"`, `{"ok":true,"terminatedAgentId":"a1"}`},
		{"terminate without reason", "terminate_agent", `{"agentId":"a1"}`, `end a1 ""`, `{"ok":true,"terminatedAgentId":"a1"}`},
		{"spawn", "spawn_agent", `{"roleId":"r1","taskBrief":` + validBrief + `}`, `spawn r1 ` + validBrief + ` `, `{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"spawn with a budget", "spawn_agent", `{"roleId":"r1","budget":{"tokens":5,"requests":2,"cost":0.25},"taskBrief":` + validBrief + `}`, `spawn r1 ` + validBrief + `  budget {Tokens:5 Cost:250000000 Requests:2 Calls:0}`, `{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"brief as text", "spawn_agent", `{"roleId":"r1","taskBrief":"Count."}`, `spawn r1 {"objective":"Count.","constraints":[],"inputs":"see the objective","outputs":"see the objective","completion_criteria":"see the objective"} `, `{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"spawn with caller as parent", "spawn_agent", `{"roleId":"r1","parentAgentId":"ann","taskBrief":` + validBrief + `}`, `spawn r1 ` + validBrief + ` `, `{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"brief in other spellings", "spawn_agent",
			`{"roleId":"r1","taskBrief":{"objective":"o","constraints":"one","inputs":["i","j"],"outputs":"u","completionCriteria":["c"],"references":"r","priority":"high","collaborators":[{"agentId":"a2","role":"peer"}]}}`,
			`spawn r1 {"objective":"o","constraints":["one"],"inputs":"i\nj","outputs":"u","completion_criteria":"c","collaborators":[{"agentId":"a2","role":"peer"}],"references":["r"],"priority":"high"} `,
			`{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"first message as text", "spawn_agent_with_task", `{"roleId":"r1","taskBrief":` + validBrief + `,"initialMessage":"go"}`,
			`spawn r1 ` + validBrief + ` {"message_type":"task_assignment","text":"go"}`, `{"id":"a1","roleId":"r1","roleName":"worker","messageId":"m1"}`},
		{"first message as object", "spawn_agent_with_task", `{"roleId":"r1","taskBrief":` + validBrief + `,"initialMessage":{"task":"go","dependencies":[],"more":{"n":1.50}}}`,
			`spawn r1 ` + validBrief + ` {"dependencies":[],"message_type":"task_assignment","more":{"n":1.50},"task":"go"}`, `{"id":"a1","roleId":"r1","roleName":"worker","messageId":"m1"}`},
		{"first message with type", "spawn_agent_with_task", `{"roleId":"r1","taskBrief":` + validBrief + `,"initialMessage":{"message_type":"hello"}}`,
			`spawn r1 ` + validBrief + ` {"message_type":"hello"}`, `{"id":"a1","roleId":"r1","roleName":"worker","messageId":"m1"}`},
		{"message", "send_message", `{"to":"root","payload":{"text":"x"}}`, `send root {"text":"x"} after 0s`, `{"messageId":"m1"}`},
		{"message to a list", "send_message", `{"to":["root","a2"],"payload":"x"}`, `send root,a2 "x" after 0s`,
			`{"messages":[{"to":"root","messageId":"m1"},{"to":"a2","messageId":"m2"}]}`},
		{"delayed message to a list of one", "send_message", `{"to":["a2"],"payload":null,"delayMs":"1500"}`, `send a2 null after 1.5s`,
			`{"messages":[{"to":"a2","messageId":"m1"}],"scheduledDeliveryTime":"1970-01-01T00:00:01.5Z"}`},
		{"delayed message", "send_message", `{"to":"root","payload":"x","delayMs":1500}`, `send root "x" after 1.5s`, `{"messageId":"m1","scheduledDeliveryTime":"1970-01-01T00:00:01.5Z"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &recordingOrg{}
			if diff := cmp.Diff(c.answer, orgFixture(t, o).call(t, c.tool, rawJSON(c.args))); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.request, strings.Join(o.requests, "; ")); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if o.calls[0].ID != "call-1" || o.calls[0].By != identity.ByAgent(callerID) {
				t.Errorf("called with %+v", o.calls[0])
			}
		})
	}
}

// A search answers at most 50 roles and says that there are more.
func TestFindRole_SearchIsBounded(t *testing.T) {
	for total, truncated := range map[int]bool{50: false, 51: true, 200: true} {
		got := orgFixture(t, &recordingOrg{}).call(t, "find_role_by_name", rawJSON(`{"query":"`+strings.Repeat("w", total)+`"}`))
		if n := strings.Count(got, `"id"`); n != 50 || strings.Contains(got, `"truncated":true`) != truncated {
			t.Errorf("of %d roles it answers %d: %.100s … %.40s", total, n, got, got[max(0, len(got)-40):])
		}
	}
	if code := orgFixture(t, &recordingOrg{}).callCode(t, "find_role_by_name", rawJSON(`{"name":"a","query":"b"}`)); code != errcode.InvalidArguments {
		t.Errorf("name and query: %q", code)
	}
}

func TestCreateRole_DistinguishesUnsetAndEmptyToolGroups(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"a","rolePrompt":"p"}`:                                                    `create a "p" use <nil> grant <nil>`,
		`{"name":"a","rolePrompt":"","toolGroups":[]}`:                                     `create a "" use - grant <nil>`,
		`{"name":"a","rolePrompt":"p","toolGroups":["workspace","command"],"grant":[]}`:    `create a "p" use workspace,command grant -`,
		`{"name":"a","rolePrompt":"p","toolGroups":["*"],"grant":["artifact","artifact"]}`: `create a "p" use * grant artifact`,
	} {
		o := &recordingOrg{}
		orgFixture(t, o).call(t, "create_role", rawJSON(args))
		if len(o.requests) != 1 || o.requests[0] != want {
			t.Errorf("%s: request %q, want %q", args, o.requests, want)
		}
	}
}

func TestParseDelay(t *testing.T) {
	for delay, want := range map[string]time.Duration{
		`1000`: time.Second, `"1000"`: time.Second, `" 1000 "`: time.Second, `0.5`: 500 * time.Microsecond, `"1e3"`: time.Second,
		`0`: 0, `-1`: 0, `"-5"`: 0, `"NaN"`: 0, `"soon"`: 0, `""`: 0, `null`: 0,
		`"\u0031000"`: time.Second, `1e300`: 365 * 24 * time.Hour, `"Infinity"`: 365 * 24 * time.Hour, `"-Infinity"`: 0,
	} {
		o := &recordingOrg{}
		orgFixture(t, o).call(t, "send_message", rawJSON(`{"to":"root","payload":1,"delayMs":`+delay+`}`))
		if want := fmt.Sprintf("send root 1 after %v", want); len(o.requests) != 1 || o.requests[0] != want {
			t.Errorf("delayMs %s: request %q, want %q", delay, o.requests, want)
		}
	}
}

func TestSendMessage_MergesQuickRepliesIntoPayload(t *testing.T) {
	for _, c := range []struct{ payload, replies, want string }{
		{`{"text":"x"}`, `["a","b"]`, `{"quickReplies":["a","b"],"text":"x"}`},
		{`{"quickReplies":["old"]}`, `["new"]`, `{"quickReplies":["new"]}`},
		{`"x"`, `["a"]`, `{"quickReplies":["a"],"text":"x"}`},
		{`null`, `["a"]`, `{"quickReplies":["a"],"text":null}`},
		{`[1]`, `["a"]`, `{"quickReplies":["a"],"text":[1]}`},
		{`{"text":"x"}`, `[]`, `{"text":"x"}`},
		{`null`, `null`, `null`},
		{`""`, `[]`, `""`},
		{`1`, `["1","2","3","4","5","6","7","8","9","10"]`, `{"quickReplies":["1","2","3","4","5","6","7","8","9","10"],"text":1}`},
	} {
		o := &recordingOrg{}
		orgFixture(t, o).call(t, "send_message", rawJSON(`{"to":"user","payload":`+c.payload+`,"quickReplies":`+c.replies+`}`))
		if want := "send user " + c.want + " after 0s"; len(o.requests) != 1 || o.requests[0] != want {
			t.Errorf("%s with %s: request %q, want %q", c.payload, c.replies, o.requests, want)
		}
	}
}

func TestSendMessage_RejectsInvalidQuickReplies(t *testing.T) {
	for replies, want := range map[string]errcode.Code{
		`["1","2","3","4","5","6","7","8","9","10","11"]`: errcode.TooManyReplies,
		`[1]`:        errcode.InvalidReplies,
		`"yes"`:      errcode.InvalidReplies,
		`{"a":"b"}`:  errcode.InvalidReplies,
		`["a",null]`: errcode.InvalidReplies,
		`["a",""]`:   errcode.BlankReply,
		`[" \t"]`:    errcode.BlankReply,
	} {
		o := &recordingOrg{}
		if got := orgFixture(t, o).callCode(t, "send_message", rawJSON(`{"to":"user","payload":1,"quickReplies":`+replies+`}`)); got != want {
			t.Errorf("%s: code %q, want %q", replies, got, want)
		}
		if o.requests != nil {
			t.Errorf("%s: request %q", replies, o.requests)
		}
	}
}

func TestSpawnAgent_RejectsOtherParent(t *testing.T) {
	o := &recordingOrg{}
	k := orgFixture(t, o)
	for _, name := range []string{"spawn_agent", "spawn_agent_with_task"} {
		answer := k.call(t, name, rawJSON(`{"roleId":"r1","parentAgentId":"bob","taskBrief":`+validBrief+`,"initialMessage":"go"}`))
		for _, part := range []string{`"error":"invalid_parentAgentId"`, `"expected":"ann"`, `"got":"bob"`} {
			if !strings.Contains(answer, part) {
				t.Errorf("%s returns %s without %s", name, answer, part)
			}
		}
	}
	if o.requests != nil {
		t.Errorf("request %q", o.requests)
	}
}

// A budget that is no amount is rejected before anything is spawned. So is one without a field.
func TestSpawnAgent_RejectsBudget(t *testing.T) {
	o := &recordingOrg{}
	k := orgFixture(t, o)
	for _, budget := range []string{`{}`, `{"tokens":0}`, `{"tokens":-5}`, `{"requests":1.5}`, `{"tokens":1e300}`, `{"cost":0}`, `{"cost":-1}`, `{"cost":1e-12}`, `{"cost":1e300}`, `{"cost":"NaN"}`, `{"calls":0}`, `{"calls":-1}`, `{"answers":5}`, `5`} {
		answer := k.call(t, "spawn_agent_with_task", rawJSON(`{"roleId":"r1","budget":`+budget+`,"taskBrief":`+validBrief+`,"initialMessage":"go"}`))
		if !strings.Contains(answer, `"error":"invalid_arguments"`) {
			t.Errorf("budget %s: %s", budget, answer)
		}
	}
	if o.requests != nil {
		t.Errorf("request %q", o.requests)
	}
}

func TestSpawnAgent_ReportsAllMissingBriefFields(t *testing.T) {
	answer := orgFixture(t, &recordingOrg{}).call(t, "spawn_agent", rawJSON(`{"roleId":"r1","taskBrief":{"objective":" ","outputs":"o"}}`))
	var got struct {
		Error   errcode.Code
		Missing []string `json:"missing_fields"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"objective", "constraints", "inputs", "completion_criteria"}, got.Missing); diff != "" || got.Error != errcode.InvalidTaskBrief {
		t.Errorf("%s (-want +got):\n%s", got.Error, diff)
	}
}

func TestSpawnAgentWithTask_RejectsEmptyMessage(t *testing.T) {
	for _, message := range []string{`1`, `true`, `["go"]`, `null`, `""`, `" \n"`, `{}`} {
		o := &recordingOrg{}
		got := orgFixture(t, o).callCode(t, "spawn_agent_with_task", rawJSON(`{"roleId":"r1","taskBrief":`+validBrief+`,"initialMessage":`+message+`}`))
		if got != errcode.MissingMessage || o.requests != nil {
			t.Errorf("%s: code %q, request %q; want missing_initial_message", message, got, o.requests)
		}
	}
}

func TestOrgManagement_ReturnsErrorsToModel(t *testing.T) {
	calls := map[string]string{
		"find_role_by_name":     `{"name":"a"}`,
		"create_role":           `{"name":"a","rolePrompt":""}`,
		"spawn_agent":           `{"roleId":"r1","taskBrief":` + validBrief + `}`,
		"spawn_agent_with_task": `{"roleId":"r1","taskBrief":` + validBrief + `,"initialMessage":"go"}`,
		"terminate_agent":       `{"agentId":"a1"}`,
		"send_message":          `{"to":"root","payload":1}`,
	}
	for name, args := range calls {
		rejected := errcode.New(errcode.InsufficientPermissions, "no").With("missing", []string{"x"})
		answer := orgFixture(t, &recordingOrg{err: rejected}).call(t, name, rawJSON(args))
		if want := fmt.Sprintf(`{"error":"insufficient_permissions","message":"no","missing":["x"],"toolName":%q}`, name); answer != want {
			t.Errorf("rejected: %s, want %s", answer, want)
		}
		answer = orgFixture(t, &recordingOrg{err: errors.New("open /var/lib/rolecall: no space")}).call(t, name, rawJSON(args))
		if !strings.Contains(answer, `"error":"internal"`) || strings.Contains(answer, "/var/lib") {
			t.Errorf("internal error: %s", answer)
		}
	}
}

func TestSendMessage_RejectedListSendsNothing(t *testing.T) {
	k := orgFixture(t, &recordingOrg{err: errcode.New(errcode.UnknownRecipient, "send to \"bob\"").With("to", "bob")})
	const want = `{"error":"unknown_recipient","message":"send to \"bob\"; nothing was sent to any recipient","to":"bob","toolName":"send_message"}`
	if got := k.call(t, "send_message", rawJSON(`{"to":["ann","bob"],"payload":1}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What a model reads of a role names neither the caller whose tasks have it nor the role
// that bounds the tasks of its callers.
func TestRoleView_LeavesOutCallers(t *testing.T) {
	text, err := json.Marshal(newRoleView(org.Role{ID: "r1", Name: "clerk", Caller: "secret", CallerRole: "secret", Tasks: org.RoleTasks{As: "secret"}}))
	if err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("got %s, %v", text, err)
	}
}

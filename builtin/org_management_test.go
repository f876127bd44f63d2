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

// office remembers what was asked of it, in words, and by which call.
type office struct {
	asked []string
	calls []tool.Call
	err   error // what it answers with
}

func (o *office) note(c tool.Call, format string, args ...any) error {
	o.asked, o.calls = append(o.asked, fmt.Sprintf(format, args...)), append(o.calls, c)
	return o.err
}

func (o *office) FindRole(_ context.Context, c tool.Call, name string) (*org.Role, error) {
	if name == "nobody" {
		return nil, o.note(c, "find %s", name)
	}
	return &org.Role{ID: "r1", Name: name, Prompt: "p", Status: org.Active}, o.note(c, "find %s", name)
}

func (o *office) CreateRole(_ context.Context, c tool.Call, s org.RoleSpec) (org.Role, error) {
	r := org.Role{ID: "r1", Name: s.Name}
	if s.Use != nil {
		r.Use, r.GroupOwners = *s.Use, map[toolgroups.GroupID]toolgroups.Owner{"workspace": toolgroups.Builtin}
	}
	return r, o.note(c, "create %s %q use %v grant %v", s.Name, s.Prompt, s.Use, s.Grant)
}

func (o *office) Spawn(_ context.Context, c tool.Call, s org.Spawn, first json.RawMessage) (org.SpawnResult, error) {
	brief, err := json.Marshal(s.Brief)
	if err != nil {
		return org.SpawnResult{}, err
	}
	out := org.SpawnResult{ID: "a1", Role: s.Role, RoleName: "worker"}
	if first != nil {
		out.MessageID = "m1"
	}
	return out, errors.Join(s.Brief.Check(), o.note(c, "spawn %s %s %s", s.Role, brief, first))
}

func (o *office) Terminate(_ context.Context, c tool.Call, id identity.AgentID, reason string) error {
	return o.note(c, "end %s %q", id, reason)
}

func (o *office) SendAll(_ context.Context, c tool.Call, to []string, payload json.RawMessage, delay time.Duration) ([]org.SendResult, error) {
	var list []org.SendResult
	for i := range to {
		s := org.SendResult{MessageID: fmt.Sprint("m", i+1)}
		if delay > 0 {
			due := time.Unix(0, 0).UTC().Add(delay)
			s.Due = &due
		}
		list = append(list, s)
	}
	return list, o.note(c, "send %s %s after %v", strings.Join(to, ","), payload, delay)
}

func officeKit(t testing.TB, o *office) kit {
	tools, err := organizationTools(o, o, o)
	return newKit(t, tools, err)
}

const wholeBrief = `{"objective":"o","constraints":[],"inputs":"i","outputs":"u","completion_criteria":"c"}`

func TestTheOrganizationIsAskedForWhatTheModelWants(t *testing.T) {
	for _, c := range []struct{ name, tool, args, asked, answer string }{
		{"a role there is", "find_role_by_name", `{"name":"worker"}`, `find worker`,
			`{"id":"r1","name":"worker","rolePrompt":"p","createdBy":"","createdByRole":"","createdAt":"0001-01-01T00:00:00Z","status":"active","llmServiceId":null,"toolGroups":[],"grant":[],"groupOwners":null,"revision":0}`},
		{"a role", "create_role", `{"name":"worker","rolePrompt":"p","toolGroups":["workspace","wrokspace"]}`, `create worker "p" use workspace,wrokspace grant <nil>`,
			`{"id":"r1","name":"worker","rolePrompt":"","createdBy":"","createdByRole":"","createdAt":"0001-01-01T00:00:00Z","status":"","llmServiceId":null,"toolGroups":["workspace","wrokspace"],"grant":[],"groupOwners":{"workspace":"builtin"},"revision":0,"dangling":["wrokspace"]}`},
		{"a role there is not", "find_role_by_name", `{"name":"nobody"}`, `find nobody`, `null`},
		{"an end", "terminate_agent", `{"agentId":"a1","reason":"done"}`, `end a1 "done"`, `{"ok":true,"terminatedAgentId":"a1"}`},
		{"an end without reason", "terminate_agent", `{"agentId":"a1"}`, `end a1 ""`, `{"ok":true,"terminatedAgentId":"a1"}`},
		{"an agent", "spawn_agent", `{"roleId":"r1","taskBrief":` + wholeBrief + `}`, `spawn r1 ` + wholeBrief + ` `, `{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"an agent with its maker as parent", "spawn_agent", `{"roleId":"r1","parentAgentId":"ann","taskBrief":` + wholeBrief + `}`, `spawn r1 ` + wholeBrief + ` `, `{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"a brief in other spellings", "spawn_agent",
			`{"roleId":"r1","taskBrief":{"objective":"o","constraints":"one","inputs":["i","j"],"outputs":"u","completionCriteria":["c"],"references":"r","priority":"high","collaborators":[{"agentId":"a2","role":"peer"}]}}`,
			`spawn r1 {"objective":"o","constraints":["one"],"inputs":"i\nj","outputs":"u","completion_criteria":"c","collaborators":[{"agentId":"a2","role":"peer"}],"references":["r"],"priority":"high"} `,
			`{"id":"a1","roleId":"r1","roleName":"worker"}`},
		{"an agent with a text", "spawn_agent_with_task", `{"roleId":"r1","taskBrief":` + wholeBrief + `,"initialMessage":"go"}`,
			`spawn r1 ` + wholeBrief + ` {"message_type":"task_assignment","text":"go"}`, `{"id":"a1","roleId":"r1","roleName":"worker","messageId":"m1"}`},
		{"an agent with an object", "spawn_agent_with_task", `{"roleId":"r1","taskBrief":` + wholeBrief + `,"initialMessage":{"task":"go","dependencies":[],"more":{"n":1.50}}}`,
			`spawn r1 ` + wholeBrief + ` {"dependencies":[],"message_type":"task_assignment","more":{"n":1.50},"task":"go"}`, `{"id":"a1","roleId":"r1","roleName":"worker","messageId":"m1"}`},
		{"an agent with a type of message", "spawn_agent_with_task", `{"roleId":"r1","taskBrief":` + wholeBrief + `,"initialMessage":{"message_type":"hello"}}`,
			`spawn r1 ` + wholeBrief + ` {"message_type":"hello"}`, `{"id":"a1","roleId":"r1","roleName":"worker","messageId":"m1"}`},
		{"a message", "send_message", `{"to":"root","payload":{"text":"x"}}`, `send root {"text":"x"} after 0s`, `{"messageId":"m1"}`},
		{"a message to a list", "send_message", `{"to":["root","a2"],"payload":"x"}`, `send root,a2 "x" after 0s`,
			`{"messages":[{"to":"root","messageId":"m1"},{"to":"a2","messageId":"m2"}]}`},
		{"a message to a list of one, later", "send_message", `{"to":["a2"],"payload":null,"delayMs":"1500"}`, `send a2 null after 1.5s`,
			`{"messages":[{"to":"a2","messageId":"m1"}],"scheduledDeliveryTime":"1970-01-01T00:00:01.5Z"}`},
		{"a message later", "send_message", `{"to":"root","payload":"x","delayMs":1500}`, `send root "x" after 1.5s`, `{"messageId":"m1","scheduledDeliveryTime":"1970-01-01T00:00:01.5Z"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &office{}
			if diff := cmp.Diff(c.answer, officeKit(t, o).ask(t, c.tool, raw(c.args))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{c.asked}, o.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if o.calls[0].ID != "call-1" || o.calls[0].By != identity.ByAgent(ann) {
				t.Errorf("in the name of %+v", o.calls[0])
			}
		})
	}
}

func TestToolGroupsLeftOutAreNotThoseThatAreNone(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"a","rolePrompt":"p"}`:                                                    `create a "p" use <nil> grant <nil>`,
		`{"name":"a","rolePrompt":"","toolGroups":[]}`:                                     `create a "" use - grant <nil>`,
		`{"name":"a","rolePrompt":"p","toolGroups":["workspace","command"],"grant":[]}`:    `create a "p" use workspace,command grant -`,
		`{"name":"a","rolePrompt":"p","toolGroups":["*"],"grant":["artifact","artifact"]}`: `create a "p" use * grant artifact`,
	} {
		o := &office{}
		officeKit(t, o).ask(t, "create_role", raw(args))
		if len(o.asked) != 1 || o.asked[0] != want {
			t.Errorf("%s: asked %q, want %q", args, o.asked, want)
		}
	}
}

func TestADelayIsANumberOrANumericText(t *testing.T) {
	for delay, want := range map[string]time.Duration{
		`1000`: time.Second, `"1000"`: time.Second, `" 1000 "`: time.Second, `0.5`: 500 * time.Microsecond, `"1e3"`: time.Second,
		`0`: 0, `-1`: 0, `"-5"`: 0, `"NaN"`: 0, `"soon"`: 0, `""`: 0, `null`: 0,
		`"\u0031000"`: time.Second, `1e300`: 365 * 24 * time.Hour, `"Infinity"`: 365 * 24 * time.Hour, `"-Infinity"`: 0,
	} {
		o := &office{}
		officeKit(t, o).ask(t, "send_message", raw(`{"to":"root","payload":1,"delayMs":`+delay+`}`))
		if want := fmt.Sprintf("send root 1 after %v", want); len(o.asked) != 1 || o.asked[0] != want {
			t.Errorf("delayMs %s: asked %q, want %q", delay, o.asked, want)
		}
	}
}

func TestQuickRepliesStandInThePayload(t *testing.T) {
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
		o := &office{}
		officeKit(t, o).ask(t, "send_message", raw(`{"to":"user","payload":`+c.payload+`,"quickReplies":`+c.replies+`}`))
		if want := "send user " + c.want + " after 0s"; len(o.asked) != 1 || o.asked[0] != want {
			t.Errorf("%s with %s: asked %q, want %q", c.payload, c.replies, o.asked, want)
		}
	}
}

func TestQuickRepliesThatAreNoneAreRefused(t *testing.T) {
	for replies, want := range map[string]errcode.Code{
		`["1","2","3","4","5","6","7","8","9","10","11"]`: errcode.TooManyReplies,
		`[1]`:        errcode.InvalidReplies,
		`"yes"`:      errcode.InvalidReplies,
		`{"a":"b"}`:  errcode.InvalidReplies,
		`["a",null]`: errcode.InvalidReplies,
		`["a",""]`:   errcode.BlankReply,
		`[" \t"]`:    errcode.BlankReply,
	} {
		o := &office{}
		if got := officeKit(t, o).code(t, "send_message", raw(`{"to":"user","payload":1,"quickReplies":`+replies+`}`)); got != want {
			t.Errorf("%s: code %q, want %q", replies, got, want)
		}
		if o.asked != nil {
			t.Errorf("%s: asked %q", replies, o.asked)
		}
	}
}

func TestTheParentOfANewAgentIsItsMaker(t *testing.T) {
	o := &office{}
	k := officeKit(t, o)
	for _, name := range []string{"spawn_agent", "spawn_agent_with_task"} {
		answer := k.ask(t, name, raw(`{"roleId":"r1","parentAgentId":"bob","taskBrief":`+wholeBrief+`,"initialMessage":"go"}`))
		for _, part := range []string{`"error":"invalid_parentAgentId"`, `"expected":"ann"`, `"got":"bob"`} {
			if !strings.Contains(answer, part) {
				t.Errorf("%s answers %s without %s", name, answer, part)
			}
		}
	}
	if o.asked != nil {
		t.Errorf("asked %q", o.asked)
	}
}

func TestABriefThatLacksSomethingIsToldAllItLacks(t *testing.T) {
	answer := officeKit(t, &office{}).ask(t, "spawn_agent", raw(`{"roleId":"r1","taskBrief":{"objective":" ","outputs":"o"}}`))
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

func TestAFirstMessageIsATextOrAnObject(t *testing.T) {
	for _, message := range []string{`1`, `true`, `["go"]`, `null`, `""`, `" \n"`, `{}`} {
		o := &office{}
		got := officeKit(t, o).code(t, "spawn_agent_with_task", raw(`{"roleId":"r1","taskBrief":`+wholeBrief+`,"initialMessage":`+message+`}`))
		if got != errcode.MissingMessage || o.asked != nil {
			t.Errorf("%s: code %q, asked %q; want missing_initial_message", message, got, o.asked)
		}
	}
}

func TestWhatTheOrganizationRefusesTheModelReads(t *testing.T) {
	calls := map[string]string{
		"find_role_by_name":     `{"name":"a"}`,
		"create_role":           `{"name":"a","rolePrompt":""}`,
		"spawn_agent":           `{"roleId":"r1","taskBrief":` + wholeBrief + `}`,
		"spawn_agent_with_task": `{"roleId":"r1","taskBrief":` + wholeBrief + `,"initialMessage":"go"}`,
		"terminate_agent":       `{"agentId":"a1"}`,
		"send_message":          `{"to":"root","payload":1}`,
	}
	for name, args := range calls {
		refusal := errcode.New(errcode.InsufficientPermissions, "no").With("missing", []string{"x"})
		answer := officeKit(t, &office{err: refusal}).ask(t, name, raw(args))
		if want := fmt.Sprintf(`{"error":"insufficient_permissions","message":"no","missing":["x"],"toolName":%q}`, name); answer != want {
			t.Errorf("refused: %s, want %s", answer, want)
		}
		answer = officeKit(t, &office{err: errors.New("open /var/lib/rolecall: no space")}).ask(t, name, raw(args))
		if !strings.Contains(answer, `"error":"internal"`) || strings.Contains(answer, "/var/lib") {
			t.Errorf("broken: %s", answer)
		}
	}
}

func TestWhoIsOnAListThatIsRefusedGetsNothingAndThatIsSaid(t *testing.T) {
	k := officeKit(t, &office{err: errcode.New(errcode.UnknownRecipient, "send to \"bob\"").With("to", "bob")})
	const want = `{"error":"unknown_recipient","message":"send to \"bob\"; none of the recipients was sent anything","to":"bob","toolName":"send_message"}`
	if got := k.ask(t, "send_message", raw(`{"to":["ann","bob"],"payload":1}`)); got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
}

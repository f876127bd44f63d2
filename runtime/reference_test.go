package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// through is a recorder that keeps nothing: calls that no agent's loop makes.
type through struct{}

// Started implements gate.Recorder.
func (through) Started(context.Context, []*gate.Admission) error { return nil }

// Finished implements gate.Recorder.
func (through) Finished(context.Context, []*gate.Admission) error { return nil }

// ask takes one call through the gate in an agent's name.
func (h *house) ask(t *testing.T, by identity.AgentID, name, args string) tool.Result {
	t.Helper()
	r := gate.Request{Call: tool.Call{ID: identity.CallID(identity.NewID()), Name: name, Args: json.RawMessage(args)}}
	list, err := h.Gate().Call(t.Context(), identity.ByAgent(by), []gate.Request{r}, through{})
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Result
}

// any stands for a value that is there and not checked.
const something = "*"

// The built-in organization tools as agent-society has them, with what this
// project decided otherwise. Each row names the line of the reference, by
// section and subject, that it checks. $worker, $root … in arguments and
// answers are the ids of the family; $role is a role boss may spawn.
func TestTheReferenceLineByLine(t *testing.T) {
	const whole = `"objective":"o","constraints":[],"inputs":"i","outputs":"u","completion_criteria":"c"`
	free := make(chan struct{})
	defer close(free)
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	beside := h.hire(t, f.root, org.RoleSpec{Name: "beside", Use: use("org_management"), Grant: use()})
	knows := h.hire(t, f.root, org.RoleSpec{Name: "knows", Use: use("org_management"), Grant: use()}, beside)
	role, err := h.CreateRole(t.Context(), called(identity.ByAgent(f.boss)), org.RoleSpec{Name: "clerk", Prompt: "p", Use: use()})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := h.CreateRole(t.Context(), called(identity.ByAgent(f.root)), org.RoleSpec{Name: "wide", Use: use("workspace")})
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "deleted", Use: use()})
	if err == nil {
		_, err = h.DeleteRole(operator, deleted.ID, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.NewReplacer("$role", string(role.ID), "$wide", string(wide.ID), "$deleted", string(deleted.ID), "$whole", whole,
		"$root", string(f.root), "$boss", string(f.boss), "$worker", string(f.worker), "$helper", string(f.helper), "$peer", string(f.peer),
		"$gone", string(f.gone), "$beside", string(beside), "$knows", string(knows), "$stranger", string(f.stranger), "$otherRoot", string(f.otherRoot))
	for _, c := range []struct {
		line string // of the reference, or of what is ours
		by   identity.AgentID
		tool string
		args string
		want obj // of the answer; nil for null
	}{
		{"§2 find_role_by_name: null when there is none, which is not an error", f.boss, "find_role_by_name", `{"name":"nobody"}`, nil},
		{"§2 find_role_by_name: a deleted role is not found", f.boss, "find_role_by_name", `{"name":"deleted"}`, nil},
		{"§2 find_role_by_name: the role object", f.boss, "find_role_by_name", `{"name":"clerk"}`, obj{"id": "$role", "name": "clerk", "rolePrompt": "p", "createdBy": "$boss", "createdAt": something, "status": "active", "llmServiceId": nil, "toolGroups": []any{}}},
		{"§2 create_role: the role", f.boss, "create_role", `{"name":"a","rolePrompt":"p","toolGroups":["org_management"]}`, obj{"id": something, "name": "a", "rolePrompt": "p", "createdBy": "$boss", "createdAt": something, "status": "active", "llmServiceId": nil, "toolGroups": []any{"org_management"}}},
		{"§2 create_role: the same name gives the existing role; ours: if it is the caller's own and the same", f.boss, "create_role", `{"name":"clerk","rolePrompt":"p","toolGroups":[]}`, obj{"id": "$role"}},
		{"§2 create_role, ours: another content is refused", f.boss, "create_role", `{"name":"clerk","rolePrompt":"q","toolGroups":[]}`, obj{"error": "role_exists", "roleId": "$role"}},
		{"§8 create_role, ours: no toolGroups is all the maker may give", f.boss, "create_role", `{"name":"b","rolePrompt":"p"}`, obj{"toolGroups": []any{"org_management"}}},
		{"§12 create_role: unknown groups are shown", f.root, "create_role", `{"name":"c","rolePrompt":"p","toolGroups":["wrokspace"]}`, obj{"toolGroups": []any{"wrokspace"}, "dangling": []any{"wrokspace"}}},
		{"§12 create_role: nobody gives what they may not grant", f.boss, "create_role", `{"name":"d","rolePrompt":"p","toolGroups":["workspace"]}`, obj{"error": "insufficient_permissions", "missing": []any{"workspace"}}},
		{"§12 create_role: root is never imitated", f.boss, "create_role", `{"name":"Root","rolePrompt":"p"}`, obj{"error": "invalid_role"}},

		{"§2 spawn_agent: {id, roleId, roleName}", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole}}`, obj{"id": something, "roleId": "$role", "roleName": "clerk"}},
		{"§2 spawn_agent_with_task: {id, roleId, roleName, messageId}", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$whole},"initialMessage":{"task":"t"}}`, obj{"id": something, "roleId": "$role", "roleName": "clerk", "messageId": something}},
		{"§4 taskBrief: completionCriteria, and a string for a list", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{"objective":"o","constraints":"one","inputs":["i","j"],"outputs":"u","completionCriteria":["c"],"references":"r"}}`, obj{"id": something}},
		{"§4 taskBrief: what is optional", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole,"references":["r"],"priority":"high","collaborators":[{"agentId":"$peer","role":"r","description":"d"},{"agentId":"$worker","role":"r"}]}}`, obj{"id": something}},
		{"§4 taskBrief: ours, a field nobody knows is refused by name", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole,"deadline":"now"}}`, obj{"error": "invalid_arguments"}},
		{"§4 initialMessage: a plain string", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$whole},"initialMessage":"go"}`, obj{"messageId": something}},
		{"§3 invalid_task_brief: missing_fields lists all", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{}}`, obj{"error": "invalid_task_brief", "missing_fields": []any{"objective", "constraints", "inputs", "outputs", "completion_criteria"}}},
		{"§3 invalid_task_brief: blank is missing", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{"objective":" ","constraints":null,"inputs":"i","outputs":[],"completion_criteria":"c"},"initialMessage":"go"}`, obj{"error": "invalid_arguments"}},
		{"§3 invalid_task_brief: an empty list is missing, but for constraints", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{"objective":" ","constraints":[],"inputs":"i","outputs":[],"completion_criteria":"c"},"initialMessage":"go"}`, obj{"error": "invalid_task_brief", "missing_fields": []any{"objective", "outputs"}}},
		{"§3 taskBrief, ours: what is merely missing is invalid_arguments", f.boss, "spawn_agent", `{"roleId":"$role"}`, obj{"error": "invalid_arguments"}},
		{"§3 missing_initial_message: ours, one that says nothing", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$whole},"initialMessage":" "}`, obj{"error": "missing_initial_message"}},
		{"§3 missing_initial_message: ours, an empty object", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$whole},"initialMessage":{}}`, obj{"error": "missing_initial_message"}},
		{"§3 initialMessage, ours: what is merely missing is invalid_arguments", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$whole}}`, obj{"error": "invalid_arguments"}},
		{"§3 role_not_found: roleId", f.boss, "spawn_agent", `{"roleId":"nowhere","taskBrief":{$whole}}`, obj{"error": "role_not_found", "roleId": "nowhere"}},
		{"§3 role_not_found: a deleted role", f.boss, "spawn_agent", `{"roleId":"$deleted","taskBrief":{$whole}}`, obj{"error": "role_not_found", "roleId": "$deleted"}},
		{"§3 role_not_found: a name is no id", f.boss, "spawn_agent", `{"roleId":"clerk","taskBrief":{$whole}}`, obj{"error": "role_not_found", "roleId": "clerk"}},
		{"§3 not_child_role, ours: cover decides", f.boss, "spawn_agent", `{"roleId":"$wide","taskBrief":{$whole}}`, obj{"error": "insufficient_permissions", "missing": []any{"workspace"}}},
		{"§4 roles, ours: another maker's role that is covered", f.worker, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole}}`, obj{"id": something}},
		{"§3 invalid_parentAgentId: expected, got", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole},"parentAgentId":"$root"}`, obj{"error": "invalid_parentAgentId", "expected": "$boss", "got": "$root"}},
		{"§10 spawning: the default parent is the caller", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole},"parentAgentId":"$boss"}`, obj{"id": something}},
		{"§5 contacts, ours: a collaborator the spawner may not message", f.worker, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole,"collaborators":[{"agentId":"$stranger","role":"r"}]}}`, obj{"error": "cross_task_communication_denied", "to": "$stranger"}},
		{"§5 contacts, ours: a collaborator who has ended", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$whole,"collaborators":[{"agentId":"$gone","role":"r"}]}}`, obj{"error": "unknown_recipient", "to": "$gone"}},

		{"§3 agent_not_found: agentId", f.boss, "terminate_agent", `{"agentId":"nobody"}`, obj{"error": "agent_not_found", "agentId": "nobody"}},
		{"§3 agent_not_found: who has ended already", f.boss, "terminate_agent", `{"agentId":"$gone"}`, obj{"error": "agent_not_found", "agentId": "$gone"}},
		{"§3 not_child_agent: the parent", f.worker, "terminate_agent", `{"agentId":"$boss"}`, obj{"error": "not_child_agent", "agentId": "$boss"}},
		{"§3 not_child_agent: itself", f.worker, "terminate_agent", `{"agentId":"$worker"}`, obj{"error": "not_child_agent", "agentId": "$worker"}},
		{"§3 not_child_agent: root", f.boss, "terminate_agent", `{"agentId":"$root"}`, obj{"error": "not_child_agent", "agentId": "$root"}},
		{"§3 not_child_agent: another task's", f.boss, "terminate_agent", `{"agentId":"$stranger"}`, obj{"error": "not_child_agent", "agentId": "$stranger"}},

		{"§2 send_message: {messageId}", f.boss, "send_message", `{"to":"$worker","payload":{"text":"x"}}`, obj{"messageId": something}},
		{"§2 send_message: to may be a list (L)", f.boss, "send_message", `{"to":["$worker","user","root"],"payload":{"text":"x"}}`, obj{"messages": []any{obj{"to": "$worker", "messageId": something}, obj{"to": "user", "messageId": something}, obj{"to": "root", "messageId": something}}}},
		{"§2 send_message: a delayed one says scheduledDeliveryTime", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":50}`, obj{"messageId": something, "scheduledDeliveryTime": something}},
		{"§5 payload: empty text", f.boss, "send_message", `{"to":"user","payload":""}`, obj{"messageId": something}},
		{"§5 payload: null", f.boss, "send_message", `{"to":"user","payload":null}`, obj{"messageId": something}},
		{"§5 payload: nested", f.boss, "send_message", `{"to":"user","payload":{"a":[{"b":null}],"message_type":"odd"}}`, obj{"messageId": something}},
		{"§5 delayed: a numeric string", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":"50"}`, obj{"messageId": something, "scheduledDeliveryTime": something}},
		{"§5 delayed: negative is at once", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":-5}`, obj{"messageId": something}},
		{"§5 delayed: NaN is at once", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":"NaN"}`, obj{"messageId": something}},
		{"§5 envelope, ours: who sends is not for the caller to say", f.boss, "send_message", `{"to":"user","payload":1,"from":"$root"}`, obj{"error": "invalid_arguments"}},
		{"§5 recipients: root and user always", f.worker, "send_message", `{"to":["root","user"],"payload":1}`, obj{"messages": something}},
		{"§5 task isolation: climb to the task's root", f.worker, "send_message", `{"to":"$root","payload":1}`, obj{"messageId": something}},
		{"§3 unknown_recipient: to", f.boss, "send_message", `{"to":"nobody","payload":1}`, obj{"error": "unknown_recipient", "to": "nobody"}},
		{"§3 unknown_recipient: who has ended", f.boss, "send_message", `{"to":"$gone","payload":1}`, obj{"error": "unknown_recipient", "to": "$gone"}},
		{"§3 cross_task_communication_denied: from, to", f.boss, "send_message", `{"to":["$worker","$stranger"],"payload":1}`, obj{"error": "cross_task_communication_denied", "from": "$boss", "to": "$stranger"}},
		{"§3 a contact refusal, ours: insufficient_permissions", f.worker, "send_message", `{"to":"$beside","payload":1}`, obj{"error": "insufficient_permissions", "to": "$beside"}},
		{"§5 contacts, ours: a collaborator is written to", knows, "send_message", `{"to":"$beside","payload":1}`, obj{"messageId": something}},
		{"§5 contacts, ours: and gains no right to write back", beside, "send_message", `{"to":"$knows","payload":1}`, obj{"error": "insufficient_permissions", "to": "$knows"}},
		{"§3 quickReplies_too_many", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":["1","2","3","4","5","6","7","8","9","10","11"]}`, obj{"error": "quickReplies_too_many"}},
		{"§3 quickReplies_invalid_type", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":[1]}`, obj{"error": "quickReplies_invalid_type"}},
		{"§3 quickReplies_empty_string", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":[" "]}`, obj{"error": "quickReplies_empty_string"}},
		{"§10 quick replies: ten", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":["1","2","3","4","5","6","7","8","9","10"]}`, obj{"messageId": something}},
		{"§10 quick replies: none and empty are ignored", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":[]}`, obj{"messageId": something}},

		{"§3 tool_not_available: toolName", f.root, "read_file", `{"path":"x"}`, obj{"error": "tool_not_available", "toolName": "read_file"}},
		{"§3 unknown_tool: toolName", f.boss, "nothing_known", `{}`, obj{"error": "unknown_tool", "toolName": "nothing_known"}},
		{"§1 arguments that are not JSON: the tool's name", f.boss, "send_message", `{"to":`, obj{"error": "invalid_arguments", "toolName": "send_message"}},
		{"§2 terminate_agent: {ok:true, terminatedAgentId}", f.boss, "terminate_agent", `{"agentId":"$helper","reason":"r"}`, obj{"ok": true, "terminatedAgentId": "$helper"}},
	} {
		t.Run(c.line, func(t *testing.T) {
			result := h.ask(t, c.by, c.tool, ids.Replace(c.args))
			got := decode(result.JSON())
			if c.want == nil && string(result.JSON()) != "null" {
				t.Fatalf("got %s, want null", result.JSON())
			}
			if result.IsError != (c.want["error"] != nil) {
				t.Errorf("IsError is %t: %s", result.IsError, result.JSON())
			}
			if !like(got, c.want, ids) {
				t.Errorf("got %s\nwant %v", result.JSON(), c.want)
			}
			if message, _ := got["message"].(string); result.IsError && len(message) < 20 {
				t.Errorf("the message tells nothing: %s", result.JSON())
			}
		})
	}
}

// like says whether a value is what is wanted; of an object, in the fields
// that are wanted.
func like(got, want any, ids *strings.Replacer) bool {
	switch want := want.(type) {
	case obj:
		fields, _ := got.(obj)
		for name := range maps.Keys(want) {
			if value, ok := fields[name]; !ok || !like(value, want[name], ids) {
				return false
			}
		}
		return true
	case []any:
		list, _ := got.([]any)
		return slices.EqualFunc(list, want, func(g, w any) bool { return like(g, w, ids) })
	case string:
		return want == something && got != nil || got == ids.Replace(want)
	}
	return got == want
}

func TestAMessageToAListReachesEverybodyOnceOrNobody(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	large := encode(strings.Repeat("x", 5<<20))
	for _, c := range []struct {
		name    string
		to      []identity.AgentID
		payload json.RawMessage
		code    errcode.Code
		sent    []identity.AgentID
	}{
		{"to one", []identity.AgentID{f.worker}, encode(1), "", []identity.AgentID{f.worker}},
		{"to all kinds", []identity.AgentID{f.worker, "user", f.helper, "root", f.peer}, encode(1), "", []identity.AgentID{f.worker, "user", f.helper, f.root, f.peer}},
		{"twice to the same", []identity.AgentID{"root", f.worker, f.root, f.worker, "root"}, encode(1), "", []identity.AgentID{f.root, f.worker}},
		{"with somebody unknown", []identity.AgentID{f.worker, "nobody"}, encode(1), errcode.UnknownRecipient, nil},
		{"with somebody of another task", []identity.AgentID{f.stranger, f.worker}, encode(1), errcode.CrossTask, nil},
		{"with itself", []identity.AgentID{f.worker, f.boss}, encode(1), errcode.InsufficientPermissions, nil},
		{"too large for so many", []identity.AgentID{f.worker, f.helper}, large, errcode.InvalidArguments, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(said[journal.MessageSent](t, h))
			var to []string
			for _, id := range c.to {
				to = append(to, string(id))
			}
			sent, err := h.SendAll(t.Context(), called(identity.ByAgent(f.boss)), to, c.payload, 0)
			if errcode.Of(err) != c.code {
				t.Fatalf("%v, want %q", err, c.code)
			}
			byID := map[string]identity.AgentID{}
			var got []identity.AgentID
			for _, m := range said[journal.MessageSent](t, h)[before:] {
				byID[m.Message.ID] = identity.AgentID(m.Message.To)
				got = append(got, identity.AgentID(m.Message.To))
			}
			if diff := cmp.Diff(c.sent, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.code != "" {
				return
			}
			for i, s := range sent {
				if to := byID[s.MessageID]; to != c.to[i] && !(c.to[i] == "root" && to == f.root) {
					t.Errorf("the message to %s is said to be the one to %s", c.to[i], to)
				}
			}
		})
	}
}

// The process ends when the messages are on disk and the outcome is not.
func TestAListIsNotWrittenToTwice(t *testing.T) {
	dir := scratch(t)
	died := make(chan struct{})
	var told json.RawMessage
	p := plan{dir: dir, model: brain(func(r model.Request) model.Answer {
		if answers(r) == 0 {
			return do("send_message", obj{"to": []string{"user", "root"}, "payload": "x", "delayMs": 1})
		}
		told = results(r)[0].Content
		if len(messages(r)) < 2 {
			return wait()
		}
		return end("done")
	})}
	p.store = func(s journal.Store) journal.Store {
		dead := false // only root commits by then
		return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			if dead {
				return 0, errKilled
			}
			seq, err := s.Commit(ctx, b)
			if n := len(b.Send); n > 0 && b.Stream != "" {
				dead, err = true, errors.Join(err, errKilled)
			}
			return seq, err
		}}
	}
	p.config = func(c *runtime.Config) { c.Fatal = func(error) { close(died) } }
	h := p.open(t)
	id := h.start(t, org.TaskSpec{})
	<-died
	h.leave(t)

	p.store, p.config = nil, nil
	h = p.open(t)
	h.resume(t, id)
	h.want(t, h.wait(t, id), `"done"`, "")
	var sent []any
	for _, m := range said[journal.MessageSent](t, h)[1:] {
		if string(m.Message.Payload) == `"x"` {
			to := m.Message.To
			if to != "user" {
				to = "root"
			}
			sent = append(sent, obj{"to": to, "messageId": m.Message.ID})
		}
	}
	if got := decode(told)["messages"]; len(sent) != 2 || cmp.Diff(any(sent), got) != "" {
		t.Errorf("sent %v, told %s", sent, told)
	}
	if decode(told)["scheduledDeliveryTime"] == nil {
		t.Errorf("told no time: %s", told)
	}
	if taken := h.taken(t, h.topOf(t, id)); fmt.Sprint(taken[1:]) != `["x"]` {
		t.Errorf("root took %v", taken)
	}
}

// topOf gives the top agent of a task that may have ended.
func (h *house) topOf(t *testing.T, id identity.TaskID) identity.AgentID {
	t.Helper()
	task, err := h.TaskRecord(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task.Top
}

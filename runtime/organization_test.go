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

// nullRecorder is a gate.CallRecorder that records nothing, for calls outside an
// agent's loop.
type nullRecorder struct{}

// CallPending implements gate.CallRecorder.
func (nullRecorder) CallPending(context.Context, []gate.CallRequest) error { return nil }

// CallStarted implements gate.CallRecorder.
func (nullRecorder) CallStarted(context.Context, []*gate.Admission) error { return nil }

// CallFinished implements gate.CallRecorder.
func (nullRecorder) CallFinished(context.Context, []*gate.Admission) error { return nil }

// callTool passes one call through the gate in an agent's name.
func (fx *fixture) callTool(t *testing.T, by identity.AgentID, name, args string) tool.Result {
	t.Helper()
	r := gate.CallRequest{Call: tool.Call{ID: identity.CallID(identity.NewID()), Name: name, Args: json.RawMessage(args)}}
	list, err := fx.Gate().Call(t.Context(), identity.ByAgent(by), []gate.CallRequest{r}, nullRecorder{})
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Result
}

// anyValue stands for any value but null.
const anyValue = "*"

// The behavior of the built-in organization tools, one case per rule: results,
// error codes and the fields of error objects. $worker, $root and so on in
// arguments and results are ids of the agent tree, and $role is a role that
// boss may spawn.
func TestOrganizationTools_Behavior(t *testing.T) {
	const brief = `"objective":"o","constraints":[],"inputs":"i","outputs":"u","completion_criteria":"c"`
	free := make(chan struct{})
	defer close(free)
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	sibling := fx.spawnAgent(t, f.root, org.RoleSpec{Name: "sibling", Use: groupSet("org_management"), Grant: groupSet()})
	contact := fx.spawnAgent(t, f.root, org.RoleSpec{Name: "contact", Use: groupSet("org_management"), Grant: groupSet()}, sibling)
	role, err := fx.CreateRole(t.Context(), newCall(identity.ByAgent(f.boss)), org.RoleSpec{Name: "clerk", Prompt: "p", Use: groupSet()})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := fx.CreateRole(t.Context(), newCall(identity.ByAgent(f.root)), org.RoleSpec{Name: "wide", Use: groupSet("workspace")})
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "deleted", Use: groupSet()})
	if err == nil {
		_, err = fx.DeleteRole(operator, deleted.ID, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	boss, _ := fx.Org().AgentByID(f.boss)
	ids := strings.NewReplacer("$bossName", boss.Name, "$role", string(role.ID), "$wide", string(wide.ID), "$deleted", string(deleted.ID), "$brief", brief,
		"$root", string(f.root), "$boss", string(f.boss), "$worker", string(f.worker), "$helper", string(f.helper), "$peer", string(f.peer),
		"$terminated", string(f.terminated), "$sibling", string(sibling), "$contact", string(contact), "$otherAgent", string(f.otherAgent), "$otherRoot", string(f.otherRoot))
	for _, c := range []struct {
		rule string
		by   identity.AgentID
		tool string
		args string
		want obj // fields of the result; nil for null
	}{
		{"find_role_by_name: null for an unknown name", f.boss, "find_role_by_name", `{"name":"nobody"}`, nil},
		{"find_role_by_name: a deleted role is not found", f.boss, "find_role_by_name", `{"name":"deleted"}`, nil},
		{"find_role_by_name: the role object", f.boss, "find_role_by_name", `{"name":"clerk"}`, obj{"id": "$role", "name": "clerk", "rolePrompt": "p", "createdBy": "$boss", "createdAt": anyValue, "status": "active", "llmServiceId": nil, "toolGroups": []any{}}},
		{"find_role_by_name: groups that the caller does not have are left out", f.boss, "find_role_by_name", `{"name":"wide"}`, obj{"id": anyValue, "name": "wide", "toolGroups": []any{}, "groupOwners": map[string]any{}}},
		{"find_role_by_name: root has all groups", f.root, "find_role_by_name", `{"name":"wide"}`, obj{"toolGroups": []any{"workspace"}}},
		{"find_role_by_name: a query lists roles that it may spawn", f.boss, "find_role_by_name", `{"query":"clerk"}`, obj{"roles": []any{obj{"id": "$role", "name": "clerk", "description": "", "toolGroups": []any{}}}}},
		{"find_role_by_name: a query that nothing matches", f.boss, "find_role_by_name", `{"query":"nobody"}`, obj{"roles": []any{}}},
		{"find_role_by_name: name and query", f.boss, "find_role_by_name", `{"name":"clerk","query":"clerk"}`, obj{"error": "invalid_arguments"}},
		{"create_role: a description", f.root, "create_role", `{"name":"e","description":"Counts.","rolePrompt":"p","toolGroups":[]}`, obj{"description": "Counts."}},
		{"create_role: a description of two lines", f.root, "create_role", `{"name":"f","description":"a\nb","rolePrompt":"p","toolGroups":[]}`, obj{"error": "invalid_role"}},
		{"create_role: the role", f.boss, "create_role", `{"name":"a","rolePrompt":"p","toolGroups":["org_management"]}`, obj{"id": anyValue, "name": "a", "rolePrompt": "p", "createdBy": "$boss", "createdAt": anyValue, "status": "active", "llmServiceId": nil, "toolGroups": []any{"org_management"}}},
		{"create_role: the caller's identical role is returned", f.boss, "create_role", `{"name":"clerk","rolePrompt":"p","toolGroups":[]}`, obj{"id": "$role"}},
		{"create_role: a different role of the same name is rejected", f.boss, "create_role", `{"name":"clerk","rolePrompt":"q","toolGroups":[]}`, obj{"error": "role_exists", "roleId": "$role"}},
		{"create_role: without toolGroups it gets all the creator may grant", f.boss, "create_role", `{"name":"b","rolePrompt":"p"}`, obj{"toolGroups": []any{"org_management"}}},
		{"create_role: an unknown group is rejected with a suggestion", f.root, "create_role", `{"name":"c","rolePrompt":"p","toolGroups":["wrokspace"]}`, obj{"error": "group_not_found", "groups": []any{"wrokspace"}, "message": `role "c": there is no tool group "wrokspace" (did you mean "workspace"?); name groups that exist`}},
		{"create_role: groups beyond the creator's grant are rejected", f.boss, "create_role", `{"name":"d","rolePrompt":"p","toolGroups":["workspace"]}`, obj{"error": "insufficient_permissions", "missing": []any{"workspace"}}},
		{"create_role: the name root is reserved", f.boss, "create_role", `{"name":"Root","rolePrompt":"p"}`, obj{"error": "invalid_role"}},

		{"spawn_agent: {id, name, roleId, roleName}", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief}}`, obj{"id": anyValue, "name": "clerk-1", "roleId": "$role", "roleName": "clerk"}},
		{"spawn_agent_with_task: {id, name, roleId, roleName, messageId}", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$brief},"initialMessage":{"task":"t"}}`, obj{"id": anyValue, "name": "clerk-2", "roleId": "$role", "roleName": "clerk", "messageId": anyValue}},
		{"taskBrief: alias completionCriteria, string for a list", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{"objective":"o","constraints":"one","inputs":["i","j"],"outputs":"u","completionCriteria":["c"],"references":"r"}}`, obj{"id": anyValue}},
		{"taskBrief: optional fields", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief,"references":["r"],"priority":"high","collaborators":[{"agentId":"$peer","role":"r","description":"d"},{"agentId":"$worker","role":"r"}]}}`, obj{"id": anyValue}},
		{"taskBrief: unknown field", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief,"deadline":"now"}}`, obj{"error": "invalid_arguments"}},
		{"initialMessage: a plain string", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$brief},"initialMessage":"go"}`, obj{"messageId": anyValue}},
		{"invalid_task_brief: lists all missing fields", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{}}`, obj{"error": "invalid_task_brief", "missing_fields": []any{"objective", "constraints", "inputs", "outputs", "completion_criteria"}}},
		{"taskBrief: null is invalid", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{"objective":" ","constraints":null,"inputs":"i","outputs":[],"completion_criteria":"c"},"initialMessage":"go"}`, obj{"error": "invalid_arguments"}},
		{"invalid_task_brief: an empty list is missing, except constraints", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{"objective":" ","constraints":[],"inputs":"i","outputs":[],"completion_criteria":"c"},"initialMessage":"go"}`, obj{"error": "invalid_task_brief", "missing_fields": []any{"objective", "outputs"}}},
		{"taskBrief: missing", f.boss, "spawn_agent", `{"roleId":"$role"}`, obj{"error": "invalid_arguments"}},
		{"missing_initial_message: blank text", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$brief},"initialMessage":" "}`, obj{"error": "missing_initial_message"}},
		{"missing_initial_message: empty object", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$brief},"initialMessage":{}}`, obj{"error": "missing_initial_message"}},
		{"initialMessage: missing", f.boss, "spawn_agent_with_task", `{"roleId":"$role","taskBrief":{$brief}}`, obj{"error": "invalid_arguments"}},
		{"role_not_found: unknown id", f.boss, "spawn_agent", `{"roleId":"nowhere","taskBrief":{$brief}}`, obj{"error": "role_not_found", "roleId": "nowhere"}},
		{"role_not_found: deleted role", f.boss, "spawn_agent", `{"roleId":"$deleted","taskBrief":{$brief}}`, obj{"error": "role_not_found", "roleId": "$deleted"}},
		{"spawn_agent: name instead of id", f.boss, "spawn_agent", `{"roleId":"clerk","taskBrief":{$brief}}`, obj{"id": anyValue, "roleId": "$role", "roleName": "clerk"}},
		{"spawn_agent_with_task: name instead of id", f.boss, "spawn_agent_with_task", `{"roleId":"clerk","taskBrief":{$brief},"initialMessage":"go"}`, obj{"id": anyValue, "roleId": "$role", "roleName": "clerk", "messageId": anyValue}},
		{"role_not_found: name of a deleted role", f.boss, "spawn_agent", `{"roleId":"deleted","taskBrief":{$brief}}`, obj{"error": "role_not_found", "roleId": "deleted"}},
		{"spawn_agent: role beyond the spawner's grant", f.boss, "spawn_agent", `{"roleId":"$wide","taskBrief":{$brief}}`, obj{"error": "insufficient_permissions", "message": `spawn an agent of role "wide": it has more permissions than you may grant; create a role with fewer tool groups`}},
		{"spawn_agent: role of another creator within the grant", f.worker, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief}}`, obj{"id": anyValue}},
		{"invalid_parentAgentId: expected and got", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief},"parentAgentId":"$root"}`, obj{"error": "invalid_parentAgentId", "expected": "$boss", "got": "$root"}},
		{"parentAgentId: the caller", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief},"parentAgentId":"$boss"}`, obj{"id": anyValue}},
		{"collaborators: one the spawner may not message", f.worker, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief,"collaborators":[{"agentId":"$otherAgent","role":"r"}]}}`, obj{"error": "cross_task_communication_denied", "to": "$otherAgent"}},
		{"collaborators: a terminated agent", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief,"collaborators":[{"agentId":"$terminated","role":"r"}]}}`, obj{"error": "unknown_recipient", "to": "$terminated"}},

		{"agent_not_found: unknown id", f.boss, "terminate_agent", `{"agentId":"nobody"}`, obj{"error": "agent_not_found", "agentId": "nobody"}},
		{"agent_not_found: terminated agent", f.boss, "terminate_agent", `{"agentId":"$terminated"}`, obj{"error": "agent_not_found", "agentId": "$terminated"}},
		{"not_child_agent: the parent", f.worker, "terminate_agent", `{"agentId":"$boss"}`, obj{"error": "not_child_agent", "agentId": "$boss"}},
		{"not_child_agent: itself", f.worker, "terminate_agent", `{"agentId":"$worker"}`, obj{"error": "not_child_agent", "agentId": "$worker"}},
		{"not_child_agent: root", f.boss, "terminate_agent", `{"agentId":"$root"}`, obj{"error": "not_child_agent", "agentId": "$root"}},
		{"not_child_agent: agent of another task", f.boss, "terminate_agent", `{"agentId":"$otherAgent"}`, obj{"error": "not_child_agent", "agentId": "$otherAgent"}},

		{"send_message: {messageId}", f.boss, "send_message", `{"to":"$worker","payload":{"text":"x"}}`, obj{"messageId": anyValue}},
		{"send_message: list of recipients", f.boss, "send_message", `{"to":["$worker","user","root"],"payload":{"text":"x"}}`, obj{"messages": []any{obj{"to": "$worker", "messageId": anyValue}, obj{"to": "user", "messageId": anyValue}, obj{"to": "root", "messageId": anyValue}}}},
		{"send_message: a name instead of an id", f.boss, "send_message", `{"to":["clerk-1","clerk-1"],"payload":1}`, obj{"messages": []any{obj{"to": "clerk-1", "messageId": anyValue}, obj{"to": "clerk-1", "messageId": anyValue}}}},
		{"send_message: the name of the parent", f.worker, "send_message", `{"to":"$bossName","payload":1}`, obj{"messageId": anyValue}},
		{"unknown_recipient: the name of an agent that is none of the sender's", f.worker, "send_message", `{"to":"sibling-1","payload":1}`, obj{"error": "unknown_recipient", "to": "sibling-1"}},
		{"send_message: the name of a collaborator", contact, "send_message", `{"to":"sibling-1","payload":1}`, obj{"messageId": anyValue}},
		{"collaborators: a name", f.boss, "spawn_agent", `{"roleId":"$role","taskBrief":{$brief,"collaborators":[{"agentId":"clerk-1","role":"r"}]}}`, obj{"id": anyValue}},
		{"agent_not_found: the name of an agent that is not below the caller", f.worker, "terminate_agent", `{"agentId":"clerk-1"}`, obj{"error": "agent_not_found", "agentId": "clerk-1"}},
		{"terminate_agent: a name instead of an id", f.boss, "terminate_agent", `{"agentId":"clerk-1"}`, obj{"ok": true, "terminatedAgentId": anyValue}},
		{"agent_not_found: the name of a terminated agent", f.boss, "terminate_agent", `{"agentId":"clerk-1"}`, obj{"error": "agent_not_found", "agentId": "clerk-1"}},
		{"send_message: delayed", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":50}`, obj{"messageId": anyValue, "scheduledDeliveryTime": anyValue}},
		{"payload: empty text", f.boss, "send_message", `{"to":"user","payload":""}`, obj{"messageId": anyValue}},
		{"payload: null", f.boss, "send_message", `{"to":"user","payload":null}`, obj{"messageId": anyValue}},
		{"payload: nested", f.boss, "send_message", `{"to":"user","payload":{"a":[{"b":null}],"message_type":"odd"}}`, obj{"messageId": anyValue}},
		{"delayMs: numeric string", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":"50"}`, obj{"messageId": anyValue, "scheduledDeliveryTime": anyValue}},
		{"delayMs: negative means no delay", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":-5}`, obj{"messageId": anyValue}},
		{"delayMs: NaN means no delay", f.boss, "send_message", `{"to":"user","payload":1,"delayMs":"NaN"}`, obj{"messageId": anyValue}},
		{"send_message: from is not an argument", f.boss, "send_message", `{"to":"user","payload":1,"from":"$root"}`, obj{"error": "invalid_arguments"}},
		{"send_message: root and user are always allowed", f.worker, "send_message", `{"to":["root","user"],"payload":1}`, obj{"messages": anyValue}},
		{"send_message: the task's root by id", f.worker, "send_message", `{"to":"$root","payload":1}`, obj{"messageId": anyValue}},
		{"unknown_recipient: unknown id", f.boss, "send_message", `{"to":"nobody","payload":1}`, obj{"error": "unknown_recipient", "to": "nobody"}},
		{"unknown_recipient: terminated agent", f.boss, "send_message", `{"to":"$terminated","payload":1}`, obj{"error": "unknown_recipient", "to": "$terminated"}},
		{"cross_task_communication_denied: from and to", f.boss, "send_message", `{"to":["$worker","$otherAgent"],"payload":1}`, obj{"error": "cross_task_communication_denied", "from": "$boss", "to": "$otherAgent"}},
		{"send_message: not a contact", f.worker, "send_message", `{"to":"$sibling","payload":1}`, obj{"error": "insufficient_permissions", "to": "$sibling"}},
		{"send_message: collaborator", contact, "send_message", `{"to":"$sibling","payload":1}`, obj{"messageId": anyValue}},
		{"send_message: back from a collaborator", sibling, "send_message", `{"to":"$contact","payload":1}`, obj{"error": "insufficient_permissions", "to": "$contact"}},
		{"quickReplies_too_many", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":["1","2","3","4","5","6","7","8","9","10","11"]}`, obj{"error": "quickReplies_too_many"}},
		{"quickReplies_invalid_type", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":[1]}`, obj{"error": "quickReplies_invalid_type"}},
		{"quickReplies_empty_string", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":[" "]}`, obj{"error": "quickReplies_empty_string"}},
		{"quickReplies: ten are allowed", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":["1","2","3","4","5","6","7","8","9","10"]}`, obj{"messageId": anyValue}},
		{"quickReplies: an empty list is ignored", f.boss, "send_message", `{"to":"user","payload":1,"quickReplies":[]}`, obj{"messageId": anyValue}},

		{"tool_not_available: has toolName", f.root, "read_file", `{"path":"x"}`, obj{"error": "tool_not_available", "toolName": "read_file"}},
		{"unknown_tool: has toolName", f.boss, "nothing_known", `{}`, obj{"error": "unknown_tool", "toolName": "nothing_known"}},
		{"invalid_arguments: not JSON", f.boss, "send_message", `{"to":`, obj{"error": "invalid_arguments", "toolName": "send_message"}},
		{"terminate_agent: {ok:true, terminatedAgentId}", f.boss, "terminate_agent", `{"agentId":"$helper","reason":"r"}`, obj{"ok": true, "terminatedAgentId": "$helper"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			result := fx.callTool(t, c.by, c.tool, ids.Replace(c.args))
			got := decodeObject(result.JSON())
			if c.want == nil && string(result.JSON()) != "null" {
				t.Fatalf("got %s, want null", result.JSON())
			}
			if result.IsError != (c.want["error"] != nil) {
				t.Errorf("IsError is %t: %s", result.IsError, result.JSON())
			}
			if !matches(got, c.want, ids) {
				t.Errorf("got %s\nwant %v", result.JSON(), c.want)
			}
			if message, _ := got["message"].(string); result.IsError && len(message) < 20 {
				t.Errorf("the message is too short: %s", result.JSON())
			}
		})
	}
}

// matches reports whether a value equals the wanted one; of an object only the
// wanted fields are compared.
func matches(got, want any, ids *strings.Replacer) bool {
	switch want := want.(type) {
	case obj:
		fields, _ := got.(obj)
		for name := range maps.Keys(want) {
			if value, ok := fields[name]; !ok || !matches(value, want[name], ids) {
				return false
			}
		}
		return true
	case []any:
		list, _ := got.([]any)
		return slices.EqualFunc(list, want, func(g, w any) bool { return matches(g, w, ids) })
	case string:
		return want == anyValue && got != nil || got == ids.Replace(want)
	}
	return got == want
}

func TestSendAll_DeliversToAllOrNone(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	large := mustJSON(strings.Repeat("x", 5<<20))
	for _, c := range []struct {
		name    string
		to      []identity.AgentID
		payload json.RawMessage
		code    errcode.Code
		sent    []identity.AgentID
	}{
		{"one recipient", []identity.AgentID{f.worker}, mustJSON(1), "", []identity.AgentID{f.worker}},
		{"agents, user and root", []identity.AgentID{f.worker, "user", f.helper, "root", f.peer}, mustJSON(1), "", []identity.AgentID{f.worker, "user", f.helper, f.root, f.peer}},
		{"duplicate recipients", []identity.AgentID{"root", f.worker, f.root, f.worker, "root"}, mustJSON(1), "", []identity.AgentID{f.root, f.worker}},
		{"one unknown agent", []identity.AgentID{f.worker, "nobody"}, mustJSON(1), errcode.UnknownRecipient, nil},
		{"one agent of another task", []identity.AgentID{f.otherAgent, f.worker}, mustJSON(1), errcode.CrossTask, nil},
		{"the sender itself", []identity.AgentID{f.worker, f.boss}, mustJSON(1), errcode.InsufficientPermissions, nil},
		{"too large for two recipients", []identity.AgentID{f.worker, f.helper}, large, errcode.InvalidArguments, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(bodiesOf[journal.MessageSent](t, fx))
			var to []string
			for _, id := range c.to {
				to = append(to, string(id))
			}
			sent, err := fx.ToolHost().SendAll(t.Context(), newCall(identity.ByAgent(f.boss)), to, c.payload, 0)
			if errcode.CodeOf(err) != c.code {
				t.Fatalf("%v, want %q", err, c.code)
			}
			byID := map[string]identity.AgentID{}
			var got []identity.AgentID
			for _, m := range bodiesOf[journal.MessageSent](t, fx)[before:] {
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
					t.Errorf("the id for %s belongs to the message to %s", c.to[i], to)
				}
			}
		})
	}
}

// The process dies after the messages are committed and before the outcome of
// the call is.
func TestSendAll_CrashDoesNotSendTwice(t *testing.T) {
	dir := fastTempDir(t)
	died := make(chan struct{})
	var result json.RawMessage
	cfg := fixtureConfig{dir: dir, model: answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("send_message", obj{"to": []string{"user", "root"}, "payload": "x", "delayMs": 1})
		}
		result = results(r)[0].Content
		if len(messages(r)) < 2 {
			return waitForMessage()
		}
		return endWith("done")
	})}
	cfg.wrapStore = func(s journal.Store) journal.Store {
		dead := false // only root commits by then
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
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
	cfg.configure = func(c *runtime.Config) { c.Fatal = func(error) { close(died) } }
	fx := cfg.open(t)
	id := fx.start(t, org.TaskSpec{})
	<-died
	fx.shutdown(t)

	cfg.wrapStore, cfg.configure = nil, nil
	fx = cfg.open(t)
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
	var sent []any
	for _, m := range bodiesOf[journal.MessageSent](t, fx)[1:] {
		if string(m.Message.Payload) == `"x"` {
			to := m.Message.To
			if to != "user" {
				to = "root"
			}
			sent = append(sent, obj{"to": to, "messageId": m.Message.ID})
		}
	}
	if got := decodeObject(result)["messages"]; len(sent) != 2 || cmp.Diff(any(sent), got) != "" {
		t.Errorf("sent %v, result %s", sent, result)
	}
	if decodeObject(result)["scheduledDeliveryTime"] == nil {
		t.Errorf("no scheduledDeliveryTime: %s", result)
	}
	if received := fx.received(t, fx.recordedTop(t, id)); fmt.Sprint(received[1:]) != `["x"]` {
		t.Errorf("root received %v", received)
	}
}

// recordedTop returns the top agent of a task from its record, also after its
// end.
func (fx *fixture) recordedTop(t *testing.T, id identity.TaskID) identity.AgentID {
	t.Helper()
	task, err := fx.TaskRecord(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task.Top
}

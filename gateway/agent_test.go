package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

func TestListAgents_SortedWithTerminated(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	task := f.RunTask(t, "go")
	c := f.LocalClient()
	list := gatewaytest.CollectAll(t, c.ListAgents(t.Context(), task.ID, ""))
	if len(list) != 2 || list[0].Role != "root" || list[1].Role != "clerk" || list[1].Parent != list[0].ID || list[1].Status != org.AgentFinished {
		t.Fatalf("agents %+v", list)
	}
	if list[0].Name != "root" || list[1].Name != "clerk-1" {
		t.Errorf("names %q and %q", list[0].Name, list[1].Name)
	}
	if one, err := c.FindAgent(t.Context(), "clerk-1"); err != nil || one.ID != list[1].ID {
		t.Errorf("by its name: %+v, %v", one, err)
	}
	ended, err := c.TerminateAgent(t.Context(), "clerk", "enough")
	if err != nil || ended.ID != list[1].ID || ended.Status != org.AgentTerminated || ended.Reason != "enough" || ended.Name != "clerk-1" {
		t.Fatalf("terminated: %+v, %v", ended, err)
	}
	if list = gatewaytest.CollectAll(t, c.ListAgents(t.Context(), "", "")); len(list) != 2 || list[1].Status != org.AgentTerminated {
		t.Errorf("agents after one was terminated: %+v", list)
	}
	if list = gatewaytest.CollectAll(t, c.ListAgents(t.Context(), "", org.AgentTerminated)); len(list) != 1 || list[0].Role != "clerk" {
		t.Errorf("terminated agents: %+v", list)
	}
	if list = gatewaytest.CollectAll(t, c.ListAgents(t.Context(), "", org.AgentFinished)); len(list) != 1 || list[0].Role != "root" {
		t.Errorf("finished agents: %+v", list)
	}
	if list = gatewaytest.CollectAll(t, c.ListAgents(t.Context(), "other", "")); len(list) != 0 {
		t.Errorf("agents of an unknown task: %+v", list)
	}
	if _, err := c.TerminateAgent(t.Context(), string(task.Top), ""); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("terminating the root of an ended task: %v, want conflict", err)
	}
}

func TestShowAgent_BriefAndTools(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.RunTask(t, "go")
	clerk, err := f.LocalClient().FindAgent(t.Context(), "clerk")
	if err != nil {
		t.Fatal(err)
	}
	if clerk.Brief.Objective != "o" || strings.Join(clerk.Tools, " ") != "put_artifact get_artifact read_file write_file list_files get_workspace_info" {
		t.Errorf("got %+v", clerk)
	}
}

func TestFindAgent_RoleNameIsAmbiguous(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.RunTask(t, "one")
	f.RunTask(t, "two")
	_, err := f.LocalClient().FindAgent(t.Context(), "clerk")
	if errcode.CodeOf(err) != errcode.Conflict {
		t.Fatalf("got %v, want conflict", err)
	}
	release := make(chan struct{})
	f = newFixture(t, func(r model.Request) model.Answer {
		if r.Items[0].Message != nil && strings.Contains(string(r.Items[0].Message.Payload), "wait") {
			<-release
		}
		return gatewaytest.TeamModel(r)
	})
	f.RunTask(t, "one")
	id := f.StartTask(t, "wait")
	root, err := f.LocalClient().FindAgent(t.Context(), "root")
	if err != nil || root.Task != id || root.Status != org.AgentThinking && root.Status != org.AgentStarting {
		t.Errorf("the root of the running task: %+v, %v", root, err)
	}
	close(release)
	if _, err := f.Runtime.WaitTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// A message to an agent of a task that has ended is rejected.
func TestSendMessage_ToEndedTaskIsRejected(t *testing.T) {
	f := newFixture(t, func(r model.Request) model.Answer {
		answer := gatewaytest.TeamModel(r)
		if r.Self.Role == "root" && answer.Finish == model.FinishEnd {
			answer.Finish = model.FinishResult
		}
		return answer
	})
	task := f.RunTask(t, "go")
	before := f.Store.LastSeq()
	for _, agent := range []string{string(task.Top), "clerk"} {
		status, body := f.SendText(t, "POST /api/v1/agents/"+agent+"/messages", `{"text":"hello"}`)
		if status != http.StatusConflict || !strings.Contains(body, `"code":"conflict"`) || !strings.Contains(body, string(task.ID)+" has ended (done)") {
			t.Errorf("%s: status %d, %s; want a conflict that says that the task has ended", agent, status, body)
		}
	}
	if after := f.Store.LastSeq(); after != before {
		t.Errorf("%d events were recorded", after-before)
	}
}

func TestSendMessage_IsRecorded(t *testing.T) {
	free := make(chan struct{})
	f := newFixture(t, func(model.Request) model.Answer {
		<-free
		return gatewaytest.EndAnswer("free")
	})
	defer close(free)
	id := f.StartTask(t, "go")
	task, _ := f.Runtime.Org().TaskByID(id)
	path := "POST /api/v1/agents/" + string(task.Top) + "/messages"
	status, _ := f.SendText(t, path, `{"text":"hello"}`)
	if status != http.StatusAccepted {
		t.Errorf("status %d, want 202", status)
	}
	later := gatewaytest.GetJSON[org.SendResult](t, f, path, `{"payload":[1],"delayMs":1000}`)
	if later.MessageID == "" || later.Due == nil {
		t.Errorf("a delayed message: %+v", later)
	}
	var sent []string
	for e, err := range f.Store.Read(t.Context(), journal.Org, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := e.Body.(journal.MessageSent); ok && m.Message.To == string(task.Top) {
			sent = append(sent, m.Message.From+" "+string(m.Message.Payload))
		}
	}
	want := []string{`user {"text":"go"}`, `user {"text":"hello"}`, `user [1]`}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("recorded messages (-want +got):\n%s", diff)
	}
}

func TestAbort_WorkingAgent(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	f := newFixture(t, func(model.Request) model.Answer {
		close(reached)
		<-release
		return gatewaytest.EndAnswer("late")
	})
	id := f.StartTask(t, "go")
	<-reached
	if _, err := f.LocalClient().AbortTurn(t.Context(), "root"); err != nil {
		t.Fatal(err)
	}
	close(release)
	task, err := f.Runtime.WaitTask(t.Context(), id)
	if err != nil || task.Status != org.Failed {
		t.Errorf("the task is %v, %v, want failed", task.Status, err)
	}
	if _, err := f.LocalClient().AbortTurn(t.Context(), string(task.Top)); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("aborting an idle agent: %v, want conflict", err)
	}
}

// A caller aborts the agents of its own tasks. Others do not exist for it, also under the
// names of their roles.
func TestAbort_ByCaller(t *testing.T) {
	reached, release := make(chan struct{}, 2), make(chan struct{})
	f := newFixture(t, func(model.Request) model.Answer {
		reached <- struct{}{}
		<-release
		return gatewaytest.EndAnswer("late")
	})
	f.AddTool(t, "desk/mine", "own_tool")
	role := f.AddRole(t, "mine", "desk/mine")
	theirs, _ := f.Runtime.Org().TaskByID(f.StartTask(t, "go"))
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "hers", Caller: identity.ByCaller("ann", role.ID)})
	if err != nil {
		t.Fatal(err)
	}
	hers, _ := f.Runtime.Org().TaskByID(id)
	<-reached
	<-reached
	ann, bob := f.WithCaller(t, role.ID).LocalClient(), f.WithAuthenticator(t, func(*http.Request) (identity.Principal, error) { return identity.ByCaller("bob", role.ID), nil }).LocalClient()
	for _, ref := range []string{string(theirs.Top), "root", "mine", "nonesuch"} {
		if _, err := ann.AbortTurn(t.Context(), ref); errcode.CodeOf(err) != errcode.AgentNotFound {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := bob.AbortTurn(t.Context(), string(hers.Top)); errcode.CodeOf(err) != errcode.AgentNotFound {
		t.Errorf("another caller: %v", err)
	}
	if agent, err := ann.AbortTurn(t.Context(), string(hers.Top)); err != nil || agent.ID != hers.Top {
		t.Errorf("its own: %+v, %v", agent, err)
	}
	close(release)
	for id, want := range map[identity.TaskID]org.TaskStatus{hers.ID: org.Failed, theirs.ID: org.Done} {
		if task, err := f.Runtime.WaitTask(t.Context(), id); err != nil || task.Status != want {
			t.Errorf("task %s is %s, %v, want %s", id, task.Status, err, want)
		}
	}
}

func TestJournal_ContainsAgentsEvents(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.RunTask(t, "go")
	var types []string
	for _, e := range gatewaytest.CollectAll(t, f.LocalClient().AgentJournal(t.Context(), "clerk")) {
		types = append(types, string(e.Body.EventType()))
		if _, ok := e.Body.(journal.ToolCall); ok && e.Role != "clerk" {
			t.Errorf("a call of %s in the clerk's journal", e.Role)
		}
	}
	for _, want := range []string{"message_taken", "model_answered", "tool_call", "tool_result", "tool_error", "message"} {
		if !strings.Contains(strings.Join(types, " "), want) {
			t.Errorf("no %s in %v", want, types)
		}
	}
}

// chainModel makes root spawn a lead, which spawns two helpers.
func chainModel(r model.Request) model.Answer {
	brief := map[string]any{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
	below, groups, spawns := "lead", []string{"org_management"}, 1
	if r.Self.Role == "lead" {
		below, groups, spawns = "helper", []string{}, 2
	}
	step := gatewaytest.CountAnswers(r)
	switch {
	case r.Self.Role == "helper":
		return gatewaytest.EndAnswer("helped")
	case step == 0:
		return gatewaytest.ToolCallAnswer("create_role", map[string]any{"name": below, "rolePrompt": "p", "toolGroups": groups})
	case step <= spawns:
		return gatewaytest.ToolCallAnswer("spawn_agent_with_task", map[string]any{"roleId": below, "taskBrief": brief, "initialMessage": "go"})
	}
	for _, item := range r.Items {
		if m := item.Message; m != nil && item.Message.FromName != "" && strings.HasPrefix(m.FromName, below) {
			return gatewaytest.EndAnswer("done")
		}
	}
	return model.Answer{Finish: model.FinishWait}
}

// A list by parent has the children of one agent, terminated ones included, with the counts of
// their own.
func TestListAgents_ByParent(t *testing.T) {
	f := newFixture(t, chainModel)
	task := f.RunTask(t, "go")
	c, top := f.LocalClient(), string(task.Top)
	lead := gatewaytest.CollectAll(t, c.ListChildren(t.Context(), top))
	if len(lead) != 1 || lead[0].Name != "lead-1" || lead[0].Children != 2 {
		t.Fatalf("children of root: %+v", lead)
	}
	below := string(lead[0].ID)
	helpers := gatewaytest.CollectAll(t, c.ListChildren(t.Context(), below))
	if len(helpers) != 2 || helpers[0].Name != "helper-1" || helpers[0].Children != 0 || helpers[1].Name != "helper-2" {
		t.Fatalf("children of lead: %+v", helpers)
	}
	if _, err := c.TerminateAgent(t.Context(), string(helpers[0].ID), "enough"); err != nil {
		t.Fatal(err)
	}
	other := string(f.RunTask(t, "again").ID)
	for query, want := range map[string]int{top: 1, below: 2, below + "&status=terminated": 1, below + "&limit=1": 1, top + "&task=" + other: 0, string(helpers[0].ID): 0} {
		if got := gatewaytest.GetJSON[wire.Page[wire.Agent]](t, f, "GET /api/v1/agents?parent="+query, "").Items; len(got) != want {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if status, body := f.SendText(t, "GET /api/v1/agents?parent=nobody", ""); status != http.StatusNotFound {
		t.Errorf("an unknown parent: %d %s", status, body)
	}
}

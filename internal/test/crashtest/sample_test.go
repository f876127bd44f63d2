//go:build linux && (amd64 || arm64)

package crashtest

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// sampleModel is the model of the sample. A reader calls tools sixty times and ends in
// the state "finished". Root and a thinker never answer. The others wait for messages.
type sampleModel struct{}

// Generate implements model.Model.
func (sampleModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		answers, read := 0, 0
		for _, item := range r.Items {
			switch {
			case item.Answer != nil:
				answers++
			case item.Message != nil:
				read++
			}
		}
		a := model.Answer{Finish: model.FinishWait, MessagesRead: read}
		switch {
		case r.Self.Role == "thinker" || r.Self.Role == "root":
			<-ctx.Done()
			yield(model.AnswerDelta{}, ctx.Err())
			return
		case r.Self.Role == "reader" && answers < 60:
			name := []string{"look", "count"}[answers%2]
			if answers == 59 {
				name = "finish"
			}
			a.Finish, a.Calls = model.FinishToolCalls, []model.Call{{Name: name, Args: json.RawMessage("{}")}, {Name: "reveal", Args: json.RawMessage("{}")}}
		}
		yield(model.AnswerDelta{Answer: &a}, nil)
	}
}

// sampleBuilder creates an organization in the middle of its work.
type sampleBuilder struct {
	*testing.T
	rt    *runtime.Runtime
	store *persist.Store
}

// sampleDB creates a data directory and returns its file. It contains roles with
// different permissions, one of them deleted; active, idle and terminated agents; a
// running task and a cancelled one; artifacts, undelivered messages and delayed
// messages.
func sampleDB(t *testing.T) (file string) {
	dir := t.TempDir()
	m := &sampleBuilder{T: t, store: persisttest.OpenIn(t, dir)}
	rt, _, err := newRuntime(m.store, sampleModel{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.rt = rt
	defer rt.Close() // in case the test fails
	m.build()
	rt.Close()
	persisttest.Close(t, m.store)
	return filepath.Join(dir, persist.FileName)
}

// build runs the organization to the wanted state.
func (m *sampleBuilder) build() {
	task := m.startTask("study the vault")
	readers := m.createRole("reader", "study", "works")
	root := m.rootAgent(task)
	for range 3 {
		m.send(m.spawn(root, readers), "read", 0)
	}
	keeper := m.spawn(root, m.createRole("keeper", "vault", "artifact"))
	thinker := m.spawn(root, m.createRole("thinker"))
	m.send(thinker, "think", 0)
	m.waitIdle(func(a org.Agent) bool { return a.Role == readers }, "finished")
	for i := range 4 {
		m.putArtifact(keeper, strings.Repeat("secret ", 10+900*i))
		m.send(thinker, strings.Repeat("and think of this ", 1+20*i), 0)
		m.send(keeper, "later", time.Duration(i+1)*time.Hour)
	}
	m.must(m.rt.TerminateAgent(m.Context(), call(identity.ByAgent(root)), m.spawn(root, readers), "not needed"))
	_, err := m.rt.DeleteRole(identity.ByOperator("test"), m.createRole("gone", "vault"), false)
	m.must(err)
	m.must(m.rt.CancelTask(m.Context(), m.startTask("nothing"), "not needed"))
}

func (m *sampleBuilder) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func call(by identity.Principal) tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: by}
}

func (m *sampleBuilder) startTask(text string) identity.TaskID {
	m.Helper()
	id, err := m.rt.StartTask(m.Context(), org.TaskSpec{Text: text, Caller: identity.ByOperator("test")})
	m.must(err)
	return id
}

func (m *sampleBuilder) rootAgent(id identity.TaskID) identity.AgentID {
	task, _ := m.rt.Org().TaskByID(id)
	return task.Top
}

func (m *sampleBuilder) createRole(name string, groups ...toolgroups.GroupID) identity.RoleID {
	m.Helper()
	use := toolgroups.SetOf(groups...)
	role, err := m.rt.CreateRole(m.Context(), call(identity.ByOperator("test")), org.RoleSpec{Name: name, Prompt: "Do it.", Use: &use, Grant: &use})
	m.must(err)
	return role.ID
}

func (m *sampleBuilder) spawn(by identity.AgentID, role identity.RoleID) identity.AgentID {
	m.Helper()
	brief := org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}
	spawned, err := m.rt.SpawnAgent(m.Context(), call(identity.ByAgent(by)), org.SpawnSpec{Role: role, Brief: brief}, nil)
	m.must(err)
	return spawned.ID
}

func (m *sampleBuilder) send(to identity.AgentID, text string, delay time.Duration) {
	m.Helper()
	payload, err := json.Marshal(text)
	m.must(err)
	_, err = m.rt.SendMessage(m.Context(), call(identity.ByOperator("test")), string(to), payload, delay)
	m.must(err)
}

func (m *sampleBuilder) putArtifact(by identity.AgentID, text string) {
	m.Helper()
	content, err := json.Marshal(text)
	m.must(err)
	_, err = m.rt.ToolHost().PutArtifact(m.Context(), call(identity.ByAgent(by)), builtin.Artifact{Type: "text", Value: content})
	m.must(err)
}

// waitIdle waits until all selected agents are idle in a state.
func (m *sampleBuilder) waitIdle(which func(org.Agent) bool, state string) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), time.Minute)
	defer cancel()
	left := 0
	for _, a := range m.rt.Org().ListAgents("") {
		if which(a) {
			left++
		}
	}
	for e, err := range m.store.FollowEvents(ctx, 0, journal.WaitForMore) {
		m.must(err)
		if b, ok := e.Body.(journal.ModelAnswered); ok && b.Answer.Finish == model.FinishWait && b.Answer.State == state {
			if left--; left == 0 {
				return
			}
		}
	}
	m.Fatal("the agents did not become idle")
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

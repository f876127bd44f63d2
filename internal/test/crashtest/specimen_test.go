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

// scholars is the model of the specimen: a reader calls tools sixty times and
// ends in the state finished, root and a thinker never answer, the others wait.
type scholars struct{}

// Generate implements model.Model.
func (scholars) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
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
			yield(model.Delta{}, ctx.Err())
			return
		case r.Self.Role == "reader" && answers < 60:
			name := []string{"look", "count"}[answers%2]
			if answers == 59 {
				name = "finish"
			}
			a.Finish, a.Calls = model.FinishToolCalls, []model.Call{{Name: name, Args: json.RawMessage("{}")}, {Name: "reveal", Args: json.RawMessage("{}")}}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

// maker makes an organization in the middle of its work.
type maker struct {
	*testing.T
	rt    *runtime.Runtime
	store *persist.Store
}

// specimen makes a data directory: roles of different rights, one of them
// deleted, agents at work, at rest and ended, a task that goes on and one that
// was cancelled, artifacts, mail that waits and mail for later.
func specimen(t *testing.T) (file string) {
	dir := t.TempDir()
	m := &maker{T: t, store: persisttest.OpenIn(t, dir)}
	rt, _, err := employ(m.store, scholars{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.rt = rt
	defer rt.Close() // for who fails
	m.work()
	rt.Close()
	persisttest.Close(t, m.store)
	return filepath.Join(dir, persist.FileName)
}

func (m *maker) work() {
	task := m.begin("study the vault")
	readers := m.role("reader", "study", "works")
	root := m.top(task)
	for range 3 {
		m.tell(m.hire(root, readers), "read", 0)
	}
	keeper := m.hire(root, m.role("keeper", "vault", "artifact"))
	thinker := m.hire(root, m.role("thinker"))
	m.tell(thinker, "think", 0)
	m.rest(func(a org.Agent) bool { return a.Role == readers }, "finished")
	for i := range 4 {
		m.put(keeper, strings.Repeat("secret ", 10+900*i))
		m.tell(thinker, strings.Repeat("and think of this ", 1+20*i), 0)
		m.tell(keeper, "later", time.Duration(i+1)*time.Hour)
	}
	m.must(m.rt.TerminateAgent(m.Context(), call(identity.ByAgent(root)), m.hire(root, readers), "not needed"))
	_, err := m.rt.DeleteRole(identity.ByOperator("test"), m.role("gone", "vault"), false)
	m.must(err)
	m.must(m.rt.CancelTask(m.Context(), m.begin("nothing"), "not needed"))
}

func (m *maker) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func call(by identity.Principal) tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: by}
}

func (m *maker) begin(text string) identity.TaskID {
	m.Helper()
	id, err := m.rt.StartTask(m.Context(), org.TaskSpec{Text: text, Caller: identity.ByOperator("test")})
	m.must(err)
	return id
}

func (m *maker) top(id identity.TaskID) identity.AgentID {
	task, _ := m.rt.Org().Task(id)
	return task.Top
}

func (m *maker) role(name string, groups ...toolgroups.GroupID) identity.RoleID {
	m.Helper()
	use := toolgroups.Of(groups...)
	role, err := m.rt.CreateRole(m.Context(), call(identity.ByOperator("test")), org.RoleSpec{Name: name, Prompt: "Do it.", Use: &use, Grant: &use})
	m.must(err)
	return role.ID
}

func (m *maker) hire(by identity.AgentID, role identity.RoleID) identity.AgentID {
	m.Helper()
	brief := org.TaskBrief{Objective: "o", Constraints: org.Lines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}
	spawned, err := m.rt.SpawnAgent(m.Context(), call(identity.ByAgent(by)), org.Spawn{Role: role, Brief: brief}, nil)
	m.must(err)
	return spawned.ID
}

func (m *maker) tell(to identity.AgentID, text string, delay time.Duration) {
	m.Helper()
	payload, err := json.Marshal(text)
	m.must(err)
	_, err = m.rt.SendMessage(m.Context(), call(identity.ByOperator("test")), string(to), payload, delay)
	m.must(err)
}

func (m *maker) put(by identity.AgentID, text string) {
	m.Helper()
	content, err := json.Marshal(text)
	m.must(err)
	_, err = m.rt.ToolHost().PutArtifact(m.Context(), call(identity.ByAgent(by)), builtin.Artifact{Type: "text", Value: content})
	m.must(err)
}

// rest waits until agents have come to a state and rest.
func (m *maker) rest(which func(org.Agent) bool, state string) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), time.Minute)
	defer cancel()
	left := 0
	for _, a := range m.rt.Org().ListAgents("") {
		if which(a) {
			left++
		}
	}
	for e, err := range m.store.FollowEvents(ctx, 0, true) {
		m.must(err)
		if b, ok := e.Body.(journal.ModelAnswered); ok && b.Answer.Finish == model.FinishWait && b.Answer.State == state {
			if left--; left == 0 {
				return
			}
		}
	}
	m.Fatal("they did not come to rest")
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

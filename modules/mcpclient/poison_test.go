package mcpclient_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

//go:embed testdata/mcp_tool_poisoning.jsonl
var poisons []byte

// poisonedDescriptions lists tool descriptions that are prompt injections.
func poisonedDescriptions(t *testing.T) []string {
	var list []string
	for line := range bytes.Lines(poisons) {
		var row struct {
			Modification struct {
				Description string `json:"modification_description"`
			}
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if text := row.Modification.Description; text != "" {
			list = append(list, text)
		}
	}
	if len(list) != 96 {
		t.Fatalf("%d descriptions", len(list))
	}
	return list
}

// capturingModel is a model that answers at once and records all requests.
type capturingModel struct {
	mu   sync.Mutex // guards sent
	sent []string
}

// Generate implements model.Model.
func (m *capturingModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	items, _ := json.Marshal(r.Items)
	m.mu.Lock()
	m.sent = append(m.sent, r.System+"\n"+r.Opening+"\n"+r.Note+"\n"+string(r.ToolJSON)+"\n"+strings.Join(r.Tools, " ")+"\n"+string(items))
	m.mu.Unlock()
	read := 0
	for _, item := range r.Items {
		if item.Message != nil {
			read++
		}
	}
	return func(yield func(model.AnswerDelta, error) bool) {
		yield(model.AnswerDelta{Answer: &model.Answer{Finish: model.FinishEnd, Text: "done", MessagesRead: read}}, nil)
	}
}

// allSent returns the text of all requests.
func (m *capturingModel) allSent() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.sent, "\n")
}

// orgFixture is a runtime with one MCP server, fs, and a role guide that has all groups.
type orgFixture struct {
	*fixture
	rt    *runtime.Runtime
	model *capturingModel
}

func newOrgFixture(t *testing.T) *orgFixture {
	fx, m := newFixture(t), &capturingModel{}
	store := persisttest.OpenIn(t, t.TempDir())
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: fx.manager, Workspaces: t.TempDir(),
		Model: func(string) (model.Model, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	if err := builtin.RegisterGroups(fx.manager, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	fx.pins, fx.loader = modules.NewPinStore(notifyingStore{rt.OwnerStore(), fx.store.onChange}), modules.NewLoader(rt.GroupManager())
	t.Cleanup(func() { _ = fx.loader.Close(context.Background()) }) // before its runtime
	fx.load(fx.childConfig("fs", "real"))
	all := toolgroups.AllGroups()
	if _, err := rt.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("me")}, org.RoleSpec{Name: "guide", Use: &all, Grant: &all}); err != nil {
		t.Fatal(err)
	}
	return &orgFixture{fx, rt, m}
}

// notifyingStore is a modules.OwnerStore that calls onChange after each change.
type notifyingStore struct {
	*runtime.OwnerStore
	onChange func()
}

// WriteValue implements modules.OwnerStore.
func (n notifyingStore) WriteValue(ctx context.Context, owner toolgroups.GroupOwner, value []byte) error {
	defer n.onChange()
	return n.OwnerStore.WriteValue(ctx, owner, value)
}

// runTask runs a task with an agent of a role, or root for "", and returns the text of all
// requests so far.
func (o *orgFixture) runTask(role string) string {
	o.Helper()
	id, err := o.rt.StartTask(o.Context(), org.TaskSpec{Role: role, Text: "work", Caller: identity.ByOperator("me")})
	if err != nil {
		o.Fatal(err)
	}
	if task, err := o.rt.WaitTask(o.Context(), id); err != nil || string(task.Result) != `"done"` {
		o.Fatalf("task: %+v, %v", task, err)
	}
	return o.model.allSent()
}

// Poisoned descriptions of new and of known tools that are served after the first contact
// reach no prompt and no view, also not of a role with all groups.
func TestQuarantine_HidesPoisonedDescriptions(t *testing.T) {
	o := newOrgFixture(t)
	if sent := o.runTask("guide"); !strings.Contains(sent, "does parts") || strings.Contains(sent, "obey the server") {
		t.Fatalf("the request of the guide is %.300q", sent)
	}
	known := []string{"parts", "echo", "again", "number"}
	list := poisonedDescriptions(t)
	define := o.handle("fs__define").Tool
	for i, text := range list {
		name := fmt.Sprintf("poison%d", i)
		if i < len(known) {
			name = known[i]
		}
		args, _ := json.Marshal(map[string]string{"name": name, "description": text})
		q := call("fs__define")
		q.Args = args
		if r, err := define.Call(t.Context(), q); err != nil || r.Text != "defined" {
			t.Fatalf("%+v, %v", r, err)
		}
		if i == len(list)/2 {
			o.wantClean(list) // while definitions change
		}
	}
	o.waitFor("all definitions are pending", func() bool { return len(o.pending()) == len(list) })
	o.waitFor("the changed tools are removed", func() bool { return !o.hasTool("fs__parts") && !o.hasTool("fs__number") })
	before := len(o.model.allSent())
	o.wantClean(list)
	if strings.Contains(o.model.allSent()[before:], "does parts") {
		t.Error("the accepted definition of a changed tool is still offered")
	}
	for i := range list {
		if name := fmt.Sprintf("fs__poison%d", i); slices.Contains(o.allTools(), name) {
			t.Errorf("%s is in a view", name)
		}
	}
}

// wantClean checks that no poisoned description is in the requests of a guide and a root,
// or in the view of the role.
func (o *orgFixture) wantClean(list []string) {
	o.Helper()
	o.runTask("guide")
	text := o.runTask("")
	role, err := o.rt.Org().FindRole("guide")
	if err != nil {
		o.Fatal(err)
	}
	for _, d := range o.rt.Org().RoleView(role.ID, toolgroups.AllGroups()).ListableTools() {
		text += d.Name + d.Description + string(d.Input)
	}
	for _, description := range list {
		quoted, _ := json.Marshal(description)
		for _, piece := range []string{description, string(quoted[1 : len(quoted)-1])} {
			if strings.Contains(text, piece) {
				o.Errorf("a model was sent %q", piece)
			}
		}
	}
	if strings.Contains(text, "poison") {
		o.Error("a model was sent the name of a poisoned tool")
	}
}

var _ modules.OwnerLister = notifyingStore{}
var _ modules.Module = (*mcpclient.Module)(nil)

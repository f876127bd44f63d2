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

// poisoned lists the descriptions that attack who reads them.
func poisoned(t *testing.T) []string {
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

// listener is a model that answers at once and keeps all it was sent.
type listener struct {
	mu   sync.Mutex // guards sent
	sent []string
}

// Generate implements model.Model.
func (l *listener) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	items, _ := json.Marshal(r.Items)
	l.mu.Lock()
	l.sent = append(l.sent, r.System+"\n"+string(r.ToolJSON)+"\n"+strings.Join(r.Tools, " ")+"\n"+string(items))
	l.mu.Unlock()
	read := 0
	for _, item := range r.Items {
		if item.Message != nil {
			read++
		}
	}
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{Answer: &model.Answer{Finish: model.FinishEnd, Text: "done", MessagesRead: read}}, nil)
	}
}

func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.sent, "\n")
}

// organization is a runtime with one MCP server, fs, and a role that has all
// groups.
type organization struct {
	*kit
	rt    *runtime.Runtime
	model *listener
}

func newOrganization(t *testing.T) *organization {
	k, l := newKit(t), &listener{}
	store := persisttest.OpenIn(t, t.TempDir())
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: k.manager, Workspaces: t.TempDir(),
		Model: func(string) (model.Model, error) { return l, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	if err := builtin.Register(k.manager, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	k.pins, k.loader = modules.NewPins(noting{rt.OwnerStore(), k.shelf.noted}), modules.NewLoader(rt)
	t.Cleanup(func() { _ = k.loader.Close(context.Background()) }) // before its runtime
	k.load(k.child("fs", "real"))
	all := toolgroups.All()
	if _, err := rt.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("me")}, org.RoleSpec{Name: "guide", Use: &all, Grant: &all}); err != nil {
		t.Fatal(err)
	}
	return &organization{k, rt, l}
}

// noting is a Shelf that tells of changes.
type noting struct {
	*runtime.OwnerStore
	noted func()
}

// Set implements modules.Store.
func (n noting) Set(ctx context.Context, owner toolgroups.Owner, value []byte) error {
	defer n.noted()
	return n.OwnerStore.Set(ctx, owner, value)
}

// ask has an agent of a role work, or root for "", and gives all that models
// were sent so far.
func (o *organization) ask(role string) string {
	o.Helper()
	id, err := o.rt.Start(o.Context(), org.TaskSpec{Role: role, Text: "work", Caller: identity.ByOperator("me")})
	if err != nil {
		o.Fatal(err)
	}
	if task, err := o.rt.Wait(o.Context(), id); err != nil || string(task.Result) != `"done"` {
		o.Fatalf("task: %+v, %v", task, err)
	}
	return o.model.heard()
}

// Poisoned descriptions that are served after the first contact, of new tools
// and of known ones, reach no prompt and no view, not even of who has all groups.
func TestPoisonReachesNobody(t *testing.T) {
	o := newOrganization(t)
	if heard := o.ask("guide"); !strings.Contains(heard, "does parts") || strings.Contains(heard, "obey the server") {
		t.Fatalf("the guide was sent %.300q", heard)
	}
	known := []string{"parts", "echo", "again", "number"}
	list := poisoned(t)
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
			o.wantClean(list) // while it is at it
		}
	}
	o.until("all wait", func() bool { return len(o.waiting()) == len(list) })
	o.until("those that were known are gone", func() bool { return !o.has("fs__parts") && !o.has("fs__number") })
	before := len(o.model.heard())
	o.wantClean(list)
	if strings.Contains(o.model.heard()[before:], "does parts") {
		t.Error("what was accepted before is still offered")
	}
	for i := range list {
		if name := fmt.Sprintf("fs__poison%d", i); slices.Contains(o.everywhere(), name) {
			t.Errorf("%s is in a view", name)
		}
	}
}

// wantClean wants no poison in what a guide and a root are sent, nor in what
// their role sees.
func (o *organization) wantClean(list []string) {
	o.Helper()
	o.ask("guide")
	heard := o.ask("")
	role, err := o.rt.Org().FindRole("guide")
	if err != nil {
		o.Fatal(err)
	}
	for _, d := range o.rt.Org().RoleView(role.ID, toolgroups.All()).Listable() {
		heard += d.Name + d.Description + string(d.Input)
	}
	for _, text := range list {
		quoted, _ := json.Marshal(text)
		for _, piece := range []string{text, string(quoted[1 : len(quoted)-1])} {
			if strings.Contains(heard, piece) {
				o.Errorf("a model was sent %q", piece)
			}
		}
	}
	if strings.Contains(heard, "poison") {
		o.Error("a model was sent the name of a poisoned tool")
	}
}

var _ modules.Owners = noting{}
var _ modules.Module = (*mcpclient.Module)(nil)

package modules_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestLoader_RunsStepsInOrder(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("b", textTool("beta", "1")), group("a", textTool("alpha", "2"), textTool("gamma", "3")))
	fx.load(f)
	wantCalls(t, f, "name provision validate groups")
	fx.wantOffered("module:m a: alpha=2 gamma=3", "module:m b: beta=1")
	fx.wantLoaded(modules.ModuleInfo{Name: "m", Groups: []toolgroups.GroupID{"a", "b"}})

	if err := fx.loader.UnloadModule(t.Context(), "m"); err != nil {
		t.Fatalf("Unload: %v", err)
	}
	wantCalls(t, f, "name provision validate groups close")
	fx.wantOffered()
	fx.wantLoaded()
}

func TestLoader_ListsModulesByName(t *testing.T) {
	fx := newFixture(t)
	for _, name := range []string{"m2", "m10", "a"} {
		fx.load(plainModule{name})
	}
	none := []toolgroups.GroupID{}
	fx.wantLoaded(modules.ModuleInfo{Name: "a", Groups: none}, modules.ModuleInfo{Name: "m10", Groups: none}, modules.ModuleInfo{Name: "m2", Groups: none})
	if _, ok := fx.loader.GroupsOf("m2"); !ok {
		t.Error("GroupsOf does not report m2")
	}
	if _, ok := fx.loader.GroupsOf("m3"); ok {
		t.Error("GroupsOf reports m3, which is not loaded")
	}
}

func TestLoader_RejectsInvalidNameUntouched(t *testing.T) {
	for _, name := range []string{
		"", "builtin", "config", "operator", "root", "Root", "BUILTIN",
		"a b", "a/b", "module:x", "mоdule", "a\x00", "a\xff", strings.Repeat("n", 129),
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			f := newFakeModule(name, group("g", textTool("t", "1")))
			wantStep(t, fx.loader.LoadModule(t.Context(), f), modules.StepCheck, errcode.InvalidConfig)
			wantCalls(t, f, "name")
			fx.wantOffered()
		})
	}
}

func TestLoader_RejectsNilModule(t *testing.T) {
	fx := newFixture(t)
	var missing *fakeModule
	wantStep(t, fx.loader.LoadModule(t.Context(), nil), modules.StepCheck, errcode.InvalidConfig)
	wantStep(t, fx.loader.LoadModule(t.Context(), missing), modules.StepCheck, errcode.Internal)
}

// failures are the steps at which a module can fail before its groups are registered.
var failures = []struct {
	step modules.LoadStep
	log  string // the methods that are called
	set  func(f *fakeModule, fail func() error)
}{
	{modules.StepProvision, "name provision close", func(f *fakeModule, fail func() error) {
		f.provision = func(context.Context) error { return fail() }
	}},
	{modules.StepValidate, "name provision validate close", func(f *fakeModule, fail func() error) {
		f.validate = fail
	}},
}

func TestLoader_ClosesFailedModule(t *testing.T) {
	cause := errors.New("no such host")
	for _, b := range failures {
		t.Run(string(b.step), func(t *testing.T) {
			fx := newFixture(t)
			f := newFakeModule("m", group("g", textTool("t", "1")))
			b.set(f, func() error { return cause })
			err := fx.loader.LoadModule(t.Context(), f)
			wantStep(t, err, b.step, errcode.Internal)
			if !errors.Is(err, cause) {
				t.Errorf("error %v does not wrap its cause", err)
			}
			wantCalls(t, f, b.log)
			fx.wantOffered()
			fx.wantLoaded()
		})
	}
}

func TestLoader_ReportsPanicAsStepError(t *testing.T) {
	boom := func() error { panic("boom") }
	tests := []struct {
		step modules.LoadStep
		log  string
		set  func(*fakeModule)
	}{
		{modules.StepCheck, "name", func(f *fakeModule) { f.name = func() string { panic("boom") } }},
		{failures[0].step, failures[0].log, func(f *fakeModule) { failures[0].set(f, boom) }},
		{failures[1].step, failures[1].log, func(f *fakeModule) { failures[1].set(f, boom) }},
		{modules.StepGroups, "name provision validate groups close", func(f *fakeModule) {
			f.groups = func() []toolgroups.Group { panic("boom") }
		}},
		{modules.StepGroups, "name provision validate groups close", func(f *fakeModule) {
			f.groups = func() []toolgroups.Group { return []toolgroups.Group{group("g", panickingTool{})} }
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.step), func(t *testing.T) {
			fx := newFixture(t)
			f := newFakeModule("m", group("g", textTool("t", "1")))
			tt.set(f)
			err := fx.loader.LoadModule(t.Context(), f)
			wantStep(t, err, tt.step, errcode.Internal)
			if err == nil || !strings.Contains(err.Error(), "panicked: boom") {
				t.Errorf("error %v does not mention the panic", err)
			}
			wantCalls(t, f, tt.log)
			fx.wantOffered()
			fx.load(newFakeModule("m", group("g", textTool("t", "the next one")))) // the name is free again
		})
	}
}

// panickingTool panics in Definition.
type panickingTool struct{ toolFunc }

func (panickingTool) Definition() tool.Definition { panic("boom") }

func TestLoader_UnloadsModuleWhoseClosePanics(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("g", textTool("t", "1")))
	f.close = func() error { panic("boom") }
	fx.load(f)
	wantStep(t, fx.loader.UnloadModule(t.Context(), "m"), modules.StepClose, errcode.Internal)
	fx.wantOffered()
	fx.wantLoaded()
}

func TestLoader_JoinsStepAndCloseErrors(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m")
	first, second := errors.New("not valid"), errors.New("not closed")
	f.validate = func() error { return first }
	f.close = func() error { return second }
	err := fx.loader.LoadModule(t.Context(), f)
	wantStep(t, err, modules.StepValidate, errcode.Internal)
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Errorf("error %v does not wrap both causes", err)
	}
}

// Property: a module gets no group id and no tool name of another owner. When it is
// rejected, nothing of it stays registered.
func TestLoader_RejectsGroupsAndToolsOfOthers(t *testing.T) {
	good := group("good", textTool("fine", "1"))
	tests := []struct {
		why    string
		groups []toolgroups.Group
		step   modules.LoadStep
		code   errcode.Code
	}{
		{"reserved id", []toolgroups.Group{good, group(toolgroups.Workspace, textTool("t", "1"))}, modules.StepRegister, errcode.ReservedGroupID},
		{"reserved id that is not registered", []toolgroups.Group{good, group(toolgroups.Command)}, modules.StepRegister, errcode.ReservedGroupID},
		{"id of another owner", []toolgroups.Group{good, group("other_group", textTool("t", "1"))}, modules.StepRegister, errcode.DuplicateGroupID},
		{"tool name of another owner", []toolgroups.Group{good, group("g", textTool("other_tool", "1"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"tool name of a built-in", []toolgroups.Group{good, group("g", textTool("read_file", "1"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"one tool name in two groups", []toolgroups.Group{good, group("g", textTool("fine", "1"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"one tool name twice in a group", []toolgroups.Group{good, group("g", textTool("t", "1"), textTool("t", "2"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"duplicate id", []toolgroups.Group{good, group("good", textTool("t", "1"))}, modules.StepGroups, errcode.DuplicateGroupID},
		{"invalid id", []toolgroups.Group{good, group("a b")}, modules.StepRegister, errcode.InvalidGroupDef},
		{"invalid tool name", []toolgroups.Group{good, group("g", textTool("a b", "1"))}, modules.StepRegister, errcode.InvalidGroupDef},
		{"nil tool", []toolgroups.Group{good, group("g", nil)}, modules.StepRegister, errcode.InvalidGroupDef},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			fx := newFixture(t)
			f := newFakeModule("m", tt.groups...)
			wantStep(t, fx.loader.LoadModule(t.Context(), f), tt.step, tt.code)
			wantCalls(t, f, "name provision validate groups close")
			fx.wantOffered()
			fx.wantOthersUnchanged()
		})
		t.Run(tt.why+", reload", func(t *testing.T) {
			fx := newFixture(t)
			old, f := newFakeModule("m", group("good", textTool("fine", "old")), group("gone", textTool("t", "old"))), newFakeModule("m", tt.groups...)
			fx.load(old)
			wantStep(t, fx.loader.ReloadModule(t.Context(), f), tt.step, tt.code)
			wantCalls(t, f, "name provision validate groups close")
			wantCalls(t, old, "name provision validate groups")
			fx.wantOffered("module:m gone: t=old", "module:m good: fine=old")
			fx.wantLoaded(modules.ModuleInfo{Name: "m", Groups: []toolgroups.GroupID{"gone", "good"}})
			fx.wantOthersUnchanged()
		})
	}
}

// wantOthersUnchanged checks that the tools of the other owners work.
func (fx *fixture) wantOthersUnchanged() {
	fx.Helper()
	for name, want := range map[string]string{"read_file": "builtin", "other_tool": "neighbour"} {
		if got := fx.call(name); got != want {
			fx.Errorf("%s returns %q, want %q", name, got, want)
		}
	}
}

func TestLoader_CopiesDefinitionsOnce(t *testing.T) {
	fx := newFixture(t)
	input := []byte(`{"type":"object"}`)
	fx.load(newFakeModule("m", group("g", &changingTool{input: input})))
	copy(input, "overwrite")
	h, _ := fx.manager.CurrentSnapshot().LookupTool("first")
	if d := h.Tool.Definition(); d.Name != "first" || string(d.Input) != `{"type":"object"}` || string(h.Definition.Input) != `{"type":"object"}` {
		t.Errorf("the definition changed to %s %s", d.Name, d.Input)
	}
}

// changingTool is a tool whose second definition has another name.
type changingTool struct {
	toolFunc
	input []byte
	asked bool
}

func (s *changingTool) Definition() tool.Definition {
	d := tool.Definition{Name: "first", Input: s.input}
	if s.asked {
		d.Name = "read_file"
	}
	s.asked = true
	return d
}

func TestLoader_RejectsConflictingChanges(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("g", textTool("t", "1")))
	fx.load(f)
	another := newFakeModule("m", group("g", textTool("t", "2")))
	for what, err := range map[string]error{
		"load twice":         fx.loader.LoadModule(t.Context(), another),
		"load itself":        fx.loader.LoadModule(t.Context(), f),
		"reload itself":      fx.loader.ReloadModule(t.Context(), f),
		"reload unknown":     fx.loader.ReloadModule(t.Context(), newFakeModule("n")),
		"unload unknown":     fx.loader.UnloadModule(t.Context(), "n"),
		"unload other owner": fx.loader.UnloadModule(t.Context(), "neighbour"),
	} {
		t.Run(what, func(t *testing.T) { wantStep(t, err, modules.StepCheck, errcode.Conflict) })
	}
	if strings.Contains(f.recorded()+another.recorded(), "close") {
		t.Error("a rejected change closed a module")
	}
	fx.wantOffered("module:m g: t=1")
}

func TestLoader_AllowsOneChangePerModule(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("g", textTool("t", "1")))
	f.provision = func(ctx context.Context) error {
		wantStep(t, fx.loader.LoadModule(ctx, newFakeModule("m")), modules.StepCheck, errcode.Conflict)
		wantStep(t, fx.loader.UnloadModule(ctx, "m"), modules.StepCheck, errcode.Conflict)
		return fx.loader.LoadModule(ctx, newFakeModule("helper")) // another module can be changed
	}
	fx.load(f)
	if _, ok := fx.loader.GroupsOf("helper"); !ok {
		t.Error("the other module was not loaded")
	}
}

func TestLoader_CloseUnloadsInReverseOrder(t *testing.T) {
	fx := newFixture(t)
	var order []string
	for _, name := range []string{"b", "c", "a"} {
		f := newFakeModule(name, group(toolgroups.GroupID("of_"+name), textTool("t_"+name, "1")))
		f.close = func() error { order = append(order, name); return nil }
		fx.load(f)
	}
	for range 2 {
		if err := fx.loader.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	if got := strings.Join(order, " "); got != "a c b" {
		t.Errorf("closed in the order %s, want a c b", got)
	}
	fx.wantOffered()
	late := newFakeModule("late")
	wantStep(t, fx.loader.LoadModule(t.Context(), late), modules.StepCheck, errcode.Conflict)
	wantCalls(t, late, "name")
}

func TestLoader_UndoesLoadDuringClose(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m", group("g", textTool("t", "1")))
	f.validate = func() error { return fx.loader.Close(t.Context()) }
	wantStep(t, fx.loader.LoadModule(t.Context(), f), modules.StepRegister, errcode.Conflict)
	wantCalls(t, f, "name provision validate groups close")
	fx.wantOffered()
}

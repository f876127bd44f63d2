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

func TestAModuleLivesThroughTheStepsInOrder(t *testing.T) {
	k := newKit(t)
	f := newFake("m", group("b", says("beta", "1")), group("a", says("alpha", "2"), says("gamma", "3")))
	k.load(f)
	wantLog(t, f, "name provision validate groups")
	k.wantOffered("module:m a: alpha=2 gamma=3", "module:m b: beta=1")
	k.wantLoaded(modules.Info{Name: "m", Groups: []toolgroups.GroupID{"a", "b"}})

	if err := k.loader.Unload(t.Context(), "m"); err != nil {
		t.Fatalf("Unload: %v", err)
	}
	wantLog(t, f, "name provision validate groups close")
	k.wantOffered()
	k.wantLoaded()
}

func TestModulesAreListedByName(t *testing.T) {
	k := newKit(t)
	for _, name := range []string{"m2", "m10", "a"} {
		k.load(plain{name})
	}
	none := []toolgroups.GroupID{}
	k.wantLoaded(modules.Info{Name: "a", Groups: none}, modules.Info{Name: "m10", Groups: none}, modules.Info{Name: "m2", Groups: none})
	if _, ok := k.loader.GroupsOf("m2"); !ok {
		t.Error("GroupsOf does not know m2")
	}
	if _, ok := k.loader.GroupsOf("m3"); ok {
		t.Error("GroupsOf knows m3, which is not loaded")
	}
}

func TestANameThatMayNotNameAModuleIsRefusedUntouched(t *testing.T) {
	for _, name := range []string{
		"", "builtin", "config", "operator", "root", "Root", "BUILTIN",
		"a b", "a/b", "module:x", "mоdule", "a\x00", "a\xff", strings.Repeat("n", 129),
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			f := newFake(name, group("g", says("t", "1")))
			wantStep(t, k.loader.Load(t.Context(), f), modules.StepCheck, errcode.InvalidConfig)
			wantLog(t, f, "name")
			k.wantOffered()
		})
	}
}

func TestNoModuleIsAnError(t *testing.T) {
	k := newKit(t)
	var missing *fake
	wantStep(t, k.loader.Load(t.Context(), nil), modules.StepCheck, errcode.InvalidConfig)
	wantStep(t, k.loader.Load(t.Context(), missing), modules.StepCheck, errcode.Internal)
}

// breakages are the ways a module fails before its groups are registered.
var breakages = []struct {
	step modules.Step
	log  string // what the module sees until it is closed
	set  func(f *fake, fail func() error)
}{
	{modules.StepProvision, "name provision close", func(f *fake, fail func() error) {
		f.provision = func(context.Context) error { return fail() }
	}},
	{modules.StepValidate, "name provision validate close", func(f *fake, fail func() error) {
		f.validate = fail
	}},
}

func TestAModuleThatFailsIsClosedAndLeavesNothing(t *testing.T) {
	cause := errors.New("no such host")
	for _, b := range breakages {
		t.Run(string(b.step), func(t *testing.T) {
			k := newKit(t)
			f := newFake("m", group("g", says("t", "1")))
			b.set(f, func() error { return cause })
			err := k.loader.Load(t.Context(), f)
			wantStep(t, err, b.step, errcode.Internal)
			if !errors.Is(err, cause) {
				t.Errorf("error %v does not hold its cause", err)
			}
			wantLog(t, f, b.log)
			k.wantOffered()
			k.wantLoaded()
		})
	}
}

func TestAPanicIsTheErrorOfItsStep(t *testing.T) {
	boom := func() error { panic("boom") }
	tests := []struct {
		step modules.Step
		log  string
		set  func(*fake)
	}{
		{modules.StepCheck, "name", func(f *fake) { f.name = func() string { panic("boom") } }},
		{breakages[0].step, breakages[0].log, func(f *fake) { breakages[0].set(f, boom) }},
		{breakages[1].step, breakages[1].log, func(f *fake) { breakages[1].set(f, boom) }},
		{modules.StepGroups, "name provision validate groups close", func(f *fake) {
			f.groups = func() []toolgroups.Group { panic("boom") }
		}},
		{modules.StepGroups, "name provision validate groups close", func(f *fake) {
			f.groups = func() []toolgroups.Group { return []toolgroups.Group{group("g", panicky{})} }
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.step), func(t *testing.T) {
			k := newKit(t)
			f := newFake("m", group("g", says("t", "1")))
			tt.set(f)
			err := k.loader.Load(t.Context(), f)
			wantStep(t, err, tt.step, errcode.Internal)
			if err == nil || !strings.Contains(err.Error(), "panicked: boom") {
				t.Errorf("error %v does not tell of the panic", err)
			}
			wantLog(t, f, tt.log)
			k.wantOffered()
			k.load(newFake("m", group("g", says("t", "the next one")))) // the name is free again
		})
	}
}

// panicky has no definition.
type panicky struct{ toolFunc }

func (panicky) Definition() tool.Definition { panic("boom") }

func TestAPanicInCloseIsAnErrorAndTheModuleIsGone(t *testing.T) {
	k := newKit(t)
	f := newFake("m", group("g", says("t", "1")))
	f.close = func() error { panic("boom") }
	k.load(f)
	wantStep(t, k.loader.Unload(t.Context(), "m"), modules.StepClose, errcode.Internal)
	k.wantOffered()
	k.wantLoaded()
}

func TestBothErrorsAreToldWhenAFailedModuleDoesNotClose(t *testing.T) {
	k := newKit(t)
	f := newFake("m")
	first, second := errors.New("not valid"), errors.New("not closed")
	f.validate = func() error { return first }
	f.close = func() error { return second }
	err := k.loader.Load(t.Context(), f)
	wantStep(t, err, modules.StepValidate, errcode.Internal)
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Errorf("error %v does not hold both causes", err)
	}
}

// Property (design §4, Names and owners): a module gets no group id and no
// tool name of another owner, and what it had registered before it was
// refused goes.
func TestAModuleGetsNothingOfOthers(t *testing.T) {
	good := group("good", says("fine", "1"))
	tests := []struct {
		why    string
		groups []toolgroups.Group
		step   modules.Step
		code   errcode.Code
	}{
		{"a reserved id", []toolgroups.Group{good, group(toolgroups.Workspace, says("t", "1"))}, modules.StepRegister, errcode.ReservedGroupID},
		{"a reserved id nobody registered", []toolgroups.Group{good, group(toolgroups.Command)}, modules.StepRegister, errcode.ReservedGroupID},
		{"another owner's id", []toolgroups.Group{good, group("next_door", says("t", "1"))}, modules.StepRegister, errcode.DuplicateGroupID},
		{"another owner's tool name", []toolgroups.Group{good, group("g", says("knock", "1"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"a built-in tool's name", []toolgroups.Group{good, group("g", says("read_file", "1"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"one tool name in two groups", []toolgroups.Group{good, group("g", says("fine", "1"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"one tool name twice in a group", []toolgroups.Group{good, group("g", says("t", "1"), says("t", "2"))}, modules.StepRegister, errcode.DuplicateToolName},
		{"one id twice", []toolgroups.Group{good, group("good", says("t", "1"))}, modules.StepGroups, errcode.DuplicateGroupID},
		{"an id that is none", []toolgroups.Group{good, group("a b")}, modules.StepRegister, errcode.InvalidGroupDef},
		{"a tool name that is none", []toolgroups.Group{good, group("g", says("a b", "1"))}, modules.StepRegister, errcode.InvalidGroupDef},
		{"no tool", []toolgroups.Group{good, group("g", nil)}, modules.StepRegister, errcode.InvalidGroupDef},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			k := newKit(t)
			f := newFake("m", tt.groups...)
			wantStep(t, k.loader.Load(t.Context(), f), tt.step, tt.code)
			wantLog(t, f, "name provision validate groups close")
			k.wantOffered()
			k.wantNeighbours()
		})
		t.Run(tt.why+", in a reload", func(t *testing.T) {
			k := newKit(t)
			old, f := newFake("m", group("good", says("fine", "old")), group("gone", says("t", "old"))), newFake("m", tt.groups...)
			k.load(old)
			wantStep(t, k.loader.Reload(t.Context(), f), tt.step, tt.code)
			wantLog(t, f, "name provision validate groups close")
			wantLog(t, old, "name provision validate groups")
			k.wantOffered("module:m gone: t=old", "module:m good: fine=old")
			k.wantLoaded(modules.Info{Name: "m", Groups: []toolgroups.GroupID{"gone", "good"}})
			k.wantNeighbours()
		})
	}
}

func (k *kit) wantNeighbours() {
	k.Helper()
	for name, want := range map[string]string{"read_file": "builtin", "knock": "neighbour"} {
		if got := k.call(name); got != want {
			k.Errorf("%s answers %q, want %q", name, got, want)
		}
	}
}

func TestTheDefinitionOfAToolIsWhatItWasWhenItsModuleWasLoaded(t *testing.T) {
	k := newKit(t)
	input := []byte(`{"type":"object"}`)
	k.load(newFake("m", group("g", &shifty{input: input})))
	copy(input, "all else")
	h, _ := k.manager.Snapshot().Lookup("first")
	if d := h.Tool.Definition(); d.Name != "first" || string(d.Input) != `{"type":"object"}` || string(h.Definition.Input) != `{"type":"object"}` {
		t.Errorf("definition became %s %s", d.Name, d.Input)
	}
}

// shifty is a tool with another name each time.
type shifty struct {
	toolFunc
	input []byte
	asked bool
}

func (s *shifty) Definition() tool.Definition {
	d := tool.Definition{Name: "first", Input: s.input}
	if s.asked {
		d.Name = "read_file"
	}
	s.asked = true
	return d
}

func TestAChangeThatDoesNotFitIsAConflict(t *testing.T) {
	k := newKit(t)
	f := newFake("m", group("g", says("t", "1")))
	k.load(f)
	another := newFake("m", group("g", says("t", "2")))
	for what, err := range map[string]error{
		"load twice":           k.loader.Load(t.Context(), another),
		"load itself":          k.loader.Load(t.Context(), f),
		"reload itself":        k.loader.Reload(t.Context(), f),
		"reload what is not":   k.loader.Reload(t.Context(), newFake("n")),
		"unload what is not":   k.loader.Unload(t.Context(), "n"),
		"unload what could be": k.loader.Unload(t.Context(), "neighbour"),
	} {
		t.Run(what, func(t *testing.T) { wantStep(t, err, modules.StepCheck, errcode.Conflict) })
	}
	if strings.Contains(f.noted()+another.noted(), "close") {
		t.Error("a module was closed by a refusal")
	}
	k.wantOffered("module:m g: t=1")
}

func TestOneChangeOfAModuleAtATime(t *testing.T) {
	k := newKit(t)
	f := newFake("m", group("g", says("t", "1")))
	f.provision = func(ctx context.Context) error {
		wantStep(t, k.loader.Load(ctx, newFake("m")), modules.StepCheck, errcode.Conflict)
		wantStep(t, k.loader.Unload(ctx, "m"), modules.StepCheck, errcode.Conflict)
		return k.loader.Load(ctx, newFake("helper")) // another one is no matter
	}
	k.load(f)
	if _, ok := k.loader.GroupsOf("helper"); !ok {
		t.Error("the other module was not loaded")
	}
}

func TestCloseUnloadsTheLastLoadedFirst(t *testing.T) {
	k := newKit(t)
	var order []string
	for _, name := range []string{"b", "c", "a"} {
		f := newFake(name, group(toolgroups.GroupID("of_"+name), says("t_"+name, "1")))
		f.close = func() error { order = append(order, name); return nil }
		k.load(f)
	}
	for range 2 {
		if err := k.loader.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	if got := strings.Join(order, " "); got != "a c b" {
		t.Errorf("closed in the order %s, want a c b", got)
	}
	k.wantOffered()
	late := newFake("late")
	wantStep(t, k.loader.Load(t.Context(), late), modules.StepCheck, errcode.Conflict)
	wantLog(t, late, "name")
}

func TestALoadThatCloseOvertakesIsUndone(t *testing.T) {
	k := newKit(t)
	f := newFake("m", group("g", says("t", "1")))
	f.validate = func() error { return k.loader.Close(t.Context()) }
	wantStep(t, k.loader.Load(t.Context(), f), modules.StepRegister, errcode.Conflict)
	wantLog(t, f, "name provision validate groups close")
	k.wantOffered()
}

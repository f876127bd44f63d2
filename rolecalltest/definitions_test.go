package rolecalltest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/rolecalltest"
	"github.com/rolecall/rolecall/tool"
)

// variant is a module whose groups, and the definition of whose first tool, may depend on the
// number of calls.
type variant struct {
	desk
	describe func(d *tool.Definition, call int)
	regroup  func(list []rolecall.ToolGroup, call int) []rolecall.ToolGroup
	calls    *atomic.Int32
}

func (v variant) ToolGroups() []rolecall.ToolGroup {
	if v.regroup != nil {
		return v.regroup(v.groups, int(v.calls.Add(1)))
	}
	group := v.groups[0]
	group.Tools = append([]rolecall.Tool{variantTool{group.Tools[0], v}}, group.Tools[1:]...)
	return []rolecall.ToolGroup{group}
}

type variantTool struct {
	rolecall.Tool
	variant variant
}

func (t variantTool) Definition() tool.Definition {
	d := t.Tool.Definition()
	t.variant.describe(&d, int(t.variant.calls.Add(1)))
	return d
}

func (variantTool) Call(context.Context, tool.Call) (tool.Result, error) {
	panic("no function is called")
}

// badModules are the modules that CheckProperties rejects, by what is wrong with them.
func badModules(t *testing.T) map[string][]rolecall.Module {
	var unused atomic.Int32
	describe := func(change func(d *tool.Definition, call int)) []rolecall.Module {
		return []rolecall.Module{variant{desk: newDesk(t, &unused), describe: change, calls: new(atomic.Int32)}}
	}
	regroup := func(change func(list []rolecall.ToolGroup, call int) []rolecall.ToolGroup) []rolecall.Module {
		return []rolecall.Module{variant{desk: newDesk(t, &unused), regroup: change, calls: new(atomic.Int32)}}
	}
	add := func(g rolecall.ToolGroup) []rolecall.Module {
		return regroup(func(list []rolecall.ToolGroup, _ int) []rolecall.ToolGroup { return append(list[:1:1], g) })
	}
	return map[string][]rolecall.Module{
		"name at least one module": nil,
		`group "desk" of module "desk" has the tools [note_1 open_note edit_note] when it is loaded and [note_2 open_note edit_note] later`: describe(
			func(d *tool.Definition, call int) { d.Name = fmt.Sprint("note_", call) }),
		`the definition of the tool "read_note" of module "desk" differs from one call of Definition to the next`: describe(
			func(d *tool.Definition, call int) { d.Description = fmt.Sprint("Read note ", call) }),
		`module "desk" has the groups [desk desk_1] when it is loaded and [desk desk_2] later`: regroup(
			func(list []rolecall.ToolGroup, call int) []rolecall.ToolGroup {
				return append(list[:1:1], rolecall.ToolGroup{ID: rolecall.GroupID(fmt.Sprint("desk_", call)), Refs: []string{"read_note"}})
			}),
		`group "desk" of module "desk" has the description "Notes 1" when it is loaded and "Notes 2" later`: regroup(
			func(list []rolecall.ToolGroup, call int) []rolecall.ToolGroup {
				return []rolecall.ToolGroup{{ID: "desk", Description: fmt.Sprint("Notes ", call), Tools: list[0].Tools}}
			}),
		`module "desk" has no tool groups`:                                           {desk{}},
		`group "empty" of module "desk" has no tools and no prompts`:                 add(rolecall.ToolGroup{ID: "empty"}),
		`group "blank" of module "desk" has an empty description`:                    add(rolecall.ToolGroup{ID: "blank", Description: " ", Refs: []string{"read_note"}}),
		`group "lost" refers to the tool "lose_note", which is not a tool of module`: add(rolecall.ToolGroup{ID: "lost", Refs: []string{"lose_note", "read_note"}}),
		`tool "read_note" of module "desk" has an empty description`:                 describe(func(d *tool.Definition, _ int) { d.Description = "\n" }),
		`tool "read_note" can be called in the state "closed", which no tool leads to`: describe(
			func(d *tool.Definition, _ int) { d.States = []string{"closed", "open"} }),
		`tool "read_note" of module "desk" has empty States, so it can never be called`: describe(
			func(d *tool.Definition, _ int) { d.States = []string{} }),
		`tool "read_note" leads to the state "read", in which no tool can be called`: {variant{
			desk: desk{[]rolecall.ToolGroup{{ID: "desk", Tools: newDesk(t, &unused).groups[0].Tools[:1]}}}, calls: new(atomic.Int32),
			describe: func(d *tool.Definition, _ int) { d.State, d.States = "read", []string{"undefined"} }}},
		`"workspace"`: add(rolecall.ToolGroup{ID: "workspace", Refs: []string{"read_note"}}),
	}
}

// A module whose definitions change, lack something, or cannot be registered fails the test
// with one sentence.
func TestCheckProperties_RejectsBadModules(t *testing.T) {
	bad := badModules(t)
	if want := os.Getenv("ROLECALLTEST_FAILS"); want != "" {
		rolecalltest.CheckProperties(t, bad[want]...)
		return
	}
	for want := range bad {
		again := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		again.Env = append(os.Environ(), "ROLECALLTEST_FAILS="+want)
		out, err := again.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Count(string(out), "_test.go:")+strings.Count(string(out), "properties.go:") != 1 {
			t.Errorf("%s: got %v:\n%s", want, err, out)
		}
	}
}

// cachedDesk is a module that knows its groups before it is provisioned.
type cachedDesk struct{ desk }

func (c cachedDesk) CachedGroups() ([]rolecall.ToolGroup, bool) { return c.groups, true }
func (cachedDesk) ToolGroups() []rolecall.ToolGroup             { panic("the module is not provisioned") }

func TestCheckProperties_HoldsForLazyModules(t *testing.T) {
	var calls atomic.Int32
	rolecalltest.CheckProperties(t, cachedDesk{newDesk(t, &calls)})
}

package modules_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// describedModule is a module with a description.
type describedModule struct {
	*fakeModule
	text string
}

func (d describedModule) Description() string { return d.text }

// A group without an id or a description has that of its module, also when the module is
// refreshed or has cached groups.
func TestLoader_GroupsDefaultToModule(t *testing.T) {
	anonymous := toolgroups.Group{Tools: []tool.Tool{textTool("t", "1")}}
	named := toolgroups.Group{ID: "own", Description: "own text", Tools: []tool.Tool{textTool("u", "2")}}
	for _, c := range []struct {
		name   string
		module modules.Module
		want   map[toolgroups.GroupID]string
	}{
		{"described", describedModule{newFakeModule("m", anonymous, named), "what m does"}, map[toolgroups.GroupID]string{"m": "what m does", "own": "own text"}},
		{"not described", newFakeModule("m", anonymous, named), map[toolgroups.GroupID]string{"m": "Tools of the module m", "own": "own text"}},
		{"empty description", describedModule{newFakeModule("m", anonymous), ""}, map[toolgroups.GroupID]string{"m": "Tools of the module m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := newFixture(t)
			fx.load(c.module)
			for range 2 {
				got := map[toolgroups.GroupID]string{}
				for id := range c.want {
					info, _ := fx.manager.CurrentSnapshot().LookupGroup(id)
					got[id] = info.Description
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				fx.loader.NotifyChanged("m")
				if err := fx.loader.WaitIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A default id is subject to the rules of ids. The error names the module once.
func TestLoader_DefaultIDMayBeTaken(t *testing.T) {
	for _, c := range []struct {
		name string
		want errcode.Code
	}{{"workspace", errcode.ReservedGroupID}, {"command", errcode.ReservedGroupID}, {"other_group", errcode.DuplicateGroupID}} {
		fx := newFixture(t)
		f := newFakeModule(c.name, toolgroups.Group{Tools: []tool.Tool{textTool("t", "1")}})
		err := fx.loader.LoadModule(t.Context(), f)
		wantStep(t, err, modules.StepRegister, c.want)
		if strings.Count(err.Error(), `"`+c.name+`"`) != 1 {
			t.Errorf("the error is %s", err)
		}
		fx.wantOffered()
	}
	fx := newFixture(t)
	twice := newFakeModule("m", toolgroups.Group{}, toolgroups.Group{ID: "m"})
	wantStep(t, fx.loader.LoadModule(t.Context(), twice), modules.StepGroups, errcode.DuplicateGroupID)
}

// An error of a module says what is wrong once.
func TestStepError_NamesModuleOnce(t *testing.T) {
	fx := newFixture(t)
	f := newFakeModule("m")
	f.provision = func(context.Context) error { return errcode.New(errcode.ToolUnavailable, `server "m" is down`) }
	if got, want := fx.loader.LoadModule(t.Context(), f).Error(), `tool_unavailable: server "m" is down`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fx.load(newFakeModule("again"))
	if got, want := fx.loader.LoadModule(t.Context(), newFakeModule("again")).Error(), `conflict: module "again" is loaded already; reload it or choose another name`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f = newFakeModule("m2")
	f.provision = func(context.Context) error { return errcode.New(errcode.ToolUnavailable, "no room") }
	if got, want := fx.loader.LoadModule(t.Context(), f).Error(), `module "m2": provision: tool_unavailable: no room`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package toolgroups_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Whatever string names a group, a tool or a state, registering it is refused
// with its code or it is there under exactly this name, and no other.
func TestNaughtyNamesOfGroupsToolsAndStates(t *testing.T) {
	doors := map[string]func(s string) toolgroups.Group{
		"group": func(s string) toolgroups.Group {
			return toolgroups.Group{ID: toolgroups.GroupID(s), Description: s, Tools: stubs("a")}
		},
		"tool": func(s string) toolgroups.Group {
			return toolgroups.Group{ID: "g", Tools: []tool.Tool{named{tool.Definition{Name: s, Description: s, Input: object}}}}
		},
		"state": func(s string) toolgroups.Group {
			return toolgroups.Group{ID: "g", Tools: []tool.Tool{named{tool.Definition{Name: "a", States: []string{s}, State: s, Input: object}}}}
		},
	}
	for name, group := range doors {
		t.Run(name, func(t *testing.T) {
			accepted := 0
			for _, s := range append(corpus.NaughtyStrings(), "*", "a/../b", "a\x00", "..", "\xff") {
				m, g := toolgroups.NewManager(), group(s)
				_, err := m.Register("o", g)
				if err != nil {
					if code := errcode.Of(err); code != errcode.InvalidGroupDef {
						t.Errorf("%q is refused with %s: %v", s, code, err)
					}
					if len(m.Snapshot().Tools()) != 0 {
						t.Errorf("%q is refused and there", s)
					}
					continue
				}
				accepted++
				want := g.Tools[0].Definition()
				got := m.Snapshot().Tools()
				owner, found := m.Snapshot().GroupOf(want.Name)
				if len(got) != 1 || got[0].Definition.Name != want.Name || !slices.Equal(got[0].Definition.States, want.States) || !found || owner != g.ID {
					t.Errorf("%q became %+v of group %q", s, got, owner)
				}
			}
			t.Logf("%d accepted", accepted)
			if accepted == 0 {
				t.Error("none was accepted: the door was not tried")
			}
		})
	}
}

var object = []byte(`{"type":"object"}`)

// named is a tool that is only its definition.
type named struct{ d tool.Definition }

func (n named) Definition() tool.Definition { return n.d }

func (n named) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

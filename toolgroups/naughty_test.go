package toolgroups_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// For any string as the name of a group, a tool or a state, RegisterGroup either returns an
// error with its code or registers exactly this name.
func TestRegister_NaughtyNames(t *testing.T) {
	inputs := map[string]func(s string) toolgroups.Group{
		"group": func(s string) toolgroups.Group {
			return toolgroups.Group{ID: toolgroups.GroupID(s), Description: s, Tools: stubs("a")}
		},
		"tool": func(s string) toolgroups.Group {
			return toolgroups.Group{ID: "g", Tools: []tool.Tool{definitionTool{tool.Definition{Name: s, Description: s, Input: object}}}}
		},
		"state": func(s string) toolgroups.Group {
			return toolgroups.Group{ID: "g", Tools: []tool.Tool{definitionTool{tool.Definition{Name: "a", States: []string{s}, State: s, Input: object}}}}
		},
	}
	for name, group := range inputs {
		t.Run(name, func(t *testing.T) {
			accepted := 0
			for _, s := range append(corpus.NaughtyStrings(), "*", "a/../b", "a\x00", "..", "\xff") {
				m, g := toolgroups.NewManager(), group(s)
				_, err := grouptest.RegisterGroup(m, "o", g)
				if err != nil {
					if code := errcode.CodeOf(err); code != errcode.InvalidGroupDef {
						t.Errorf("%q: got code %s: %v", s, code, err)
					}
					if len(m.CurrentSnapshot().ListTools()) != 0 {
						t.Errorf("%q: registered in spite of the error", s)
					}
					continue
				}
				accepted++
				want := g.Tools[0].Definition()
				got := m.CurrentSnapshot().ListTools()
				owner, found := m.CurrentSnapshot().GroupOf(want.Name)
				if len(got) != 1 || got[0].Definition.Name != want.Name || !slices.Equal(got[0].Definition.States, want.States) || !found || owner != g.ID {
					t.Errorf("%q became %+v of group %q", s, got, owner)
				}
			}
			t.Logf("%d accepted", accepted)
			if accepted == 0 {
				t.Error("no string was accepted: the input was not tested")
			}
		})
	}
}

var object = []byte(`{"type":"object"}`)

// definitionTool is a tool that consists of its definition only.
type definitionTool struct{ d tool.Definition }

func (n definitionTool) Definition() tool.Definition { return n.d }

func (n definitionTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, nil
}

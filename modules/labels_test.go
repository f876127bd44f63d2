package modules_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// A label of a tool replaces what the module says. A label of all tools fills in what
// the module does not say. It replaces the effect and the flags.
func TestLabels_Apply(t *testing.T) {
	effect := func(e tool.Effect) *tool.Effect { return &e }
	state := func(s string) *string { return &s }
	labels := modules.Labels{
		All: modules.Label{Effect: effect(tool.Idempotent), State: state("all"), States: []string{"x"}, Flags: tool.FlagsOf(tool.Private)},
		Tools: map[string]modules.Label{
			"api":  {Effect: effect(tool.Mutating), State: state(""), States: []string{}, Flags: tool.FlagsOf()},
			"name": {State: state("named")},
		},
	}
	for _, c := range []struct {
		labels modules.Labels
		api    string
		in     tool.Definition
		want   tool.Definition
	}{
		{modules.Labels{}, "api", tool.Definition{Name: "a", Effect: tool.ReadOnly, State: "s", States: []string{"y"}}, tool.Definition{Name: "a", Effect: tool.ReadOnly, State: "s", States: []string{"y"}}},
		{labels, "other", tool.Definition{Name: "a", Effect: tool.ReadOnly, Flags: tool.FlagsOf(tool.Outside)}, tool.Definition{Name: "a", Effect: tool.Idempotent, Flags: tool.FlagsOf(tool.Private), State: "all", States: []string{"x"}}},
		{labels, "other", tool.Definition{Name: "a", State: "s", States: []string{}}, tool.Definition{Name: "a", Effect: tool.Idempotent, Flags: tool.FlagsOf(tool.Private), State: "s", States: []string{}}},
		{labels, "api", tool.Definition{Name: "name", Effect: tool.ReadOnly, State: "s", States: []string{"y"}}, tool.Definition{Name: "name", Effect: tool.Mutating, Flags: tool.FlagsOf(), States: []string{}}},
		{labels, "", tool.Definition{Name: "name", State: "s"}, tool.Definition{Name: "name", Effect: tool.Idempotent, Flags: tool.FlagsOf(tool.Private), State: "named", States: []string{"x"}}},
	} {
		if diff := cmp.Diff(c.want, c.labels.Apply(c.api, c.in)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.api, c.in.Name, diff)
		}
	}
}

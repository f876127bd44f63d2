package modules_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/textstats"
	"github.com/rolecall/rolecall/toolgroups"
)

// A module is made from its configuration and loaded; then its groups are registered.
func Example() {
	var kinds modules.KindRegistry
	if err := kinds.RegisterKind(modules.ModuleKind{Name: textstats.Kind, New: textstats.New}); err != nil {
		fmt.Println(err)
		return
	}
	m, err := kinds.NewModule(textstats.Kind, modules.Config{Settings: json.RawMessage(`{"lines": 1}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	loader := modules.NewLoader(groups)
	if err := loader.LoadModule(ctx, m); err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups.CurrentSnapshot().ListGroups() {
		fmt.Println(g.ID, g.Tools, "of", g.Owner)
	}
	fmt.Println(loader.UnloadModule(ctx, "textstats"), len(groups.CurrentSnapshot().ListGroups()))
	// Output:
	// textstats [count_words longest_lines] of module:textstats
	// <nil> 0
}

// An error names the module and the step that failed.
func ExampleStepError() {
	loader := modules.NewLoader(toolgroups.NewManager())
	fmt.Println(loader.LoadModule(context.Background(), plainModule{"root"}))
	// Output:
	// invalid_config: module name "root" is reserved; choose another
}

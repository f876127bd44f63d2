package chrome_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/chrome"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

// A build adds the browser to its module kinds. The browser itself starts with the first call.
func Example() {
	policy := func() chrome.Policy { return chrome.Policy{Hosts: hosts.AnyHost()} } // public addresses over HTTPS
	var kinds modules.KindRegistry
	if err := kinds.RegisterKind(modules.ModuleKind{Name: chrome.Kind, New: chrome.New(chrome.Deps{Policy: policy})}); err != nil {
		fmt.Println(err)
		return
	}
	m, err := kinds.NewModule(chrome.Kind, modules.Config{Name: "chrome", Settings: json.RawMessage(`{"idle": "5m"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	groups, ctx := toolgroups.NewManager(toolgroups.ReservedIDs()...), context.Background()
	loader := modules.NewLoader(groups)
	defer loader.Close(ctx)
	if err := loader.LoadModule(ctx, m); err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups.CurrentSnapshot().ListGroups() {
		fmt.Println(g.ID, len(g.Tools))
	}
	// Output:
	// chrome 10
}

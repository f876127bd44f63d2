package builtin_test

import (
	"errors"
	"fmt"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// A program that embeds the runtime registers the built-in groups.
func Example() {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return nil, errors.New("no model") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups.CurrentSnapshot().ListGroups() {
		fmt.Println(g.ID, "by", g.Owner)
	}
	// Output:
	// artifact by builtin
	// command by builtin
	// console by builtin
	// context by builtin
	// network by builtin
	// org_management by builtin
	// workspace by builtin
}

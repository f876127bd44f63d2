package runtime_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A program registers a tool group, creates a role that may use it, and runs a
// task by an agent of that role.
func Example() {
	dir, err := os.MkdirTemp("", "rolecall-example-")
	check(err)
	defer os.RemoveAll(dir)
	agents, err := script.New("agents.js", []byte(`role("guide", function* (task) {
		return yield call("forecast", { city: task.payload.text });
	});`))
	check(err)
	defer agents.Close()
	ctx, operator := context.Background(), identity.ByOperator("me")

	store, err := persist.Open(dir)
	check(err)
	defer store.Close()
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups,
		Model: func(string) (model.Model, error) { return agents, nil }})
	check(err)
	defer rt.Close()
	check(builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}))

	forecast, err := tool.New("forecast", "Tell the weather of a city.", forecast, nil)
	check(err)
	weather, err := groups.ClaimOwner("weather")
	check(err)
	_, err = weather.RegisterGroup(toolgroups.Group{ID: "weather", Tools: []tool.Tool{forecast}})
	check(err)
	use := toolgroups.SetOf("weather")
	_, err = rt.CreateRole(ctx, tool.Call{By: operator}, org.RoleSpec{Name: "guide", Use: &use})
	check(err)
	id, err := rt.StartTask(ctx, org.TaskSpec{Role: "guide", Text: "Vienna", Caller: operator})
	check(err)
	task, err := rt.WaitTask(ctx, id)
	check(err)
	fmt.Println(task.Status, string(task.Result))
	// Output: done "sunny in Vienna"
}

type place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func forecast(_ context.Context, in place) (string, error) { return "sunny in " + in.City, nil }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

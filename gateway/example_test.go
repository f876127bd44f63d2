package gateway_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// A client asks a gateway in the same process whether tools may be called.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := persist.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: groups, Model: func(string) (model.Model, error) { return modelFunc(teamModel), nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	if err := builtin.Register(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		log.Fatal(err)
	}
	handler, err := gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.AlwaysOperator})
	if err != nil {
		log.Fatal(err)
	}

	ctx, client := context.Background(), gateway.Local(handler)
	use := toolgroups.Of("workspace")
	if _, err := client.CreateRole(ctx, gateway.RoleRequest{Name: "reader", Use: &use}, false); err != nil {
		log.Fatal(err)
	}
	for _, tool := range []string{"read_file", "run_command"} {
		v, err := client.Can(ctx, gateway.Question{Role: "reader", Tool: tool})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(v.Allowed, v.Reason)
	}
	// Output:
	// true tool read_file is available through group workspace
	// false tool run_command is not available to this role
}

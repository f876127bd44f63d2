package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// A client creates a role and asks whether it may call tools. The gateway is in
// this process; client.Dial and client.NewRemote reach others.
func Example() {
	handler, done, err := newGateway()
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	ctx, c := context.Background(), client.NewLocal(handler)
	use := toolgroups.SetOf("workspace")
	if _, err := c.CreateRole(ctx, client.RoleRequest{Name: "reader", Use: &use}, false); err != nil {
		log.Fatal(err)
	}
	for _, tool := range []string{"read_file", "run_command"} {
		v, err := c.CheckAccess(ctx, client.Question{Role: "reader", Tool: tool})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(v.Allowed, v.Reason)
	}
	// Output:
	// true tool read_file is available through group workspace
	// false tool run_command is not available to this role
}

// newGateway returns a gateway for an empty organization in memory.
func newGateway() (handler http.Handler, done func(), err error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return nil, errors.New("no model") },
	})
	if err != nil {
		return nil, nil, err
	}
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		return nil, nil, errors.Join(err, rt.Close())
	}
	handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: auth.AlwaysOperator})
	return handler, func() { rt.Close() }, err
}

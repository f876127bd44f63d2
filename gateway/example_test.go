package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// A gateway is served on the socket of a data directory. A process on this
// machine connects to it as the operator.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return nil, errors.New("no model") },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	handler, err := gateway.New(gateway.Config{Runtime: rt, Authenticate: auth.AlwaysOperator, Version: "v1"})
	if err != nil {
		log.Fatal(err)
	}

	listener, err := gateway.ListenUnix(dir)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, listener, handler, nil) }()

	c, err := client.Dial(dir)
	if err != nil {
		log.Fatal(err)
	}
	health, err := c.CheckHealth(ctx)
	fmt.Println(health.Status, health.Version, err)
	stop()
	fmt.Println(<-done)
	// Output:
	// ok v1 <nil>
	// <nil>
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
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

// A task is started once, however often the request is sent, and its end is awaited.
func ExampleClient_StartTask() {
	handler, done, err := newGateway()
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	ctx, c := context.Background(), client.NewLocal(handler)
	request := client.TaskRequest{Text: "Sum up the log", Timeout: "10m"}
	first, err := c.StartTask(ctx, request, "log-2026-01-31")
	if err != nil {
		log.Fatal(err)
	}
	again, err := c.StartTask(ctx, request, "log-2026-01-31")
	if err != nil {
		log.Fatal(err)
	}
	task, err := c.WaitTask(ctx, string(first.ID), time.Minute)
	fmt.Println(again.ID == first.ID, task.Status, string(task.Result), err)
	// Output:
	// true done "nothing happened" <nil>
}

// The events of a task come one by one until its result.
func ExampleClient_TaskEvents() {
	handler, done, err := newGateway()
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	ctx, c := context.Background(), client.NewLocal(handler)
	task, err := c.StartTask(ctx, client.TaskRequest{Text: "Sum up the log"}, "")
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range c.TaskEvents(ctx, string(task.ID), 0, true) {
		if err != nil {
			log.Fatal(err)
		}
		switch body := event.Body.(type) {
		case journal.AgentSpawned:
			fmt.Println("agent", body.Name)
		case journal.TaskEnded:
			fmt.Println(body.Status, string(body.Result))
		}
	}
	// Output:
	// agent root
	// done "nothing happened"
}

// Lists are sequences: further pages are requested as they are read.
func ExampleClient_ListTools() {
	handler, done, err := newGateway()
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	c := client.NewLocal(handler)
	for tool, err := range c.ListTools(context.Background(), "workspace") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name, tool.Effect)
	}
	// Output:
	// get_workspace_info readOnly
	// list_files readOnly
	// read_file readOnly
	// write_file idempotent
}

// An error of the gateway has a code.
func ExampleClient_FindRole() {
	handler, done, err := newGateway()
	if err != nil {
		log.Fatal(err)
	}
	defer done()

	_, err = client.NewLocal(handler).FindRole(context.Background(), "nobody")
	switch errcode.CodeOf(err) {
	case errcode.RoleNotFound:
		fmt.Println("no such role")
	default:
		fmt.Println(err)
	}
	// Output: no such role
}

// A token is sent over https, and over http only to this machine.
func ExampleNewRemote() {
	_, err := client.NewRemote("http://gw.example.com", "rc_example")
	fmt.Println(errcode.Message(err))
	c, err := client.NewRemote("https://gw.example.com", "rc_example")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	// Output: a token is not sent to gw.example.com over http, because others could read it; use https
}

// newGateway returns a gateway for an organization in memory. Its agents answer at once.
func newGateway() (handler http.Handler, done func(), err error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	answer := gatewaytest.ModelFunc(func(model.Request) model.Answer { return gatewaytest.EndAnswer("nothing happened") })
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return answer, nil },
	})
	if err != nil {
		return nil, nil, err
	}
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		return nil, nil, errors.Join(err, rt.Close())
	}
	handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: auth.AlwaysOperator, StartTask: rt.StartTask})
	return handler, func() { rt.Close() }, err
}

package toolservice_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/natsbroker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// The tools of a service are registered while the service does not run.
func Example() {
	topic, err := protocol.ParseTopic("non-persistent://tg/request/joke")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := toolservice.New(toolservice.Config{
		Service: toolservice.Service{ID: "joke-service", Request: topic},
		Tools: []toolservice.Tool{{
			Definition: tool.Definition{Name: "tell-joke", Description: "Tell a joke", Input: json.RawMessage(`{"type":"object"}`), Effect: tool.ReadOnly},
			Config:     json.RawMessage(`{"style":"pun"}`),
		}},
		Broker: func() (broker.Driver, func() error, error) {
			driver, err := natsbroker.Connect(broker.Config{Name: "main"})
			return driver, driver.Close, err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	loader := modules.NewLoader(groups)
	if err := loader.LoadModule(context.Background(), m); err != nil {
		fmt.Println(err)
		return
	}
	handle, _ := groups.CurrentSnapshot().LookupTool("tell-joke")
	fmt.Println(handle.Group, handle.Owner)
	fmt.Println(loader.UnloadModule(context.Background(), "joke-service"))
	// Output:
	// service/joke-service module:joke-service
	// <nil>
}

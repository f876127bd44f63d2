package announced_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/announced"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/toolgroups"
)

// A service announces a tool, and the registry brings its module into service.
func Example() {
	loaded := make(chan *announced.Module)
	registry := announced.NewRegistry(announced.Config{
		Admit: func(string) announced.Admission { return announced.Accept },
		Keys:  func(string) ([]string, error) { return []string{"the key"}, nil },
		NewCaller: func(service string) (*toolservice.Module, error) {
			request, response, _ := protocol.AnnouncedQueues(service)
			return toolservice.New(toolservice.Config{
				Service: toolservice.Service{ID: service, Request: request, Response: response},
				Broker:  func() (broker.Driver, func() error, error) { return &answering{}, func() error { return nil }, nil },
			})
		},
		Load:      func(_ context.Context, m *announced.Module) error { loaded <- m; return nil },
		Changed:   func(string) {},
		NameTaken: func(_, _ string) bool { return false },
		Pins:      modules.NewPinStore(&store{values: map[toolgroups.GroupOwner][]byte{}}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go registry.Run(ctx)

	now := time.Now()
	registry.Receive("weather", protocol.Announcement{
		Service: "weather", Request: "request:tg:weather", Response: "response:tg:weather",
		Tools:    []protocol.AnnouncedTool{{Name: "forecast", Description: "Forecast the weather"}},
		Instance: "one", Started: now, Time: now, Lease: 60,
	}.Sign("the key"))
	for _, g := range (<-loaded).ToolGroups() {
		fmt.Println(g.ID, g.Tools[0].Definition().Name)
	}
	// Output: service/weather forecast
}

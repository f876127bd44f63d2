package service_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/service"
)

func Example() {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Start()
	defer s.Shutdown()
	s.ReadyForConnections(time.Minute)

	greet, err := service.Start(service.Options{URL: s.ClientURL(), ID: "greeter"}, func(_ context.Context, c *service.Call) (string, error) {
		var who struct{ Name string }
		err := c.Decode(&who)
		return "Hello " + who.Name, err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer greet.Stop()

	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	m, err := conn.Request("tg.request.greeter", protocol.Request{Arguments: `{"name":"Ann"}`}.Encode(), time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(m.Data))
	// Output: {"error":null,"response":"Hello Ann","end_of_stream":true}
}

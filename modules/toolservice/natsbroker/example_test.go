package natsbroker_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/natsbroker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// The embedded server reports at once that no service receives a request.
func Example() {
	driver, err := natsbroker.Connect(broker.Config{Name: "main"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer driver.Close()
	topic, _ := protocol.ParseTopic("request:tg:joke")
	received := make(chan broker.Delivery, 1)
	link, err := driver.Open(context.Background(), broker.Queues{Service: "joke-service", Request: topic}, func(d broker.Delivery) { received <- d })
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = link.Send(context.Background(), broker.Message{ID: "1", Body: []byte("{}")})
	fmt.Println(err, (<-received).Err)
	// Output: <nil> no service receives requests on this queue
}

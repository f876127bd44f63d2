package rabbitmq_test

import (
	"fmt"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/rabbitmq"
)

func ExampleKind() {
	kind := rabbitmq.Kind()
	config := broker.Config{Name: "queues", URL: "amqp://ann:secret@localhost", User: "ann", Password: "secret"}
	fmt.Println(kind.Name, "-", kind.Check(config))
	config.URL = "amqps://localhost/tools"
	fmt.Println(kind.Check(config))
	// Output:
	// rabbitmq - invalid_config: broker queues: url: write amqp://HOST:PORT/VHOST or amqps://HOST:PORT/VHOST, with user and password in fields of their own
	// <nil>
}

package broker_test

import (
	"fmt"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// A build adds a kind of broker with cmd.Main.
func ExampleKind() {
	kind := broker.Kind{
		Name:  "memory",
		Check: func(broker.Config) error { return nil },
		Connect: func(c broker.Config) (broker.Driver, error) {
			return nil, fmt.Errorf("connect to %s: %w", c.Name, broker.ErrUnavailable)
		},
	}
	_, err := kind.Connect(broker.Config{Name: "main"})
	fmt.Println(kind.KindName(), err)
	// Output: memory connect to main: the broker cannot be reached
}

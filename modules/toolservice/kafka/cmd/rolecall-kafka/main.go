// Command rolecall-kafka is rolecall with tool services behind Kafka.
package main

import (
	"github.com/rolecall/rolecall/cmd"
	"github.com/rolecall/rolecall/modules/toolservice/kafka"
)

func main() { cmd.Main(kafka.Kind()) }

// Command rolecall-pulsar is rolecall with tool services behind Pulsar.
package main

import (
	"github.com/rolecall/rolecall/cmd"
	"github.com/rolecall/rolecall/modules/toolservice/pulsar"
)

func main() { cmd.Main(pulsar.Kind()) }

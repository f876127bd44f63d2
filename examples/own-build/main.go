// Command own-build is rolecall with one more module kind, greeter.
package main

import (
	"github.com/rolecall/rolecall/cmd"
	"github.com/rolecall/rolecall/modules"
)

func main() {
	cmd.Main(modules.ModuleKind{Name: "greeter", New: newGreeter})
}

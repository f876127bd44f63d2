// Command own-build is rolecall with one more kind of module, greeter: a main of
// ten lines and the module.
package main

import (
	"github.com/rolecall/rolecall/cmd"
	"github.com/rolecall/rolecall/modules"
)

func main() {
	cmd.Main(modules.Kind{Name: "greeter", New: newGreeter})
}

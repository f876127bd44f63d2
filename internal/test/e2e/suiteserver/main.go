// Command suiteserver is rolecall with one more module kind, suite: the tools that the
// conformance suite of the Model Context Protocol calls. The end-to-end tests serve it.
package main

import (
	"github.com/rolecall/rolecall/cmd"
	"github.com/rolecall/rolecall/modules"
)

func main() { cmd.Main(modules.ModuleKind{Name: "suite", New: newSuite}) }

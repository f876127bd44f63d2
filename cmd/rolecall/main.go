// Command rolecall runs organizations of agents and inspects them. A custom build is this
// file with more modules: cmd.Main(modules.ModuleKind{...}).
package main

import "github.com/rolecall/rolecall/cmd"

func main() { cmd.Main() }

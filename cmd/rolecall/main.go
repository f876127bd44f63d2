// Command rolecall runs organizations of agents and looks at them. A build of
// one's own is this file with more modules: cmd.Main(modules.Kind{...}).
package main

import "github.com/rolecall/rolecall/cmd"

func main() { cmd.Main() }

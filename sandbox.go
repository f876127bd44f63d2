package rolecall

import (
	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
)

// Sandbox runs the programs and scripts of agents, isolated from this process. Only Enter
// returns one that works: the zero Sandbox runs nothing.
type Sandbox struct{ launcher *sandbox.Launcher }

// Enter must be the first call in main. The sandbox starts this same executable again to run
// a program of an agent; in such a process Enter does not return. Otherwise it returns the
// Sandbox for Options.
func Enter() *Sandbox { return &Sandbox{sandbox.Enter(builtin.SandboxPrograms())} }

// start returns what starts programs, nil for a nil Sandbox.
func (s *Sandbox) start() *sandbox.Launcher {
	if s == nil {
		return nil
	}
	return s.launcher
}

// Package procgroup owns the process groups of programs that we start: each ends
// as a whole, and only while its number is its own. When a group's leader is
// reaped the number may be given to somebody else's.
package procgroup

import (
	"os/exec"
	"sync"
	"syscall"
)

// Group is the process group that a started command leads; it was started with
// Setpgid or Setsid. Safe for concurrent use, but for Wait.
type Group struct {
	cmd *exec.Cmd

	mu   sync.Mutex // guards gone; held while a signal is sent
	gone bool       // the leader has ended, or is reaped
}

// Of gives the group of a command that was started.
func Of(cmd *exec.Cmd) *Group { return &Group{cmd: cmd} }

// Signal sends a signal to every process of the group, unless its leader has
// ended: then Wait has ended the rest.
func (g *Group) Signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		signal(g.cmd.Process.Pid, s)
	}
}

// Wait waits for the leader to end, ends what is left of the group, and gives
// what exec.Cmd.Wait gives. Call it once, in place of that.
func (g *Group) Wait() error {
	end(g)
	return g.cmd.Wait()
}

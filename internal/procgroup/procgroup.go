// Package procgroup signals and ends process groups of started programs safely.
//
//	cmd.SysProcAttr = procgroup.Attributes()
//	err := cmd.Start()
//	g := procgroup.Of(cmd)
//	err = g.Wait()
//
// The id of a group is that of its leader. Once the leader is reaped, the system may
// give the id to another process, which must not get signals meant for the group.
package procgroup

import (
	"os/exec"
	"sync"
	"syscall"
)

// Group is the process group that a started command leads. It is safe for concurrent
// use, except that Wait is called once.
type Group struct {
	cmd *exec.Cmd

	mu   sync.Mutex // guards gone; held while a signal is sent
	gone bool       // the leader has ended
}

// Of returns the group of a started command. The command must have been started with
// Attributes, or with Setsid.
func Of(cmd *exec.Cmd) *Group { return &Group{cmd: cmd} }

// Signal sends a signal to every process of the group. It does nothing once Wait has
// seen the leader end: then Wait kills the rest of the group.
func (g *Group) Signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		signal(g.cmd.Process, s)
	}
}

// Wait waits for the leader to end, kills the remaining processes of the group, and
// returns the result of exec.Cmd.Wait. Call it once, in place of exec.Cmd.Wait. On
// systems other than Linux the remaining processes are left running.
func (g *Group) Wait() error {
	killRest(g)
	err := g.cmd.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	return err
}

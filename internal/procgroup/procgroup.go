// Package procgroup signals and ends process groups of started programs safely.
//
//	cmd.SysProcAttr = procgroup.Attributes()
//	g := procgroup.New(cmd)
//	err := g.Start()
//	err = g.Wait()
//
// A group has the id of its leader. Once the leader is reaped, the system may reuse
// the id for another process, which must not get signals meant for the group.
package procgroup

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Group is the process group that a command leads. It is safe for concurrent use.
type Group struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed after err is set
	err   error         // of exec.Cmd.Wait

	mu   sync.Mutex // guards gone; held while a signal is sent
	gone bool       // the leader has ended
}

// New returns the group of a command, which has Attributes or Setsid. Start starts it.
func New(cmd *exec.Cmd) *Group { return &Group{cmd: cmd, ended: make(chan struct{})} }

// Start starts the leader, once, on a thread that exists until the leader has ended. With
// Attributes, Linux kills a program when the thread that started it ends. When the leader has
// ended, the remaining processes of the group are killed. On systems other than Linux they
// are left running.
//
// Its error is the reason alone, without the path of the program.
func (g *Group) Start() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := g.cmd.Start()
		started <- err
		if err == nil {
			g.err = g.reap()
			close(g.ended)
		}
	}()
	return withoutPath(<-started)
}

// withoutPath returns the reason why a program cannot be started.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok && e.Op == "fork/exec" {
		return e.Err
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

// reap waits for the leader to end and kills the remaining processes of the group. It returns
// the result of exec.Cmd.Wait.
func (g *Group) reap() error {
	killRest(g)
	err := g.cmd.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	return err
}

// Signal sends a signal to every process of a started group. It does nothing once the leader
// has ended: then the rest of the group is killed.
func (g *Group) Signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		signal(g.cmd.Process, s)
	}
}

// Ended returns a channel that is closed when the leader of a started group has ended.
func (g *Group) Ended() <-chan struct{} { return g.ended }

// Wait waits for the leader of a started group to end. It returns the result of
// exec.Cmd.Wait.
func (g *Group) Wait() error {
	<-g.ended
	return g.err
}

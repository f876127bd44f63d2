package procgroup

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func signal(pid int, s syscall.Signal) { _ = unix.Kill(-pid, s) }

// killRest waits until the leader has ended, and kills the rest of its group. WNOWAIT
// leaves the leader unreaped, so that its id cannot be reused before that.
func killRest(g *Group) {
	pid := g.cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	signal(pid, unix.SIGKILL)
}

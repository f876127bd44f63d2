package procgroup

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func signal(pid int, s syscall.Signal) { _ = unix.Kill(-pid, s) }

// end returns when the leader has ended and is not reaped yet, so that its
// number is nobody else's, and the rest of its group was killed.
func end(g *Group) {
	pid := g.cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	signal(pid, unix.SIGKILL)
}

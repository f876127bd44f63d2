package procgroup

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes start a program in a new process group. On Linux the kernel also kills the
// program when the thread that started it ends. On other systems a program notices the
// end of this process only by its closed stdin.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func signal(leader *os.Process, s syscall.Signal) { _ = unix.Kill(-leader.Pid, s) }

// killRest waits until the leader has ended, and kills the rest of its group. WNOWAIT
// leaves the leader unreaped, so that its id cannot be reused before that.
func killRest(g *Group) {
	leader := g.cmd.Process
	for errors.Is(unix.Waitid(unix.P_PID, leader.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	signal(leader, unix.SIGKILL)
}

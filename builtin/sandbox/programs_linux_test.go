package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

// programs are the Programs of this test binary.
var programs = map[string]sandbox.Program{"echo": echo, "syscalls": trySyscalls, "dial": dial, "loopback": dialLoopback, "ignoreParentDeath": ignoreParentDeath}

// echo answers each line that it reads.
func echo(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fmt.Fprintln(out, "heard", lines.Text())
	}
	return lines.Err()
}

// trySyscalls makes system calls that no job may make, and prints those that are
// not denied.
func trySyscalls(_ io.Reader, out io.Writer) error {
	calls := []struct {
		name   string
		number uintptr
		args   [3]uintptr
	}{
		{"unshare", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWUSER}},
		{"unshare of mounts", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWNS}},
		{"clone with a namespace", unix.SYS_CLONE, [3]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
		{"setns", unix.SYS_SETNS, [3]uintptr{0, unix.CLONE_NEWNET}},
		{"mount", unix.SYS_MOUNT, [3]uintptr{0, 0, 0}},
		{"umount2", unix.SYS_UMOUNT2, [3]uintptr{0, 0, 0}},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [3]uintptr{}},
		{"open_tree", unix.SYS_OPEN_TREE, [3]uintptr{}},
		{"ptrace", unix.SYS_PTRACE, [3]uintptr{unix.PTRACE_TRACEME}},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [3]uintptr{1}},
		{"bpf", unix.SYS_BPF, [3]uintptr{}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [3]uintptr{}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [3]uintptr{}},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [3]uintptr{8}},
		{"keyctl", unix.SYS_KEYCTL, [3]uintptr{0}},
		{"add_key", unix.SYS_ADD_KEY, [3]uintptr{}},
		{"kexec_load", unix.SYS_KEXEC_LOAD, [3]uintptr{}},
		{"init_module", unix.SYS_INIT_MODULE, [3]uintptr{}},
		{"reboot", unix.SYS_REBOOT, [3]uintptr{}},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [3]uintptr{}},
		{"sethostname", unix.SYS_SETHOSTNAME, [3]uintptr{}},
		{"chroot", unix.SYS_CHROOT, [3]uintptr{}},
		{"a set-user-id mode", unix.SYS_FCHMOD, [3]uintptr{^uintptr(0), 0o4755}},
		{"a set-group-id mode", unix.SYS_FCHMOD, [3]uintptr{^uintptr(0), 0o2755}},
		{"a set-user-id mode by name", unix.SYS_FCHMODAT, [3]uintptr{0, 0, 0o4755}},
		{"a set-user-id mode by name and flags", unix.SYS_FCHMODAT2, [3]uintptr{0, 0, 0o4755}},
		{"creating a set-user-id file", unix.SYS_MKNODAT, [3]uintptr{0, 0, unix.S_IFREG | 0o4755}},
		{"allocating space without writing", unix.SYS_FALLOCATE, [3]uintptr{^uintptr(0), 0, 0}},
		{"injecting terminal input", unix.SYS_IOCTL, [3]uintptr{0, unix.TIOCSTI}},
		{"a packet socket", unix.SYS_SOCKET, [3]uintptr{unix.AF_PACKET, unix.SOCK_RAW}},
		{"a vsock socket", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
		{"a crypto socket", unix.SYS_SOCKET, [3]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}},
		{"a raw socket", unix.SYS_SOCKET, [3]uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}},
	}
	for fd := range 3 {
		if at, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil && !strings.HasPrefix(at, "pipe:") {
			fmt.Fprintln(out, "a descriptor of the host:", at)
		}
	}
	for _, c := range calls {
		_, _, errno := syscall.RawSyscall(c.number, c.args[0], c.args[1], c.args[2])
		if errno != unix.EPERM && errno != unix.EAFNOSUPPORT && errno != unix.EOPNOTSUPP {
			fmt.Fprintf(out, "%s: %v\n", c.name, errno)
		}
	}
	var header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
	if _, _, errno := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&all[0])), 0); errno == 0 {
		fmt.Fprintln(out, "capset: succeeded")
	}
	if _, err := os.OpenFile(sandbox.Scratch+"/special", os.O_CREATE|os.O_RDWR, os.ModeSetuid|0o755); err == nil {
		fmt.Fprintln(out, "creating a set-user-id file: succeeded")
	}
	if err := os.WriteFile(sandbox.Scratch+"/plain", nil, 0o755); err != nil {
		fmt.Fprintln(out, "creating an ordinary file:", err)
	}
	if _, err := syscall.Open(sandbox.Scratch+"/plain", syscall.O_RDONLY, 0o4755); err != nil {
		fmt.Fprintln(out, "opening a file with a mode that is ignored:", err)
	}
	return nil
}

// dial connects to each address that it reads, and prints those it reached.
func dial(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var network, address string
		if _, err := fmt.Sscan(lines.Text(), &network, &address); err != nil {
			return err
		}
		if conn, err := net.Dial(network, address); err == nil {
			fmt.Fprintln(out, "reached", lines.Text())
			conn.Close()
		}
		fmt.Fprintln(out, "tried", lines.Text())
	}
	return lines.Err()
}

// dialLoopback connects to a listener of its own.
func dialLoopback(_ io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	_, writeErr := os.Create("/left")
	fmt.Fprintln(out, "reached itself, and could not write:", writeErr != nil)
	return errors.Join(conn.Close(), l.Close())
}

// ignoreParentDeath clears its parent death signal and waits forever.
func ignoreParentDeath(io.Reader, io.Writer) error {
	alive, err := os.OpenFile("/workspace/alive", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0); err != nil {
		return err
	}
	if _, err := alive.WriteString("up\n"); err != nil {
		return err
	}
	return unix.Pause()
}

//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"maps"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Results of the filter.
const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
)

// returnErrno is the filter result that fails a call with e.
func returnErrno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// Offsets in struct seccomp_data, the input of a filter.
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16 // the low half, on little-endian machines
	atArg1   = 24
	atArg2   = 32
)

// architectures maps the GOARCH values of platforms to their audit numbers. The
// filter depends on their system call numbers.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// deniedSyscalls lists calls that a build, test or script does not need. They
// create namespaces or mounts, inspect other processes, load code into the
// kernel, or have a history of kernel vulnerabilities.
var deniedSyscalls = []uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_PERSONALITY, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// namespaceFlags are the flags of clone that create a namespace.
const namespaceFlags = namespaces | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// socketFamilies are the allowed socket families. Others, such as vsock, are not
// isolated by a network namespace.
var socketFamilies = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// setIDBits are the mode bits that run a program with its owner's rights. The
// workspace also exists on the host, where such a file would take effect.
const setIDBits = unix.S_ISUID | unix.S_ISGID

// modeArgs maps the calls that set a file mode to the offset of that argument.
var modeArgs = map[uint32]uint32{unix.SYS_FCHMOD: atArg1, unix.SYS_FCHMODAT: atArg2, unix.SYS_FCHMODAT2: atArg2, unix.SYS_MKNODAT: atArg2}

// createFlags are the flags of open that make it use its mode argument.
const createFlags = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// System call numbers that only amd64 has.
const (
	sysOpen  = 2
	sysCreat = 85
	sysChmod = 90
	sysMknod = 133
)

// terminalIoctls are the ioctls that inject input into a terminal.
var terminalIoctls = []uint32{unix.TIOCSTI, tioclinux}

const tioclinux = 0x541c

// applySeccomp installs the filter for this thread and everything it executes.
func applySeccomp(*spec) error {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no system call list for %s", runtime.GOARCH)
	}
	raw, err := bpf.Assemble(filterProgram(arch))
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}

// filterProgram returns the BPF program. It kills the process on calls of another
// architecture, fails the denied calls, and allows all others.
func filterProgram(arch uint32) []bpf.Instruction {
	list := []bpf.Instruction{
		load(atArch), bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1}, bpf.RetConstant{Val: kill},
		load(atNumber), bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1}, bpf.RetConstant{Val: kill},
	}
	for _, number := range deniedSyscalls {
		list = append(list, onSyscall(number, bpf.RetConstant{Val: returnErrno(unix.EPERM)})...)
	}
	list = append(list, onSyscall(unix.SYS_CLONE3, bpf.RetConstant{Val: returnErrno(unix.ENOSYS)})...) // the filter cannot read its flags through a pointer; libc falls back to clone
	list = append(list, onSyscall(unix.SYS_CLONE,
		load(atArg0), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaceFlags, SkipTrue: 1}, bpf.RetConstant{Val: returnErrno(unix.EPERM)}, bpf.RetConstant{Val: allow})...)
	list = append(list, onSyscall(unix.SYS_OPENAT2, bpf.RetConstant{Val: returnErrno(unix.ENOSYS)})...) // likewise its mode; libc falls back to openat
	list = append(list, denySetID(arch)...)
	list = append(list, onSyscall(unix.SYS_FALLOCATE, // it fills the disk faster than the quota is checked; callers fall back to write
		load(atArg1), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.FALLOC_FL_PUNCH_HOLE, SkipTrue: 1}, bpf.RetConstant{Val: returnErrno(unix.EOPNOTSUPP)}, bpf.RetConstant{Val: allow})...)
	list = append(list, onSyscall(unix.SYS_SOCKET, ifOneOf(atArg0, socketFamilies, allow, returnErrno(unix.EAFNOSUPPORT))...)...)
	list = append(list, onSyscall(unix.SYS_IOCTL, ifOneOf(atArg1, terminalIoctls, returnErrno(unix.EPERM), allow)...)...)
	return append(list, bpf.RetConstant{Val: allow})
}

// denySetID fails all calls that would set a setuid or setgid bit.
func denySetID(arch uint32) (list []bpf.Instruction) {
	calls := maps.Clone(modeArgs)
	opens := map[uint32]uint32{unix.SYS_OPENAT: atArg2}
	if arch == unix.AUDIT_ARCH_X86_64 {
		calls[sysCreat], calls[sysChmod], calls[sysMknod] = atArg1, atArg1, atArg1
		opens[sysOpen] = atArg1
	}
	for number, mode := range calls {
		list = append(list, onSyscall(number, unlessSetID(mode)...)...)
	}
	for number, flags := range opens {
		list = append(list, onSyscall(number, append([]bpf.Instruction{
			load(flags), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: createFlags, SkipTrue: 1}, bpf.RetConstant{Val: allow}}, unlessSetID(flags+argSize)...)...)...)
	}
	return list
}

// argSize is the distance between two arguments in struct seccomp_data.
const argSize = atArg1 - atArg0

// unlessSetID allows a call unless its mode argument has a setuid or setgid bit.
func unlessSetID(mode uint32) []bpf.Instruction {
	return []bpf.Instruction{load(mode), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: setIDBits, SkipFalse: 1}, bpf.RetConstant{Val: returnErrno(unix.EPERM)}, bpf.RetConstant{Val: allow}}
}

// x32 is the first number of the x32 system calls on amd64. They would bypass the
// filter.
const x32 = 0x40000000

// load reads the 32-bit word at an offset of struct seccomp_data.
func load(offset uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offset, Size: 4} }

// onSyscall runs then for one system call; then must end with a result.
func onSyscall(number uint32, then ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(then))}}, then...)
}

// ifOneOf returns yes when an argument is one of values, otherwise no.
func ifOneOf(offset uint32, values []uint32, yes, no uint32) []bpf.Instruction {
	list := []bpf.Instruction{load(offset)}
	for _, v := range values {
		list = append(list, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, bpf.RetConstant{Val: yes})
	}
	return append(list, bpf.RetConstant{Val: no})
}

package sandbox

import (
	"fmt"
	"maps"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What a filter answers.
const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
)

func refuse(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// Offsets in what a filter sees of a call (struct seccomp_data).
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16 // the low half, on the little-endian machines we know
	atArg1   = 24
	atArg2   = 32
)

// architectures are the machines whose numbers of calls the list is for.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// forbidden lists calls that a build, a test or a script never needs and that
// make namespaces and mounts, look into other processes, load code into the
// kernel, or have been its weak places.
var forbidden = []uint32{
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

// newNamespace are the flags of clone that make a namespace.
const newNamespace = namespaces | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// families are the kinds of socket there may be; others, as vsock, are not
// bounded by a network namespace.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// special are the modes that lend a program its owner's rights. The workspace
// is the host's too, where they would count.
const special = unix.S_ISUID | unix.S_ISGID

// modes are the calls that give a file a mode, and where they have it.
var modes = map[uint32]uint32{unix.SYS_FCHMOD: atArg1, unix.SYS_FCHMODAT: atArg2, unix.SYS_FCHMODAT2: atArg2, unix.SYS_MKNODAT: atArg2}

// creating are the flags of open with which its mode counts.
const creating = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// oldCalls are the numbers of calls that only amd64 has.
const (
	oldOpen  = 2
	oldCreat = 85
	oldChmod = 90
	oldMknod = 133
)

// terminalTricks are the ioctls that put words into a terminal's mouth.
var terminalTricks = []uint32{unix.TIOCSTI, tioclinux}

const tioclinux = 0x541c

// applySeccomp forbids system calls, for this thread and all it becomes.
func applySeccomp(*spec) error {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("there is no list of calls for %s", runtime.GOARCH)
	}
	raw, err := bpf.Assemble(rules(arch))
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

// rules is the program: calls of another machine's numbers end the process,
// what is listed is refused, all else goes through.
func rules(arch uint32) []bpf.Instruction {
	list := []bpf.Instruction{
		load(atArch), bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1}, bpf.RetConstant{Val: kill},
		load(atNumber), bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1}, bpf.RetConstant{Val: kill},
	}
	for _, number := range forbidden {
		list = append(list, onSyscall(number, bpf.RetConstant{Val: refuse(unix.EPERM)})...)
	}
	list = append(list, onSyscall(unix.SYS_CLONE3, bpf.RetConstant{Val: refuse(unix.ENOSYS)})...) // its flags are out of sight; callers fall back to clone
	list = append(list, onSyscall(unix.SYS_CLONE,
		load(atArg0), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: newNamespace, SkipTrue: 1}, bpf.RetConstant{Val: refuse(unix.EPERM)}, bpf.RetConstant{Val: allow})...)
	list = append(list, onSyscall(unix.SYS_OPENAT2, bpf.RetConstant{Val: refuse(unix.ENOSYS)})...) // likewise its mode
	list = append(list, denySpecialModes(arch)...)
	list = append(list, onSyscall(unix.SYS_FALLOCATE, // takes room faster than anybody can look; callers fall back to writing
		load(atArg1), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.FALLOC_FL_PUNCH_HOLE, SkipTrue: 1}, bpf.RetConstant{Val: refuse(unix.EOPNOTSUPP)}, bpf.RetConstant{Val: allow})...)
	list = append(list, onSyscall(unix.SYS_SOCKET, oneOf(atArg0, families, allow, refuse(unix.EAFNOSUPPORT))...)...)
	list = append(list, onSyscall(unix.SYS_IOCTL, oneOf(atArg1, terminalTricks, refuse(unix.EPERM), allow)...)...)
	return append(list, bpf.RetConstant{Val: allow})
}

// denySpecialModes refuses special modes to all calls that give a file one.
func denySpecialModes(arch uint32) (list []bpf.Instruction) {
	of := maps.Clone(modes)
	opens := map[uint32]uint32{unix.SYS_OPENAT: atArg2}
	if arch == unix.AUDIT_ARCH_X86_64 {
		of[oldCreat], of[oldChmod], of[oldMknod] = atArg1, atArg1, atArg1
		opens[oldOpen] = atArg1
	}
	for number, mode := range of {
		list = append(list, onSyscall(number, allowPlainMode(mode)...)...)
	}
	for number, flags := range opens {
		list = append(list, onSyscall(number, append([]bpf.Instruction{
			load(flags), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: creating, SkipTrue: 1}, bpf.RetConstant{Val: allow}}, allowPlainMode(flags+argument)...)...)...)
	}
	return list
}

// argument is how far arguments are apart.
const argument = atArg1 - atArg0

// allowPlainMode allows modes that are not special.
func allowPlainMode(mode uint32) []bpf.Instruction {
	return []bpf.Instruction{load(mode), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: special, SkipFalse: 1}, bpf.RetConstant{Val: refuse(unix.EPERM)}, bpf.RetConstant{Val: allow}}
}

// x32 is where the numbers of a second set of calls begin on amd64.
const x32 = 0x40000000

func load(offset uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offset, Size: 4} }

// onSyscall runs then for one call; then ends in an answer.
func onSyscall(number uint32, then ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(then))}}, then...)
}

// oneOf answers yes when an argument is one of values, else no.
func oneOf(offset uint32, values []uint32, yes, no uint32) []bpf.Instruction {
	list := []bpf.Instruction{load(offset)}
	for _, v := range values {
		list = append(list, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, bpf.RetConstant{Val: yes})
	}
	return append(list, bpf.RetConstant{Val: no})
}

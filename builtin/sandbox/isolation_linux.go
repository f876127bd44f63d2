package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// closeInheritedFDs marks all descriptors but the standard three as
// close-on-exec. The parent of this process may have leaked some that lead out
// of the sandbox.
func closeInheritedFDs(*spec) error {
	return unix.CloseRange(specFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// hideControlGroups makes the job's own control group the root that /proc shows, where
// the kernel has cgroup namespaces. It protects names only.
func hideControlGroups(*spec) error {
	_ = unix.Unshare(unix.CLONE_NEWCGROUP)
	return nil
}

// bringUpLoopback sets the host name and brings up the loopback interface, which is the only
// interface. So a job can run servers and connect to them.
func bringUpLoopback(*spec) error {
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	return nil
}

// mountProc mounts /proc with the processes of the job, read-only. Inside
// containers that mask parts of /proc the kernel refuses the mount; the job then
// runs without /proc.
func mountProc(s *spec) error {
	if err := unix.Mount("proc", staging+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil
	}
	if !s.PidsLimited {
		s.PidsLimited = os.WriteFile(staging+"/proc/sys/kernel/pid_max", []byte(strconv.Itoa(max(s.Limits.Processes, minPids))), 0) == nil
	}
	err := unix.MountSetattr(unix.AT_FDCWD, staging+"/proc", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("protect /proc: %w", err)
	}
	return nil
}

// minPids is the smallest value the kernel accepts for pid_max of a namespace.
const minPids = 301

// requireProcessLimit rejects jobs whose number of processes is not bounded. RLIMIT_NPROC
// does not apply to the root user, so root needs a control group or pid_max.
func requireProcessLimit(s *spec) error {
	if !s.PidsLimited && os.Getuid() == 0 {
		return errors.New("root needs a writable pids control group or Linux 6.14; or start rolecall as an ordinary user")
	}
	return nil
}

// applyRlimits sets the limits that apply to each process separately.
func applyRlimits(s *spec) error {
	limits := map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 1024, unix.RLIMIT_FSIZE: uint64(s.Limits.FileSize),
		unix.RLIMIT_NPROC: uint64(s.Limits.Processes), unix.RLIMIT_MEMLOCK: 1 << 20, unix.RLIMIT_MSGQUEUE: 0,
	}
	if s.Unsandboxed {
		delete(limits, unix.RLIMIT_NPROC) // outside a user namespace it counts all processes of the user
	}
	if !raceEnabled {
		limits[unix.RLIMIT_DATA] = uint64(s.Limits.Memory)
	}
	for resource, value := range limits {
		if err := setRlimit(resource, value); err != nil {
			return fmt.Errorf("limit resource %d to %d: %w", resource, value, err)
		}
	}
	return nil
}

// setRlimit sets a limit, or keeps the current one if that is stricter.
func setRlimit(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}

// applyLandlock restricts writes to the workspace and the scratch directory. It is
// a second layer behind the read-only mounts.
func applyLandlock(s *spec) error {
	if abi, err := llsys.LandlockGetABIVersion(); err != nil || abi < 1 {
		return errors.Join(errors.New("not enabled in the kernel"), err)
	}
	rules := []landlock.Rule{
		landlock.RODirs("/"), landlock.RWDirs(Scratch).WithRefer(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom").IgnoreIfMissing(),
	}
	if s.Workspace != "" && !s.ReadOnly {
		rules = append(rules, landlock.RWDirs(Workspace).WithRefer())
	}
	if err := landlock.V7.BestEffort().RestrictPaths(rules...); err != nil {
		return err
	}
	return landlock.V7.BestEffort().RestrictScoped()
}

// dropCapabilities permanently drops all capabilities and the ways to gain them.
// It also makes this process non-dumpable, so that the program, which runs as
// the same user, cannot inspect it through /proc or ptrace.
func dropCapabilities(*spec) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make init process non-dumpable: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	const bits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7 // NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each locked; KEEP_CAPS locked off
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, bits, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	for capability := uintptr(0); capability < 64; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d from bounding set: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// chdirWorkspace changes to the workspace of an unsandboxed job.
func chdirWorkspace(s *spec) error {
	if s.Workspace == "" {
		return nil
	}
	return os.Chdir(s.Workspace)
}

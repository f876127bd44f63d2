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

// closeInheritedFDs sees to it that the job inherits no descriptor but the usual three:
// those that whoever started us left open are nobody's inside.
func closeInheritedFDs(*spec) error {
	return unix.CloseRange(specFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// bringUpLoopback brings up the only network interface there is, so that a job's
// tests can talk to its own servers.
func bringUpLoopback(*spec) error {
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("name the host: %w", err)
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

// mountProc shows the job its own processes. Systems that hide parts of their
// own /proc, as containers do, refuse it; a job can do without.
func mountProc(s *spec) error {
	if err := unix.Mount("proc", staging+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil
	}
	if !s.Pids {
		s.Pids = os.WriteFile(staging+"/proc/sys/kernel/pid_max", []byte(strconv.Itoa(max(s.Limits.Processes, minPids))), 0) == nil
	}
	err := unix.MountSetattr(unix.AT_FDCWD, staging+"/proc", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("protect /proc: %w", err)
	}
	return nil
}

// minPids is the least that a pid namespace of its own can be bound to.
const minPids = 301

// limitProcesses sees to it that something bounds the number of processes:
// the kernel does not hold the system's root to the limit of a user.
func limitProcesses(s *spec) error {
	if !s.Pids && os.Getuid() == 0 {
		return errors.New("for root it takes the pids control group, writable by this process, or Linux 6.14; or start as an ordinary user")
	}
	return nil
}

// applyRlimits sets what the kernel holds each process to.
func applyRlimits(s *spec) error {
	limits := map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 1024, unix.RLIMIT_FSIZE: uint64(s.Limits.FileSize),
		unix.RLIMIT_NPROC: uint64(s.Limits.Processes), unix.RLIMIT_MEMLOCK: 1 << 20, unix.RLIMIT_MSGQUEUE: 0,
	}
	if s.Unsandboxed {
		delete(limits, unix.RLIMIT_NPROC) // it would count all the user's processes
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

// setRlimit sets a limit, or keeps a stricter one that is there.
func setRlimit(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}

// applyLandlock is the second wall around files, should the first have a hole.
func applyLandlock(s *spec) error {
	if abi, err := llsys.LandlockGetABIVersion(); err != nil || abi < 1 {
		return errors.Join(errors.New("the kernel does not have it switched on"), err)
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

// dropCapabilities gives up every capability, for good, and closes this process to
// the eyes of the program, which is the same user.
func dropCapabilities(*spec) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close the first process to others: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	const bits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7 // root is nobody special, and stays so
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, bits, 0, 0, 0); err != nil {
		return fmt.Errorf("take root's privileges: %w", err)
	}
	for capability := uintptr(0); capability < 64; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
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

// enterOpen goes where a job without walls works.
func enterOpen(s *spec) error {
	if s.Workspace == "" {
		return nil
	}
	return os.Chdir(s.Workspace)
}

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// jobUser is the user and group of jobs that root starts. No account
// of Debian or systemd has this id.
const jobUser = 65533

// jobUserNamespace is a user namespace that shows files of root as files of jobUser. Mounts in
// this namespace let a job work on files of root as jobUser.
type jobUserNamespace struct {
	once sync.Once
	ns   *os.File
	err  error
}

// namespace returns the user namespace. It is created once.
func (m *jobUserNamespace) namespace() (*os.File, error) {
	m.once.Do(func() { m.ns, m.err = openJobUserNamespace() })
	return m.ns, m.err
}

// openJobUserNamespace starts this binary in a user namespace with the mapping, and
// opens the namespace.
func openJobUserNamespace() (*os.File, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env = []string{argHold}, reexecEnv
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Pdeathsig: unix.SIGKILL, UidMappings: mapRootToJobUser(), GidMappings: mapRootToJobUser()}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("create user namespace: %w", err)
	}
	ns, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	_ = hold.Close()
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	return ns, err
}

// mapRootToJobUser maps root to jobUser and leaves all other ids as they are.
func mapRootToJobUser() []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: jobUser, Size: 1},
		{ContainerID: 1, HostID: 1, Size: jobUser - 1},
		{ContainerID: jobUser + 1, HostID: jobUser + 1, Size: int(min(math.MaxInt, int64(math.MaxUint32)-jobUser-1))},
	}
}

// holdNamespace is what this binary does while its starter opens its namespace.
func holdNamespace() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// CheckJobUser returns nil if jobs with a workspace in dir run as jobUser when root starts them.
// Otherwise it returns why they run as root: such a job can read files that only root may read.
func (l *Launcher) CheckJobUser(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	if l == nil || !l.entered {
		return errNotEntered()
	}
	s := &spec{Job: Job{Workspace: dir}}
	var err error
	if s.Binary, err = os.Executable(); err != nil {
		return err
	}
	trees, err := l.openMappedTrees(s)
	closeAll(trees...)
	return err
}

// openMappedTrees clones the mounts that a job as jobUser could not reach. They are in the order
// of spec.passedTrees. The error names what prevents the clones.
func (l *Launcher) openMappedTrees(s *spec) (trees []*os.File, err error) {
	if info, err := os.Stat(s.Binary); err != nil || info.Mode()&0o001 == 0 {
		return nil, errors.Join(fmt.Errorf("%s is not executable for all users", s.Binary), err)
	}
	ns, err := l.jobUserNS.namespace()
	if err != nil {
		return nil, err
	}
	for _, t := range s.passedTrees() {
		fd, err := openMappedTree(t, ns)
		if err != nil {
			closeAll(trees...)
			return nil, err
		}
		trees = append(trees, os.NewFile(uintptr(fd), t.from))
	}
	return trees, nil
}

// passedTree is a host directory or file whose mount the starter clones.
type passedTree struct {
	from, target string
	attributes   uint64
	optional     bool // without the mapping the job still runs, with fewer rights
}

// passedTrees returns the trees that the starter passes to a job as jobUser.
func (s *spec) passedTrees() []passedTree {
	var list []passedTree
	for _, path := range s.Readable {
		list = append(list, passedTree{path, filepath.Clean(path), readOnly, true})
	}
	if s.Program != "" {
		list = append(list, passedTree{s.Binary, insideBinary, readOnly, true})
	}
	if s.Workspace != "" {
		list = append(list, passedTree{s.Workspace, Workspace, s.workspaceAttributes(), false})
	}
	return list
}

// openMappedTree clones the mount of a tree with the mapping of ns.
func openMappedTree(t passedTree, ns *os.File) (fd int, err error) {
	fd, err = unix.OpenTree(unix.AT_FDCWD, t.from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("clone mount of %s: %w", t.from, err)
	}
	mapped := &unix.MountAttr{Attr_set: t.attributes | unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, mapped)
	if err != nil && t.optional {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: t.attributes})
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("the file system of %s has no id-mapped mounts: %w", t.from, err)
	}
	return fd, nil
}

// runAsJobUser lets a job of root run as jobUser, with the trees as its descriptors from
// firstTreeFD on.
func runAsJobUser(cmd *exec.Cmd, trees []*os.File) {
	a := cmd.SysProcAttr
	a.UidMappings, a.GidMappings = mapToItself(jobUser), mapToItself(jobUser)
	a.GidMappingsEnableSetgroups = true // the job leaves the groups of root
	a.Credential = &syscall.Credential{Uid: jobUser, Gid: jobUser}
	cmd.ExtraFiles = append(cmd.ExtraFiles, trees...)
}

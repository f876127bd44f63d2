package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// insideBinary is the path of this binary in a sandbox that runs a Program.
const insideBinary = "/run/rolecall"

// systemTrees are the host directories that a job can read, as far as they
// exist. A symbolic link among them is recreated as a link.
var systemTrees = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// systemFiles are files that programs need outside systemTrees. They are listed
// one by one, because private keys are stored next to certificates and a job
// started by root owns them.
var systemFiles = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/debian_version", "/etc/fonts", "/etc/host.conf",
	"/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release",
	"/etc/pki/ca-trust/extracted", "/etc/pki/java", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf",
	"/etc/protocols", "/etc/python3", "/etc/services", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
}

// newRoot replaces the root file system of the job:
//
//  1. It clones the mounts of the host trees, not yet attached anywhere.
//  2. It mounts an empty file system and attaches the clones to it.
//  3. It makes that the root and unmounts the host's root.
func newRoot(s *spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	trees, err := s.cloneTrees()
	if err != nil {
		return err
	}
	if err := mountStaging(s); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.attach(staging); err != nil {
			return err
		}
	}
	if err := createPrivateFiles(s); err != nil {
		return err
	}
	return pivotRoot(s)
}

// staging is where the new root is assembled. Any directory will do, since the
// host trees are cloned before it is mounted over.
const staging = "/tmp"

// mountTree is a detached clone of a host mount, or a symbolic link.
type mountTree struct {
	target string // path inside the sandbox
	link   string // target of the symbolic link, "" if it is a mount
	fd     int
	dir    bool
}

// cloneTrees clones all mounts that the job sees of the host.
func (s *spec) cloneTrees() ([]mountTree, error) {
	list, err := cloneSystemTrees()
	if err != nil {
		return nil, err
	}
	for i, p := range s.passedTrees() {
		t, err := s.cloneHostTree(i, p)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// cloneHostTree clones a tree, or takes the clone that the starter has passed. It
// rejects a workspace that replaced the one the starter saw.
func (s *spec) cloneHostTree(i int, p passedTree) (t mountTree, err error) {
	if s.TreesPassed {
		t = mountTree{target: p.target, fd: s.treeFD(i)}
	} else if t, err = cloneTree(p.from, p.target, p.attributes); err != nil {
		return t, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(t.fd, &info); err != nil {
		return t, err
	}
	t.dir = info.Mode&unix.S_IFMT == unix.S_IFDIR
	if p.target == Workspace && (fileID{uint64(info.Dev), info.Ino}) != s.WorkspaceID {
		return t, errors.New("the workspace was replaced while the job started")
	}
	return t, nil
}

// cloneSystemTrees clones systemTrees and systemFiles.
func cloneSystemTrees() ([]mountTree, error) {
	var list []mountTree
	for _, path := range systemTrees {
		if link, err := os.Readlink(path); err == nil {
			list = append(list, mountTree{target: path, link: link})
			continue
		}
		if err := addTree(&list, path); err != nil {
			return nil, err
		}
	}
	for _, path := range systemFiles {
		if err := addTree(&list, path); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// addTree clones a tree to the same path. It skips trees that do not exist or that
// the job could not reach.
func addTree(list *[]mountTree, path string) error {
	t, err := cloneTree(path, path, readOnly)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return err
	}
	*list = append(*list, t)
	return nil
}

// workspaceAttributes returns the mount attributes of the workspace.
func (s *spec) workspaceAttributes() uint64 {
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if s.ReadOnly {
		attributes |= readOnly
	}
	return attributes
}

// readOnly are the mount attributes of host trees. NODEV is absent because device
// files such as /dev/null are among them.
const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID

// cloneTree clones the mount at from recursively, with the given attributes.
func cloneTree(from, target string, attributes uint64) (mountTree, error) {
	info, err := os.Stat(from)
	if err != nil {
		return mountTree{}, err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return mountTree{}, fmt.Errorf("clone mount of %s: %w", from, err)
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes}); err != nil {
		return mountTree{}, fmt.Errorf("set mount attributes of %s: %w", from, err)
	}
	return mountTree{target: target, fd: fd, dir: info.IsDir()}, nil
}

// attach mounts a tree at its target below root.
func (t mountTree) attach(root string) error {
	path := root + t.target
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if t.link != "" {
		return os.Symlink(t.link, path)
	}
	defer unix.Close(t.fd)
	err := createMountPoint(path, t.dir)
	if err == nil {
		err = unix.MoveMount(t.fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", t.target, err)
	}
	return nil
}

// createMountPoint creates the directory or file that a mount is attached to.
func createMountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	return os.WriteFile(path, nil, 0o644)
}

// createPrivateFiles creates the files and directories that the job does not share with
// the host.
func createPrivateFiles(s *spec) error {
	for _, dir := range []string{"/proc", "/dev", "/etc", "/run"} {
		if err := os.MkdirAll(staging+dir, 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"/etc/passwd": fmt.Sprintf("agent:x:%d:%d:agent:%s:/bin/sh\n", os.Getuid(), os.Getgid(), Scratch),
		"/etc/group":  fmt.Sprintf("agent:x:%d:\n", os.Getgid()),
		"/etc/hosts":  "127.0.0.1 localhost\n::1 localhost\n",
	} {
		if err := os.WriteFile(staging+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for link, to := range map[string]string{"/dev/shm": Scratch, "/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, staging+link); err != nil {
			return err
		}
	}
	return nil
}

// mountStaging mounts the empty root with the scratch directory in it.
func mountStaging(s *spec) error {
	if err := mountScratch(staging, "mode=755,nr_inodes=4096,size=1m"); err != nil {
		return err
	}
	if err := os.Mkdir(staging+Scratch, 0o755); err != nil {
		return err
	}
	return mountScratch(staging+Scratch, fmt.Sprintf("mode=1777,size=%d", s.Limits.Scratch))
}

func mountScratch(at, options string) error {
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount a tmpfs at %s: %w", at, err)
	}
	return nil
}

// pivotRoot makes staging the root, and everything else unreachable, then changes to
// the workspace.
func pivotRoot(s *spec) error {
	if err := mountProc(s); err != nil {
		return err
	}
	if err := os.Chdir(staging); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount host root: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make root read-only: %w", err)
	}
	if s.Workspace == "" {
		return os.Chdir("/")
	}
	return os.Chdir(Workspace)
}

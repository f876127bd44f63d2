package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// insideBinary is where a Program finds this binary.
const insideBinary = "/run/rolecall"

// systemTrees are the directories of the host a job can read, where there are
// such. A link among them is made again as a link.
var systemTrees = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// systemFiles are what programs look for outside of these. Private keys lie
// beside certificates; a job started by root would be their owner.
var systemFiles = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/debian_version", "/etc/fonts", "/etc/host.conf",
	"/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release",
	"/etc/pki/ca-trust/extracted", "/etc/pki/java", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf",
	"/etc/protocols", "/etc/python3", "/etc/services", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
}

// newRoot gives the job a file system of its own.
//
//  1. copies of the host's trees are taken, still bound to no place
//  2. an empty file system is mounted, and the copies in it
//  3. it becomes the root, and what was there before is let go
func newRoot(s *spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to ourselves: %w", err)
	}
	trees, err := s.trees()
	if err != nil {
		return err
	}
	if err := stage(s); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.attach(staging); err != nil {
			return err
		}
	}
	if err := mountPrivate(s); err != nil {
		return err
	}
	return pivot(s)
}

// staging is where the new root is put together; any directory serves, since
// nothing is taken from the host any more.
const staging = "/tmp"

// mountTree is a copy of a part of the host, or a link.
type mountTree struct {
	place string // inside
	link  string // where it leads, when it is a link
	fd    int
	dir   bool
}

// trees takes copies of all that the job sees of the host.
func (s *spec) trees() ([]mountTree, error) {
	list, err := systemParts()
	if err != nil {
		return nil, err
	}
	for _, path := range s.Readable {
		t, err := cloneTree(path, filepath.Clean(path), readOnly)
		if err != nil {
			return nil, fmt.Errorf("a readable directory: %w", err)
		}
		list = append(list, t)
	}
	if s.Program != "" {
		t, err := cloneTree(s.Binary, insideBinary, readOnly)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	if s.Workspace == "" {
		return list, nil
	}
	t, err := s.workspace()
	return append(list, t), err
}

// systemParts takes what there is of the system.
func systemParts() ([]mountTree, error) {
	var list []mountTree
	for _, path := range systemTrees {
		if link, err := os.Readlink(path); err == nil {
			list = append(list, mountTree{place: path, link: link})
			continue
		}
		if err := add(&list, path); err != nil {
			return nil, err
		}
	}
	for _, path := range systemFiles {
		if err := add(&list, path); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// add takes a tree to its own place; what is not there is left out.
func add(list *[]mountTree, path string) error {
	t, err := cloneTree(path, path, readOnly)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	*list = append(*list, t)
	return nil
}

// workspace takes the workspace, and refuses one that somebody put in the
// place of the one the starter looked at.
func (s *spec) workspace() (mountTree, error) {
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if s.ReadOnly {
		attributes |= readOnly
	}
	t, err := cloneTree(s.Workspace, Workspace, attributes)
	if err != nil {
		return t, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(t.fd, &info); err != nil {
		return t, err
	}
	if (fileID{uint64(info.Dev), info.Ino}) != s.Number {
		return t, errors.New("the workspace was replaced meanwhile")
	}
	return t, nil
}

// readOnly is how a job sees what is the host's. Devices work: they are files
// of their own.
const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID

// cloneTree copies one tree, all of it with the attributes given.
func cloneTree(from, place string, attributes uint64) (mountTree, error) {
	info, err := os.Stat(from)
	if err != nil {
		return mountTree{}, err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return mountTree{}, fmt.Errorf("copy the mount of %s: %w", from, err)
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes}); err != nil {
		return mountTree{}, fmt.Errorf("protect the mount of %s: %w", from, err)
	}
	return mountTree{place: place, fd: fd, dir: info.IsDir()}, nil
}

// attach puts a tree in its place below root.
func (t mountTree) attach(root string) error {
	place := root + t.place
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if t.link != "" {
		return os.Symlink(t.link, place)
	}
	defer unix.Close(t.fd)
	err := createMountPoint(place, t.dir)
	if err == nil {
		err = unix.MoveMount(t.fd, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", t.place, err)
	}
	return nil
}

// createMountPoint makes what a mount needs below it.
func createMountPoint(place string, dir bool) error {
	if dir {
		return os.MkdirAll(place, 0o755)
	}
	return os.WriteFile(place, nil, 0o644)
}

// mountPrivate adds what the job does not share with the host.
func mountPrivate(s *spec) error {
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

// stage mounts the empty root and the scratch directory in it.
func stage(s *spec) error {
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
		return fmt.Errorf("mount a scratch file system: %w", err)
	}
	return nil
}

// pivot makes staging the root, and everything else unreachable.
func pivot(s *spec) error {
	if err := mountProc(s); err != nil {
		return err
	}
	if err := os.Chdir(staging); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("protect the root: %w", err)
	}
	if s.Workspace == "" {
		return os.Chdir("/")
	}
	return os.Chdir(Workspace)
}

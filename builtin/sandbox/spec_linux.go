package sandbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// resolveSpec validates a job and completes it with what its process needs.
func resolveSpec(j Job) (*spec, error) {
	if (len(j.Argv) == 0) == (j.Program == "") {
		return nil, errArgvOrProgram
	}
	if j.Listen && j.Unsandboxed {
		return nil, errListenUnsandboxed
	}
	if err := checkReadable(j); err != nil {
		return nil, err
	}
	s := &spec{Job: j}
	var err error
	if s.Binary, err = executable(); err != nil {
		return nil, err
	}
	if s.Job.Env = mergeEnv(baseEnv(j), j.Env); j.Workspace != "" {
		s.WorkspaceID, err = workspaceID(j)
	}
	return s, err
}

// executable returns the path of this binary, which is started again as a job. It
// needs /proc.
func executable() (string, error) {
	_, err := os.Stat(selfExe)
	if err != nil {
		return "", &UnavailableError{Missing: "/proc (mount a proc file system there)", cause: err}
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("start sandbox job: find path of this binary: %w", err)
	}
	return path, nil
}

// selfExe is this binary, even if its file was replaced.
const selfExe = "/proc/self/exe"

// privateMounts lists the paths that a sandbox creates itself; they cannot be
// mounted from the host.
var privateMounts = []string{"/", "/proc", "/dev", "/etc", "/run", Scratch, Workspace}

// checkReadable validates the additional readable directories of a job.
func checkReadable(j Job) error {
	for _, dir := range j.Readable {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("start sandbox job: the readable directory %q is not absolute", dir)
		}
		if j.Unsandboxed {
			continue
		}
		if slices.Contains(privateMounts, filepath.Clean(dir)) {
			return &UnavailableError{Missing: fmt.Sprintf("a mount point for the readable directory %q: the sandbox has its own; list the directories below it", dir)}
		}
		if _, err := os.Stat(dir); err != nil {
			return &UnavailableError{Missing: fmt.Sprintf("the readable directory %q", dir), cause: err}
		}
	}
	return nil
}

// workspaceID returns the identity that the mounted workspace must have.
func workspaceID(j Job) (fileID, error) {
	info := j.WorkspaceInfo
	if info == nil {
		var err error
		if info, err = os.Stat(j.Workspace); err != nil {
			return fileID{}, fmt.Errorf("start sandbox job: stat workspace: %w", err)
		}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, fmt.Errorf("start sandbox job: no device and inode for workspace %s", j.Workspace)
	}
	return fileID{uint64(stat.Dev), stat.Ino}, nil
}

// baseEnv returns the environment of a job without Job.Env. It takes over
// nothing of this process but the search path for programs.
func baseEnv(j Job) []string {
	if j.Program != "" && !j.Unsandboxed {
		return reexecEnv
	}
	if j.Unsandboxed {
		return unsandboxedEnv()
	}
	return []string{"PATH=" + visiblePath(j.Readable), "HOME=" + Scratch, "TMPDIR=" + Scratch, "LANG=C.UTF-8", "TERM=dumb"}
}

// mergeEnv returns both lists with each variable once; the last value wins.
// Duplicates must not remain, because programs disagree about which one counts.
func mergeEnv(env, extra []string) []string {
	all := slices.Concat(env, extra)
	value := make(map[string]string, len(all))
	for _, pair := range all {
		name, _, _ := strings.Cut(pair, "=")
		value[name] = pair
	}
	return slices.Sorted(maps.Values(value))
}

// visiblePath returns the PATH of a sandboxed job. It has the directories of
// this process's PATH that exist inside, the bin directories of readable
// toolchains, and the standard directories.
func visiblePath(readable []string) string {
	visible := append([]string{"/usr", "/bin", "/sbin"}, readable...)
	candidates := filepath.SplitList(os.Getenv("PATH"))
	for _, dir := range readable {
		candidates = append(candidates, filepath.Join(dir, "bin"))
	}
	var dirs []string
	for _, dir := range append(candidates, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin") {
		if insideAny(filepath.Clean(dir), visible) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// insideAny reports whether dir is one of trees or below one.
func insideAny(dir string, trees []string) bool {
	for _, tree := range trees {
		if dir == tree || strings.HasPrefix(dir, strings.TrimSuffix(tree, "/")+"/") {
			return true
		}
	}
	return false
}

// sysctlHints returns the settings of this system that forbid user namespaces, in
// parentheses, or "" if there are none.
func sysctlHints() string {
	var found []string
	for _, setting := range []struct{ name, bad string }{
		{"kernel/unprivileged_userns_clone", "0"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1"},
		{"user/max_user_namespaces", "0"},
	} {
		value, err := os.ReadFile("/proc/sys/" + setting.name)
		if text := strings.TrimSpace(string(value)); err == nil && text == setting.bad {
			found = append(found, strings.ReplaceAll(setting.name, "/", ".")+" is "+text)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " (sysctl " + strings.Join(found, ", ") + ")"
}

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

// resolveSpec checks a job and fills in what its process has to know.
func resolveSpec(j Job) (*spec, error) {
	if (len(j.Argv) == 0) == (j.Program == "") {
		return nil, errArgvOrProgram
	}
	if err := readable(j); err != nil {
		return nil, err
	}
	s := &spec{Job: j}
	var err error
	if s.Binary, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("start a job: find this binary: %w", err)
	}
	if s.Job.Env = overlay(environment(j), j.Env); j.Workspace != "" {
		s.Number, err = numberOf(j)
	}
	return s, err
}

// privateMounts are what a sandbox makes for itself.
var privateMounts = []string{"/", "/proc", "/dev", "/etc", "/run", Scratch, Workspace}

// readable checks what a job may read beside the system.
func readable(j Job) error {
	for _, dir := range j.Readable {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("start a job: the readable directory %q is not absolute", dir)
		}
		if j.Unsandboxed {
			continue
		}
		if slices.Contains(privateMounts, filepath.Clean(dir)) {
			return &Unavailable{Missing: fmt.Sprintf("a place for the readable directory %q: a sandbox has its own; list what is below it", dir)}
		}
		if _, err := os.Stat(dir); err != nil {
			return &Unavailable{Missing: fmt.Sprintf("the readable directory %q", dir), cause: err}
		}
	}
	return nil
}

// numberOf says which directory the workspace has to be.
func numberOf(j Job) (fileID, error) {
	info := j.WorkspaceInfo
	if info == nil {
		var err error
		if info, err = os.Stat(j.Workspace); err != nil {
			return fileID{}, fmt.Errorf("start a job: look at its workspace: %w", err)
		}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, fmt.Errorf("start a job: nobody knows which directory %s is", j.Workspace)
	}
	return fileID{uint64(stat.Dev), stat.Ino}, nil
}

// environment is what a job knows beside what it is given: nothing of this
// process's own, but where programs are.
func environment(j Job) []string {
	if j.Program != "" && !j.Unsandboxed {
		return ownEnvironment
	}
	if j.Unsandboxed {
		return openEnvironment()
	}
	return []string{"PATH=" + visiblePath(j.Readable), "HOME=" + Scratch, "TMPDIR=" + Scratch, "LANG=C.UTF-8", "TERM=dumb"}
}

// overlay gives every variable once; the later value holds. Programs disagree
// about which of two they take.
func overlay(env, further []string) []string {
	all := slices.Concat(env, further)
	value := make(map[string]string, len(all))
	for _, pair := range all {
		name, _, _ := strings.Cut(pair, "=")
		value[name] = pair
	}
	return slices.Sorted(maps.Values(value))
}

// visiblePath gives the parts of our PATH that exist inside, the programs of
// toolchains that can be read, and the usual ones.
func visiblePath(readable []string) string {
	visible := append([]string{"/usr", "/bin", "/sbin"}, readable...)
	candidates := filepath.SplitList(os.Getenv("PATH"))
	for _, dir := range readable {
		candidates = append(candidates, filepath.Join(dir, "bin"))
	}
	var dirs []string
	for _, dir := range append(candidates, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin") {
		if within(filepath.Clean(dir), visible) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

func within(dir string, trees []string) bool {
	for _, tree := range trees {
		if dir == tree || strings.HasPrefix(dir, strings.TrimSuffix(tree, "/")+"/") {
			return true
		}
	}
	return false
}

// sysctlHints names the settings of this system that forbid namespaces.
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

package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// controlGroup is the set of control groups of one job: one directory in version 2,
// one per controller in version 1. A nil group, or one without directories,
// bounds nothing.
type controlGroup struct {
	dirs      []string
	weightDir string // bounds nothing: it only has the weight of version 1; "" if there is none
	pids      bool   // the number of processes is bounded
	memory    bool   // the memory of all processes together is bounded
	oomEvents string // file that counts processes killed for lack of memory; "" if there is none
}

// newControlGroup creates control groups where this process has the permission: below
// its own group, or as a sibling where the parent was delegated. Missing
// permission is not an error; the group then bounds less, or nothing.
func (l *Launcher) newControlGroup(limits JobLimits) *controlGroup {
	g, found := new(controlGroup), cgroupHierarchies()
	l.cleanup.Do(func() { removeStaleGroups(found) })
	name := fmt.Sprintf(groupPrefix+"%d-%d", os.Getpid(), l.jobs.Add(1))
	for _, home := range found {
		for _, parent := range home.parents {
			dir := filepath.Join(parent, name)
			if home.controller == "cpu" && createGroup(dir, home.settings(limits)) {
				g.weightDir = dir
				break
			}
			if home.controller != "cpu" && g.create(dir, home.settings(limits)) {
				break
			}
		}
	}
	return g
}

// groupPrefix begins the names of control groups of jobs. The process id of the
// starter and a number follow.
const groupPrefix = "rolecall-"

// removeStaleGroups removes control groups that killed starters left. This includes groups of an
// earlier process with the id of this process.
func removeStaleGroups(found []cgroupHierarchy) {
	for _, home := range found {
		for _, parent := range home.parents {
			left, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*-*")) // the pattern is well-formed
			for _, dir := range left {
				pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
				if _, err := os.Stat("/proc/" + pid); err != nil || pid == strconv.Itoa(os.Getpid()) {
					_ = os.Remove(dir) // fails while a process is in it
				}
			}
		}
	}
}

// create creates one directory with its settings. It reports whether all of them
// were written; if not, the directory is removed again.
func (g *controlGroup) create(dir string, settings map[string]string) bool {
	if !createGroup(dir, settings) {
		return false
	}
	g.dirs = append(g.dirs, dir)
	_, pids := settings["pids.max"]
	_, memory := settings["memory.max"]
	_, oldMemory := settings["memory.limit_in_bytes"]
	g.pids, g.memory = g.pids || pids, g.memory || memory || oldMemory
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			g.oomEvents = filepath.Join(dir, file)
		}
	}
	return true
}

// createGroup creates a directory with its settings, or none.
func createGroup(dir string, settings map[string]string) bool {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return false
	}
	for file, value := range settings {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil && !optionalSettings[file] {
			_ = os.Remove(dir) // it is empty, and a leftover does no harm
			return false
		}
	}
	return true
}

// optionalSettings are settings that a kernel may lack without weakening the
// limits.
var optionalSettings = map[string]bool{"memory.swap.max": true, "memory.oom.group": true, "cpu.weight": true}

// The weight of a job for the processors, whatever the number of its processes: half of
// the default. Version 1 counts it in shares.
const (
	cpuWeight = "50"  // the default is 100
	cpuShares = "512" // the default is 1024
)

// addProcess moves a process into the groups. If that fails they bound nothing.
func (g *controlGroup) addProcess(pid int) {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		if err := joinGroup(dir, pid); err != nil {
			g.pids, g.memory = false, false
			return
		}
	}
	if g.weightDir != "" {
		_ = joinGroup(g.weightDir, pid) // it bounds nothing
	}
}

// joinGroup moves a process into a control group.
func joinGroup(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// close removes the groups of a job that has ended. It reports whether the
// kernel killed a process of it for lack of memory.
func (g *controlGroup) close() (outOfMemory bool) {
	if g == nil {
		return false
	}
	if data, err := os.ReadFile(g.oomEvents); err == nil {
		for line := range strings.Lines(string(data)) {
			if count, ok := strings.CutPrefix(line, "oom_kill "); ok && strings.TrimSpace(count) != "0" {
				outOfMemory = true
			}
		}
	}
	for _, dir := range append(g.dirs, g.weightDir) {
		_ = os.Remove(dir) // all of its processes have ended
	}
	return outOfMemory
}

// cgroupHierarchy is the position of this process in one hierarchy of control
// groups.
type cgroupHierarchy struct {
	parents    []string // directories where groups may be created, best first
	controller string   // version 1: "pids", "memory" or "cpu"; version 2: ""
}

// settings returns the contents of the files that set limits, by file name. The
// hierarchy of version 2 has all controllers.
func (h cgroupHierarchy) settings(l JobLimits) map[string]string {
	pids, memory := strconv.Itoa(l.Processes), strconv.FormatInt(l.Memory, 10)
	switch h.controller {
	case "pids":
		return map[string]string{"pids.max": pids}
	case "memory":
		return map[string]string{"memory.limit_in_bytes": memory}
	case "cpu":
		return map[string]string{"cpu.shares": cpuShares}
	}
	return map[string]string{"pids.max": pids, "memory.max": memory, "memory.swap.max": "0", "memory.oom.group": "1", "cpu.weight": cpuWeight}
}

// cgroupHierarchies returns the hierarchies that this process is in. A system
// without control groups has none.
func cgroupHierarchies() []cgroupHierarchy {
	mounts := cgroupMounts()
	file, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	defer file.Close()
	var list []cgroupHierarchy
	for lines := bufio.NewScanner(file); lines.Scan(); {
		part := strings.SplitN(lines.Text(), ":", 3)
		if len(part) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(part[1], ",") { // version 1 may mount two at one place
			if mount, ok := mounts[controller]; ok {
				own := filepath.Join(mount, part[2])
				list = append(list, cgroupHierarchy{parents: cgroupParents(own), controller: controller})
			}
		}
	}
	return list
}

// cgroupParents lists the directories where groups may be created. A version 2
// group that contains processes cannot have children with limits. So the parent
// of the own group is preferred if the system delegated it.
func cgroupParents(own string) []string {
	value := make([]byte, 1)
	if n, err := unix.Getxattr(filepath.Dir(own), "user.delegate", value); err == nil && string(value[:n]) == "1" {
		return []string{own, filepath.Dir(own)}
	}
	return []string{own}
}

// cgroupMounts returns the mount points of the hierarchies in use: "pids", "memory"
// and "cpu" for version 1, "" for version 2.
func cgroupMounts() map[string]string {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil
	}
	defer file.Close()
	mounts := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 4 {
			continue
		}
		for _, controller := range []string{"pids", "memory", "cpu"} {
			if field[2] == "cgroup" && strings.Contains(","+field[3]+",", ","+controller+",") {
				mounts[controller] = field[1]
			}
		}
		if field[2] == "cgroup2" {
			mounts[""] = field[1]
		}
	}
	return mounts
}

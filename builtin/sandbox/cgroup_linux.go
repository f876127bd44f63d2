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

// group is the control groups of one job: of the second version one
// directory, of the first one for each controller. A nil group, or one
// without directories, bounds nothing.
type group struct {
	dirs      []string
	pids      bool
	oomEvents string // file that counts processes ended for want of memory
}

// newGroup makes control groups as far as this process may: below its own, or
// beside it where their parent was delegated.
func (l *Launcher) newGroup(limits Limits) *group {
	g, found := new(group), cgroupHierarchies()
	l.swept.Do(func() { sweep(found) })
	name := fmt.Sprintf(groupName+"%d-%d", os.Getpid(), l.jobs.Add(1))
	for _, home := range found {
		for _, parent := range home.parents {
			if g.make(filepath.Join(parent, name), home.settings(limits)) {
				break
			}
		}
	}
	return g
}

// groupName begins the names of our groups; the process's id and a number follow.
const groupName = "rolecall-"

// sweep removes the groups of processes that were killed and could not, among
// them who had our own number before us.
func sweep(found []cgroupHierarchy) {
	for _, home := range found {
		for _, parent := range home.parents {
			left, _ := filepath.Glob(filepath.Join(parent, groupName+"*-*")) // the pattern is well-formed
			for _, dir := range left {
				pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupName), "-")
				if _, err := os.Stat("/proc/" + pid); err != nil || pid == strconv.Itoa(os.Getpid()) {
					_ = os.Remove(dir) // refused while a process is in it
				}
			}
		}
	}
}

// make makes one directory with its settings, all or nothing.
func (g *group) make(dir string, settings map[string]string) bool {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return false
	}
	for file, value := range settings {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil && !optional[file] {
			_ = os.Remove(dir) // it is empty; a leftover harms nobody
			return false
		}
	}
	g.dirs = append(g.dirs, dir)
	_, pids := settings["pids.max"]
	g.pids = g.pids || pids
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			g.oomEvents = filepath.Join(dir, file)
		}
	}
	return true
}

// optional are settings a kernel may lack without letting anything out.
var optional = map[string]bool{"memory.swap.max": true, "memory.oom.group": true}

// add puts a process into the groups and says whether its number of
// processes is now bounded.
func (g *group) add(pid int) (bounded bool) {
	if g == nil {
		return false
	}
	for _, dir := range g.dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return false
		}
	}
	return g.pids
}

// close removes the groups of a job that has ended, and says whether it ran
// out of memory.
func (g *group) close() (outOfMemory bool) {
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
	for _, dir := range g.dirs {
		_ = os.Remove(dir) // all of its processes are gone
	}
	return outOfMemory
}

// cgroupHierarchy is where a hierarchy of control groups has this process.
type cgroupHierarchy struct {
	parents    []string // where groups may be made, best first
	controller string   // of the first version; "" is the second, which has all
}

func (h cgroupHierarchy) settings(l Limits) map[string]string {
	pids, memory := strconv.Itoa(l.Processes), strconv.FormatInt(l.Memory, 10)
	switch h.controller {
	case "pids":
		return map[string]string{"pids.max": pids}
	case "memory":
		return map[string]string{"memory.limit_in_bytes": memory}
	}
	return map[string]string{"pids.max": pids, "memory.max": memory, "memory.swap.max": "0", "memory.oom.group": "1"}
}

// cgroupHierarchies reads where this process is. A system without control groups has none.
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
		if mount, ok := mounts[part[1]]; ok {
			own := filepath.Join(mount, part[2])
			list = append(list, cgroupHierarchy{parents: cgroupParents(own), controller: part[1]})
		}
	}
	return list
}

// cgroupParents lists where groups may be made: below our own and, since a group of
// the second version that has processes cannot also have groups with limits,
// beside it, where whoever runs this system delegated the parent.
func cgroupParents(own string) []string {
	value := make([]byte, 1)
	if n, err := unix.Getxattr(filepath.Dir(own), "user.delegate", value); err == nil && string(value[:n]) == "1" {
		return []string{own, filepath.Dir(own)}
	}
	return []string{own}
}

// cgroupMounts gives where the hierarchies that serve us are mounted: "pids"
// and "memory" of the first version, "" for the second.
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
		for _, controller := range []string{"pids", "memory"} {
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

package chrome

import (
	"bytes"
	"os"
	"strconv"
)

// memoryUse returns for each of these processes how many bytes of memory it and its descendants
// use: anonymous and shared, not files. Shared memory counts for each process that has it.
func memoryUse(roots []int) map[int]int64 {
	parents, use := parentProcesses(), make(map[int]int64, len(roots))
	for _, root := range roots {
		use[root] = 0
	}
	for id := range parents {
		at := id
		for range 64 { // no cycle of reused ids is followed forever
			if _, isRoot := use[at]; isRoot || at == 0 {
				break
			}
			at = parents[at]
		}
		if _, ok := use[at]; ok {
			use[at] += residentMemory(id)
		}
	}
	return use
}

// parentProcesses returns the parent of each process of the system.
func parentProcesses() map[int]int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // an error means that some processes are not counted this time
	parents := make(map[int]int, len(names))
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			parents[id] = parentOf(name)
		}
	}
	return parents
}

// parentOf returns the parent of a process, 0 if it is unknown.
func parentOf(id string) int {
	stat, _ := os.ReadFile("/proc/" + id + "/stat")
	at := bytes.LastIndexByte(stat, ')') // after the name, which may contain anything
	fields := bytes.Fields(stat[at+1:])
	if at < 0 || len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// residentMemory returns the anonymous and shared memory of a process in bytes, 0 if it has
// ended.
func residentMemory(id int) (sum int64) {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(id) + "/status")
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "RssAnon" && string(name) != "RssShmem" {
			continue
		}
		if kb, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64); err == nil {
			sum += kb << 10
		}
	}
	return sum
}

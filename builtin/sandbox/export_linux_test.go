package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// CPUWeights returns the weights of the jobs of this process, by file of their control
// groups.
func CPUWeights() map[string]string {
	weights := map[string]string{}
	for _, home := range cgroupHierarchies() {
		for _, parent := range home.parents {
			files, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf(groupPrefix+"%d-*", os.Getpid()), "cpu.[sw]*"))
			for _, file := range files {
				value, err := os.ReadFile(file)
				members, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup.procs"))
				if name := filepath.Base(file); err == nil && (name == "cpu.shares" || name == "cpu.weight") {
					weights[file] = strings.TrimSpace(string(value))
					if len(members) == 0 {
						weights[file] += ", without a process"
					}
				}
			}
		}
	}
	return weights
}

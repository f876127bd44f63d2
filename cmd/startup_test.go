package cmd

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// maxStartup is what one package of this module may allocate before main begins. A regular
// expression that is compiled there has 10 to 60 KB.
const maxStartup = 10_000 // bytes

// Commands, jobs of a sandbox and tests start the program often. What a package prepares in
// its variables delays each start. The variables of cmd itself include those of its tests.
func TestMain_PackagesAllocateLittleAtStart(t *testing.T) {
	program := exec.Command(os.Args[0], "version")
	program.Env = append(os.Environ(), mainMode+"=1", "GODEBUG=inittrace=1")
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes`).FindAllStringSubmatch(string(out), -1)
	if len(found) < 50 {
		t.Fatalf("the trace has %d packages: %s", len(found), out)
	}
	const module = "github.com/rolecall/rolecall/"
	for _, m := range found {
		if n, _ := strconv.Atoi(m[2]); n > maxStartup && strings.HasPrefix(m[1], module) && m[1] != module+"cmd" {
			t.Errorf("package %s allocates %d bytes before main, more than %d: prepare it when it is first used", strings.TrimPrefix(m[1], module), n, maxStartup)
		}
	}
}

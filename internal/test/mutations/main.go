// Command mutations breaks the permission core in many small ways, one at a time, and
// checks that a test notices each. make soak runs it:
//
//	go run ./internal/test/mutations           # every mutation with the test that is to fail
//	go run ./internal/test/mutations -find     # with all tests of the core: lists those that fail
//	go run ./internal/test/mutations ceiling   # only those with this word in their name
//
// A mutation replaces a text of a source file for one run of go test, by an overlay:
// no file of the tree changes. It is caught if the test fails by an assertion. A panic,
// a build error or a test that passes is a survivor.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

// mutation is one way to break the code.
type mutation struct {
	name     string // what the broken code does
	file     string // from the root of the repository
	old, new string // old occurs once in the file
	tests    string // package and name of the test that catches it
}

// corePackages are those whose tests -find runs.
var corePackages = []string{"./toolgroups", "./gate", "./org", "./modules", "./property_test"}

func main() {
	find := flag.Bool("find", false, "run all tests of the core and list those that fail")
	flag.Parse()
	if err := run(*find, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

// run tries all mutations whose name contains word.
func run(find bool, word string) error {
	start, tried, survivors := time.Now(), 0, []string{}
	for _, m := range mutations {
		if !strings.Contains(m.name, word) {
			continue
		}
		tried++
		verdict, caught, err := m.try(find)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if !caught {
			survivors = append(survivors, m.name)
		}
		fmt.Printf("%s: %s\n", m.name, verdict)
	}
	fmt.Printf("%d of %d mutations caught in %v\n", tried-len(survivors), tried, time.Since(start).Round(time.Second))
	err := soakreport.AppendResult(soakreport.Result{
		Part: "mutations", Claim: "a test notices every mutation of the permission core", Goal: "all",
		Observed: fmt.Sprintf("%d of %d", tried-len(survivors), tried), Passed: tried > 0 && len(survivors) == 0,
	})
	if err == nil && (tried == 0 || len(survivors) > 0) {
		err = fmt.Errorf("not caught: %s", strings.Join(survivors, "; "))
	}
	return err
}

// try runs tests with the mutation.
func (m mutation) try(find bool) (verdict string, caught bool, err error) {
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.writeOverlay(dir)
	if err != nil {
		return "", false, err
	}
	packages := corePackages
	if pkg, test, _ := strings.Cut(m.tests, " "); !find {
		packages = []string{"-run=^" + test + "$", pkg}
	}
	for _, extent := range []string{"-short=true", "-short=false"} { // a test may sample its cases with -short
		args := append([]string{"test", extent, "-count=1", "-vet=off", "-timeout=3m", "-overlay=" + overlay}, packages...)
		out, err := exec.Command("go", args...).CombinedOutput()
		if verdict, caught = judge(string(out), err != nil); caught || err != nil {
			break
		}
	}
	return verdict, caught, nil
}

// writeOverlay writes the mutated file and the file for go test -overlay, whose name it
// returns.
func (m mutation) writeOverlay(dir string) (string, error) {
	text, err := m.mutated(".")
	if err != nil {
		return "", err
	}
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	source, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{file: source}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, data, 0o644)
}

// mutated returns the text of the file with the mutation.
func (m mutation) mutated(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(data), m.old); n != 1 {
		return "", fmt.Errorf("%s contains the text %q %d times, want once", m.file, m.old, n)
	}
	return strings.Replace(string(data), m.old, m.new, 1), nil
}

var (
	failure   = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	panicLine = regexp.MustCompile(`(?m)^panic: `) // a test may print the word
)

// judge says what the output of go test means.
func judge(out string, failed bool) (verdict string, caught bool) {
	var tests []string
	for _, match := range failure.FindAllStringSubmatch(out, -1) {
		tests = append(tests, match[1])
	}
	switch {
	case !failed && strings.Contains(out, "[no tests to run]"):
		return "SURVIVES: there is no such test", false
	case !failed:
		return "SURVIVES", false
	case panicLine.MatchString(out):
		return "PANICS\n" + out, false
	case len(tests) == 0:
		return "NOT TESTED\n" + out, false
	}
	return "caught by " + strings.Join(tests, ", "), true
}

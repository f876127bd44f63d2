// Command sampled lists the tests that use parts of their lists under the race detector,
// see package short. make check runs them again without it, with the complete lists, and
// runs no other test twice.
//
//	go test $(go run ./internal/test/sampled ./...)
//
// It prints the flag -run and those of the packages that have such tests. It reads names only: a test that mentions a
// function of the same name as one that samples counts too.
package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// samplePackage is the package whose functions sample.
const samplePackage = "github.com/rolecall/rolecall/internal/test/short"

func main() {
	if err := printTests(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sampled:", err)
		os.Exit(1)
	}
}

// printTests prints the arguments of go test for the packages that match patterns.
func printTests(patterns []string) error {
	wanted, err := runList(append([]string{"-f", "{{.ImportPath}}"}, patterns...))
	if err != nil {
		return err
	}
	packages, err := listPackages(wanted)
	if err != nil {
		return err
	}
	tests, paths, err := sampledTests(packages)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("-run=^(%s)$ %s\n", strings.Join(tests, "|"), strings.Join(paths, " "))
	return err
}

// goPackage is a package of the module.
type goPackage struct {
	path, dir    string
	files, tests []string // names of files, without and with tests
}

// listPackages returns all packages, each after those that it imports. Only those that are
// wanted have tests.
func listPackages(wanted []string) ([]goPackage, error) {
	lines, err := runList([]string{"-deps", "-f", `{{if not .DepOnly}}{{.ImportPath}}|{{.Dir}}|{{join .GoFiles " "}}|{{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}{{end}}`, "./..."})
	if err != nil {
		return nil, err
	}
	var list []goPackage
	for _, line := range lines {
		f := strings.Split(line, "|")
		p := goPackage{path: f[0], dir: f[1], files: strings.Fields(f[2])}
		if slices.Contains(wanted, p.path) {
			p.tests = strings.Fields(f[3])
		}
		list = append(list, p)
	}
	return list, nil
}

// runList returns the lines of go list.
func runList(arguments []string) (lines []string, err error) {
	command := exec.Command("go", append([]string{"list"}, arguments...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

// sampledTests returns the names of the tests that sample, and the packages that have some.
func sampledTests(packages []goPackage) (tests, paths []string, err error) {
	samplers, err := findSamplers(packages)
	if err != nil {
		return nil, nil, err
	}
	names := map[string]bool{}
	for _, p := range packages {
		all, err := parseMentions(p.dir, slices.Concat(p.files, p.tests))
		if err != nil {
			return nil, nil, err
		}
		found := all.reaching(samplers)
		maps.DeleteFunc(found, func(name string, _ bool) bool { return !strings.HasPrefix(name, "Test") })
		if len(found) > 0 {
			paths = append(paths, p.path)
		}
		maps.Copy(names, found)
	}
	return slices.Sorted(maps.Keys(names)), paths, nil
}

// findSamplers returns the functions that sample, without those of tests, by their packages.
func findSamplers(packages []goPackage) (samplers map[string]map[string]bool, err error) {
	samplers = map[string]map[string]bool{}
	for _, p := range packages { // each after those that it imports
		own, err := parseMentions(p.dir, p.files)
		if err != nil {
			return nil, err
		}
		if p.path == samplePackage {
			samplers[p.path] = own.all()
			continue
		}
		if name := own.samplingMethod(samplers); name != "" {
			return nil, fmt.Errorf("method %s of %s samples: make it a function, since the tests that call a method of another package are not found", name, p.path)
		}
		samplers[p.path] = own.reaching(samplers)
	}
	return samplers, nil
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writePackage writes the files of a package, by their names, and returns the package.
func writePackage(t *testing.T, path string, files map[string]string) goPackage {
	t.Helper()
	p := goPackage{path: path, dir: t.TempDir()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			p.tests = append(p.tests, name)
		} else {
			p.files = append(p.files, name)
		}
	}
	return p
}

func TestSampledTests_FollowsHelpersAndPackages(t *testing.T) {
	sample := writePackage(t, samplePackage, map[string]string{"short.go": "package short\nfunc Count(few, full int) int { return full }"})
	suite := writePackage(t, "example.com/suite", map[string]string{"suite.go": `package suite
import "github.com/rolecall/rolecall/internal/test/short"
func Run() int { return run() }
func run() int { return short.Count(1, 2) }
func Other() {}`})
	user := writePackage(t, "example.com/user", map[string]string{"user_test.go": `package user
import (
	count "github.com/rolecall/rolecall/internal/test/short"
	"example.com/suite"
)
var cases = count.Count(1, 2)
type helper struct{}
func (helper) repeat() int { return cases }
func TestDirect() { count.Count(1, 2) }
func TestVariable() { println(cases) }
func TestMethod() { helper{}.repeat() }
func TestSuite() { suite.Run() }
func TestOther() { suite.Other() }
func TestShadow() { type short struct{ Count int }; println(short{}.Count) }`})
	tests, paths, err := sampledTests([]goPackage{sample, suite, user})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"TestDirect", "TestMethod", "TestSuite", "TestVariable"}; !slices.Equal(tests, want) {
		t.Errorf("got the tests %v, want %v", tests, want)
	}
	if want := []string{"example.com/user"}; !slices.Equal(paths, want) {
		t.Errorf("got the packages %v, want %v", paths, want)
	}
}

func TestSampledTests_RejectsMethodsOfOtherPackages(t *testing.T) {
	sample := writePackage(t, samplePackage, map[string]string{"short.go": "package short\nfunc Count(few, full int) int { return full }"})
	suite := writePackage(t, "example.com/suite", map[string]string{"suite.go": `package suite
import "github.com/rolecall/rolecall/internal/test/short"
type Suite struct{}
func (Suite) Run() int { return short.Count(1, 2) }`})
	if _, _, err := sampledTests([]goPackage{sample, suite}); err == nil || !strings.Contains(err.Error(), "method Run of example.com/suite") {
		t.Errorf("got %v", err)
	}
}

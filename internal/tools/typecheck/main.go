// Typecheck reports whether a module compiles for other platforms. It checks the types of
// every package and test from source, so that it needs no compiled package of the platform:
// ten seconds for a platform, where go vet compiles the standard library for minutes.
//
// Usage: typecheck DIRECTORY GOOS/GOARCH...
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck DIRECTORY GOOS/GOARCH...")
		os.Exit(2)
	}
	failed := false
	for _, platform := range os.Args[2:] {
		found, err := Check(os.Stdout, os.Args[1], platform)
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck %s for %s: %v\n", os.Args[1], platform, err)
		}
		failed = failed || err != nil || found > 0
	}
	if failed {
		os.Exit(1)
	}
}

// Check writes each error of the packages and tests in dir for platform, such as
// "darwin/arm64", and returns their number. An error means that it could not check.
func Check(out io.Writer, dir, platform string) (int, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return 0, fmt.Errorf("a platform is GOOS/GOARCH, such as darwin/arm64")
	}
	// NeedDeps with NeedTypes and NeedSyntax checks what a package imports from source, too.
	roots, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedModule,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
	}, "./...")
	if err != nil {
		return 0, err
	}
	if len(roots) == 0 {
		return 0, fmt.Errorf("no packages")
	}
	// A package stands in the graph once more for its tests.
	seen := map[string]bool{}
	packages.Visit(roots, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if line := fmt.Sprintf("%s: %s: %v", platform, p.PkgPath, e); !seen[line] {
				seen[line] = true
				fmt.Fprintln(out, line)
			}
		}
	})
	return len(seen), nil
}

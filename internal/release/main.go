// Command release writes the files of a release: an archive for each platform, a Homebrew
// formula, an SBOM, a provenance statement and SHA256SUMS. make release runs it. It builds
// the commit that is checked out, in a clone of its own, and uploads and signs nothing.
//
// Two runs with one version of Go write the same bytes, wherever the repository is. Paths
// are trimmed, and every time is the time of the commit. The sources are the sources of
// the commit.
//
//	go run -C internal/release .
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	o := options{}
	flag.StringVar(&o.repository, "repository", "../..", "`directory` of the git repository")
	flag.StringVar(&o.out, "out", "../../dist", "`directory` for the files; those of an earlier release are removed")
	only := flag.String("platforms", strings.Join(allPlatforms, ","), "`list` of platforms")
	flag.Parse()
	o.platforms = strings.Split(*only, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	repository, out string
	platforms       []string
}

// run writes a release. It clones the commit and builds the programs. It writes the files from them
// in the order in which they depend on each other.
func run(ctx context.Context, o options) error {
	if err := checkClean(ctx, o.repository); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "rolecall-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source := filepath.Join(work, "source")
	if err := cloneCommit(ctx, o.repository, source); err != nil {
		return err
	}
	programs, err := buildAll(ctx, source, work, o.platforms)
	if err != nil {
		return err
	}
	if err := prepareDir(o.out); err != nil {
		return err
	}
	r := &release{dir: o.out, source: source, origin: programs[0].origin, programs: programs}
	for _, write := range []func() error{r.writeArchives, r.writeFormula, r.writeSBOM, r.writeProvenance, r.writeChecksums} {
		if err := write(); err != nil {
			return err
		}
	}
	return r.report()
}

// prepareDir makes a directory without the files of an earlier release. It leaves other files.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"rolecall_v*", formulaFile, checksumFile} {
		old, err := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range old {
			err = cmp.Or(err, os.Remove(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// release is a release that is being written.
type release struct {
	dir, source string
	origin      // the origin of all programs
	programs    []program
	files       []file // written so far
}

// file is a file of the release.
type file struct{ name, sha256 string }

// writeFile writes a file of the release.
func (r *release) writeFile(name string, content []byte) error {
	r.files = append(r.files, file{name, digest(content)})
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o644)
}

// prefix begins the names of the files of the release.
func (r *release) prefix() string { return "rolecall_" + r.version }

// report prints what was written.
func (r *release) report() error {
	for _, f := range r.files {
		info, err := os.Stat(filepath.Join(r.dir, f.name))
		if err != nil {
			return err
		}
		fmt.Printf("%11d  %s\n", info.Size(), f.name)
	}
	return nil
}

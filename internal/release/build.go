package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// allPlatforms are the platforms of a release.
var allPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// buildFlags are the flags of go build. The tag adds Google's connector of Cloud SQL.
var buildFlags = []string{"-trimpath", "-buildvcs=true", "-tags=cloudsql", "-ldflags=-s -w -buildid="}

// buildEnv fixes what would otherwise depend on the environment. Without cgo the programs
// are static.
var buildEnv = []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off"}

// program is the program for one platform.
type program struct {
	origin
	os, arch string
	info     *debug.BuildInfo
	content  []byte
}

// origin is what a program was built from.
type origin struct {
	version, commit string
	time            time.Time // of the commit
}

// name returns the name of the program's file.
func (p program) name() string {
	if p.os == "windows" {
		return "rolecall.exe"
	}
	return "rolecall"
}

// git runs git in a directory and returns its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return runOutput(exec.CommandContext(ctx, "git", args...), dir)
}

// checkClean rejects a repository with uncommitted changes, which would not be in the
// release.
func checkClean(ctx context.Context, repository string) error {
	changes, err := git(ctx, repository, "status", "--porcelain", "--untracked-files=no")
	if err == nil && changes != "" {
		err = fmt.Errorf("commit these changes first, or undo them:\n%s", changes)
	}
	return err
}

// cloneCommit clones the commit that is checked out in a repository.
func cloneCommit(ctx context.Context, repository, to string) error {
	commit, err := git(ctx, repository, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	from, err := filepath.Abs(repository)
	if err != nil {
		return err
	}
	if _, err := git(ctx, "", "clone", "--quiet", "--no-checkout", from, to); err != nil {
		return err
	}
	_, err = git(ctx, to, "checkout", "--quiet", "--detach", commit)
	return err
}

// buildAll builds the program for each platform.
func buildAll(ctx context.Context, source, work string, platforms []string) ([]program, error) {
	var list []program
	for _, platform := range platforms {
		fmt.Fprintln(os.Stderr, "build", platform)
		p, err := build(ctx, source, work, platform)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// build builds the program for a platform.
func build(ctx context.Context, source, work, platform string) (program, error) {
	p := program{}
	p.os, p.arch, _ = strings.Cut(platform, "/")
	path := filepath.Join(work, strings.ReplaceAll(platform, "/", "-"))
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", path, "./cmd/rolecall"})...)
	cmd.Env = slices.Concat(os.Environ(), buildEnv, []string{"GOOS=" + p.os, "GOARCH=" + p.arch})
	_, err := runOutput(cmd, source)
	if err != nil {
		return p, err
	}
	if p.info, err = buildinfo.ReadFile(path); err != nil {
		return p, err
	}
	if p.origin, err = readOrigin(p.info); err != nil {
		return p, fmt.Errorf("%s: %w", platform, err)
	}
	p.content, err = os.ReadFile(path)
	return p, err
}

// readOrigin reads what the go command has recorded in a program.
func readOrigin(info *debug.BuildInfo) (origin, error) {
	o := origin{version: info.Main.Version}
	var err error
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			o.commit = s.Value
		case "vcs.time":
			o.time, err = time.Parse(time.RFC3339, s.Value)
		}
	}
	if o.commit == "" || o.time.IsZero() || strings.Contains(o.version, "+dirty") || !strings.HasPrefix(o.version, "v") {
		return o, fmt.Errorf("the program is not stamped with a version and a clean commit, but with %q and %q", o.version, o.commit)
	}
	return o, err
}

// runOutput runs a command in a directory and returns its trimmed output.
func runOutput(cmd *exec.Cmd, dir string) (string, error) {
	cmd.Dir = dir
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s", err, e.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

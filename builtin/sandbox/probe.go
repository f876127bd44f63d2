package sandbox

import (
	"context"
	"errors"
	"io"
	"strings"
)

// Isolation describes how jobs are isolated on this system. The zero value says that
// they are not.
type Isolation struct {
	Layers  []string `json:"layers"`  // active for every job; empty if jobs are refused
	Missing []string `json:"missing"` // what this system lacks, and what that means
}

// Available reports whether jobs are isolated. Otherwise they are refused.
func (i Isolation) Available() bool { return len(i.Layers) > 0 }

// layers are the layers that every job has; without one of them it is refused.
var layers = []string{"namespaces", "a root file system of its own", "Landlock", "no capabilities", "seccomp", "resource limits"}

// ProbeIsolation runs a job that does nothing and returns how it was isolated. The
// error is that of a job that cannot be started for another reason.
func (l *Launcher) ProbeIsolation(ctx context.Context) (Isolation, error) {
	j := Job{Argv: []string{"sh", "-c", "test -e /proc/self"}}
	j.Limits = j.Limits.orDefault()
	ctx, cancel := context.WithTimeout(ctx, j.Limits.Time)
	defer cancel()
	p, err := l.start(ctx, j, strings.NewReader(""), io.Discard, io.Discard)
	if missing, ok := errors.AsType[*UnavailableError](err); ok {
		return Isolation{Layers: []string{}, Missing: []string{missing.Detail()}}, nil
	}
	found := Isolation{Layers: layers, Missing: []string{}}
	if _, ok := errors.AsType[*execError](err); ok {
		return found, nil // there is no shell; the isolation was complete before
	}
	if err != nil {
		return Isolation{}, err
	}
	if p.groupMemory() {
		found.Layers = append(found.Layers[:len(layers):len(layers)], "control groups")
	} else {
		found.Missing = append(found.Missing, "control groups: limits.memory applies to each process")
	}
	if p.waitDone() != nil && ctx.Err() == nil {
		found.Missing = append(found.Missing, "/proc inside the sandbox: some programs need it")
	}
	return found, context.Cause(ctx)
}

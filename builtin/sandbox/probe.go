package sandbox

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
)

// Isolation describes how jobs are isolated on this system. The zero value says that
// they are not.
type Isolation struct {
	Layers  []string     `json:"layers"`  // active for every job; empty if jobs are refused
	Missing []string     `json:"missing"` // what this system lacks, and what that means
	Checks  []LayerCheck `json:"checks"`  // each layer, in the order in which a job gets them
}

// LayerCheck is what the probe found of one layer.
type LayerCheck struct {
	Layer  string      `json:"layer"`
	Status LayerStatus `json:"status"`
	Detail string      `json:"detail,omitempty"` // what is active; or why it is missing, and what follows
}

// LayerStatus is the state of a layer.
type LayerStatus string

const (
	LayerActive    LayerStatus = "active"    // every job has it
	LayerAvailable LayerStatus = "available" // the system offers it, but no job ran
	LayerMissing   LayerStatus = "missing"
	LayerUnknown   LayerStatus = "unknown" // no job came as far as this layer
)

// Available reports whether jobs are isolated. Otherwise they are refused.
func (i Isolation) Available() bool { return len(i.Layers) > 0 }

// The layers that every job has; without one of them it is refused.
const (
	layerNamespaces   = "namespaces"
	layerRoot         = "a root file system of its own"
	layerLandlock     = "Landlock"
	layerCapabilities = "no capabilities"
	layerSeccomp      = "seccomp"
	layerLimits       = "resource limits"
)

// Layers that a system may lack.
const (
	layerGroups = "control groups"
	layerProc   = "/proc"
)

// layers are the required layers, in the order in which a job gets them.
var layers = []string{layerNamespaces, layerRoot, layerLandlock, layerCapabilities, layerSeccomp, layerLimits}

// layerDetails say what the required layers are, where the name alone does not.
var layerDetails = map[string]string{layerNamespaces: "user, mount, pid, network, ipc and uts"}

const (
	groupsMissing = "limits.memory applies to each process"
	procMissing   = "some programs need it"
)

// ProbeIsolation runs a job that does nothing and returns how it was isolated. It returns an error
// if a job cannot be started for another reason, or the cause of ctx.
func (l *Launcher) ProbeIsolation(ctx context.Context) (Isolation, error) {
	j := Job{Argv: []string{"sh", "-c", "test -e /proc/self"}}
	j.Limits = j.Limits.orDefault()
	ctx, cancel := context.WithTimeoutCause(ctx, j.Limits.Time, errTimeLimit)
	defer cancel()
	p, err := l.start(ctx, j, strings.NewReader(""), io.Discard, io.Discard)
	if err != nil && ctx.Err() != nil {
		return Isolation{}, context.Cause(ctx) // the probe was killed, whatever the system has
	}
	if missing, ok := errors.AsType[*UnavailableError](err); ok {
		return l.refusedIsolation(missing), nil
	}
	found := activeIsolation()
	if _, ok := errors.AsType[*execError](err); ok {
		found.Checks = append(found.Checks, l.optionalChecks()...)
		return found, nil // there is no shell; the isolation was complete before
	}
	if err != nil {
		return Isolation{}, err
	}
	if p.boundsMemory() {
		found.Layers = append(found.Layers, layerGroups)
		found.add(LayerCheck{layerGroups, LayerActive, "memory of all processes together"})
	} else {
		found.add(LayerCheck{layerGroups, LayerMissing, groupsMissing})
		found.Missing = append(found.Missing, layerGroups+": "+groupsMissing)
	}
	if p.waitDone() != nil && ctx.Err() == nil {
		found.add(LayerCheck{layerProc, LayerMissing, procMissing})
		found.Missing = append(found.Missing, "/proc inside the sandbox: "+procMissing)
	} else {
		found.add(LayerCheck{layerProc, LayerActive, ""})
	}
	return found, context.Cause(ctx)
}

// add adds a check.
func (i *Isolation) add(c LayerCheck) { i.Checks = append(i.Checks, c) }

// activeIsolation returns the isolation of a job that has all required layers.
func activeIsolation() Isolation {
	i := Isolation{Layers: slices.Clone(layers), Missing: []string{}}
	kernel := kernelLayers()
	for _, layer := range layers {
		detail := layerDetails[layer]
		if detail == "" {
			detail = kernel[layer]
		}
		i.add(LayerCheck{layer, LayerActive, detail})
	}
	return i
}

// refusedIsolation returns the known isolation where jobs are refused. The layers before the
// missing layer are available. Later layers are available only if the kernel says so.
func (l *Launcher) refusedIsolation(err *UnavailableError) Isolation {
	i := Isolation{Layers: []string{}, Missing: []string{err.Detail()}, Checks: []LayerCheck{}}
	kernel, failed := kernelLayers(), slices.Index(layers, err.layer)
	if failed < 0 { // not even the process of a job was started
		i.add(LayerCheck{"process", LayerMissing, err.Detail()})
	}
	for n, layer := range layers {
		offered, known := kernel[layer]
		switch {
		case n == failed:
			i.add(LayerCheck{layer, LayerMissing, err.Detail()})
		case n < failed || known:
			i.add(LayerCheck{layer, LayerAvailable, offered})
		default:
			i.add(LayerCheck{layer, LayerUnknown, ""})
		}
	}
	i.Checks = append(i.Checks, l.optionalChecks()...)
	return i
}

// optionalChecks returns what is known without a job about layers that may be missing.
func (l *Launcher) optionalChecks() []LayerCheck {
	groups := LayerCheck{layerGroups, LayerMissing, groupsMissing}
	if l.offersGroups() {
		groups = LayerCheck{layerGroups, LayerAvailable, ""}
	}
	return []LayerCheck{groups, {layerProc, LayerUnknown, "no program ran that looks for it"}}
}

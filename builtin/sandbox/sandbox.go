// Package sandbox runs untrusted programs in Linux namespaces with Landlock,
// seccomp and control groups. Such a program is a command that a model
// wrote, or code of this binary that works on a model's data.
//
// A binary that starts sandboxed jobs calls Enter first in main and keeps the
// Launcher it returns:
//
//	func main() {
//		launcher := sandbox.Enter(nil)
//		…
//		out, err := launcher.Run(ctx, sandbox.Job{Argv: []string{"ls"}, Workspace: dir})
//
// The launcher starts the same binary again in new namespaces. Enter detects
// that, isolates its process and starts the program inside. The layers are:
//
//  1. User, mount, pid, network, ipc, uts and cgroup namespaces: the job sees no
//     other process and no network but an empty loopback. A job of root runs as an
//     unprivileged user, where the file system of its workspace has id-mapped
//     mounts (CheckJobUser).
//  2. Control groups for processes and memory, where this process may create
//     them.
//  3. A root file system of its own: system directories read-only, a scratch
//     /tmp, and the workspace at /workspace. Nothing else of the host exists.
//  4. Landlock: only /workspace and /tmp can be written.
//  5. No capability, and no way to gain one.
//  6. Seccomp: no system call that creates namespaces or mounts, or that
//     reaches rarely used parts of the kernel.
//  7. Resource limits.
//
// If a layer other than the control groups is missing, the job is not started
// and the error names it (UnavailableError). The first process of a job remains this
// binary. The kernel kills it when the process that started the job ends, and
// all other processes of the job with it.
//
// The package does not decide which programs may run, and it does not protect
// against holes in the kernel. On other systems than Linux only jobs that are
// explicitly unsandboxed run.
package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Paths that a job sees.
const (
	Workspace = "/workspace"
	Scratch   = "/tmp"
)

// Launcher starts jobs. Only Enter creates a usable one, because a binary that
// does not call Enter cannot become a job. It is safe for concurrent use.
type Launcher struct {
	entered bool
	jobs    atomic.Uint64 // jobs started so far; numbers their control groups
	cleanup sync.Once     // removes the control groups that killed processes left

	jobUserNS jobUserNamespace // of jobs that root starts
}

// Program is code of this binary that can run as a job. It reads from in what
// the starter writes, and the starter reads what it writes to out. In a
// sandbox it has no workspace and no network.
type Program func(in io.Reader, out io.Writer) error

// Job describes one program to run. Exactly one of Argv and Program is set.
type Job struct {
	Argv    []string // the program, looked up in PATH, and its arguments
	Program string   // name of a program that was passed to Enter

	Workspace     string      // host directory that is mounted at /workspace; "" mounts nothing
	WorkspaceInfo fs.FileInfo `json:"-"` // identifies that directory, so that a swapped one is rejected; nil accepts the current one
	ReadOnly      bool        // mounts the workspace read-only
	Readable      []string    // more absolute host directories, mounted read-only at the same path
	Env           []string    // more environment variables, as NAME=value

	Limits JobLimits

	Stderr io.Writer `json:"-"` // receives the stderr of a job of StartProcess; nil discards it

	// Listen makes StartProcess listen on a loopback port inside the sandbox. The starter
	// accepts the connections (Process.Listener). Only the job can reach the port.
	Listen bool

	// Unsandboxed runs the job without isolation and with all rights of this
	// process. Only the per-process limits, the deadline and the output limits
	// apply. Only the operator may set it.
	Unsandboxed bool
}

// JobLimits bounds the resources of a job. A field that is not positive has its
// default.
type JobLimits struct {
	Time      time.Duration // wall-clock time from start to end; default DefaultTime
	Memory    int64         // bytes, for all processes together with a control group, for each without one; default DefaultMemory
	Processes int           // at the same time; default DefaultProcesses
	FileSize  int64         // bytes per written file; default DefaultFileSize
	Scratch   int64         // bytes in /tmp; default DefaultScratch
	Output    int           // bytes kept of stdout and of stderr each; default DefaultOutput
}

// Default limits.
const (
	DefaultTime      = time.Minute
	DefaultMemory    = 2 << 30
	DefaultProcesses = 256
	DefaultFileSize  = 256 << 20
	DefaultScratch   = 512 << 20
	DefaultOutput    = 100_000
)

// orDefault returns l with unset fields replaced by the defaults.
func (l JobLimits) orDefault() JobLimits {
	l.Time = or(l.Time, DefaultTime)
	l.Memory = or(l.Memory, DefaultMemory)
	l.Processes = or(l.Processes, DefaultProcesses)
	l.FileSize = or(l.FileSize, DefaultFileSize)
	l.Scratch = or(l.Scratch, DefaultScratch)
	l.Output = or(l.Output, DefaultOutput)
	return l
}

func or[N int | int64 | time.Duration](n, fallback N) N {
	if n <= 0 {
		return fallback
	}
	return n
}

// JobOutcome is the result of a job that ran.
type JobOutcome struct {
	Stdout, Stderr Output
	ExitCode       int  // 128 + signal number when a signal ended it
	TimedOut       bool // killed at its time limit
	OutOfMemory    bool // the kernel killed one of its processes for lack of memory; needs a control group to be known
}

// Truncated reports whether a part of the output is missing.
func (o JobOutcome) Truncated() bool { return o.Stdout.Omitted > 0 || o.Stderr.Omitted > 0 }

// UnavailableError reports that this system cannot isolate a job. Missing names the
// feature or resource that is missing.
type UnavailableError struct {
	Missing string
	layer   string // that needs it; "" if no job gets as far as the first layer
	cause   error
}

// Error implements error.
func (e *UnavailableError) Error() string { return "no sandbox: " + e.Detail() }

// Detail returns what is missing and, if known, the cause.
func (e *UnavailableError) Detail() string {
	if e.cause == nil {
		return e.Missing
	}
	return e.Missing + ": " + e.cause.Error()
}

// Unwrap returns the cause, nil if there is none.
func (e *UnavailableError) Unwrap() error { return e.cause }

func errNotEntered() error {
	return &UnavailableError{Missing: "this program does not call rolecall.Enter, or sandbox.Enter, first in main, so it cannot run programs"}
}

var errListenUnsandboxed = errors.New("start sandbox job: Listen needs a sandbox")

var errArgvOrProgram = errors.New("start sandbox job: set exactly one of Argv and Program")

// unsandboxedEnv returns the base environment of an unsandboxed job. Nothing
// else of this process is passed on, since it may hold secrets.
func unsandboxedEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", "TERM=dumb"}
}

// Package sandbox owns running programs that nobody trusts: a command of a
// model, or this binary's own code over a model's data.
//
// A program that wants sandboxes begins its main with Enter, which gives the
// Launcher:
//
//	func main() {
//		launcher := sandbox.Enter(nil)
//		…
//		out, err := launcher.Run(ctx, sandbox.Job{Argv: []string{"ls"}, Workspace: dir})
//
// A job is this same binary, started again in namespaces of its own; Enter
// notices, builds the walls around itself and starts the program inside:
//
//  1. user, mount, pid, network, ipc and uts namespaces: no other process, no
//     network but an empty loopback
//  2. control groups for processes and memory, where there are any to be had
//  3. a root of its own: system directories read-only, a scratch /tmp, and the
//     workspace at /workspace; nothing else of the host exists
//  4. resource limits
//  5. Landlock: only /workspace and /tmp can be written
//  6. no capability, no way to gain one
//  7. seccomp: no system call that makes namespaces, mounts, or reaches
//     rarely trodden parts of the kernel
//
// If one of these cannot be had the job is not started and the error says
// which. The first process of a job stays ours: the kernel ends it with the
// process that started the job, and with it all others.
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

// Where a job finds its things.
const (
	Workspace = "/workspace"
	Scratch   = "/tmp"
)

// Launcher starts jobs. Only Enter makes one: a process without it could not
// become a job. It is safe for concurrent use.
type Launcher struct {
	entered bool
	running chan struct{} // holds a token for each job of Run; more wait
	jobs    atomic.Uint64 // started so far: numbers their control groups
	swept   sync.Once     // control groups of processes that were killed are removed
}

// Program is code of this binary that can be a job. It gets what the starter
// writes, and gives what the starter reads. Inside there are no files, and no
// network.
type Program func(in io.Reader, out io.Writer) error

// Job is one program to run. Exactly one of Argv and Program is set.
type Job struct {
	Argv    []string // the program, found in the PATH, and its arguments
	Program string   // a program given to Enter

	Workspace     string      // the host's directory that is /workspace; "" is none
	WorkspaceInfo fs.FileInfo `json:"-"` // which directory that is; nil is the one that is there at the start
	ReadOnly      bool        // the workspace cannot be written
	Readable      []string    // further absolute directories of the host, read-only at their place
	Env           []string    // further variables, as NAME=value

	Limits Limits

	// Unsandboxed runs the job without walls, with all the rights of this process;
	// only the limits of one process, the deadline and the caps of the output
	// hold. It is the operator's word alone.
	Unsandboxed bool
}

// Limits bound a job. The zero Limits are the defaults.
type Limits struct {
	Time      time.Duration // from start to end; 0 is DefaultTime
	Memory    int64         // bytes: of all processes with a control group, of each without; 0 is DefaultMemory
	Processes int           // at one time; 0 is DefaultProcesses
	FileSize  int64         // bytes of a file written; 0 is DefaultFileSize
	Scratch   int64         // bytes in /tmp; 0 is DefaultScratch
	Output    int           // bytes kept of stdout, and of stderr; 0 is DefaultOutput
}

// The limits of jobs that state none.
const (
	DefaultTime      = time.Minute
	DefaultMemory    = 2 << 30
	DefaultProcesses = 256
	DefaultFileSize  = 256 << 20
	DefaultScratch   = 512 << 20
	DefaultOutput    = 100_000
)

// orDefault fills in what l leaves open.
func (l Limits) orDefault() Limits {
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

// Outcome is how a job ended.
type Outcome struct {
	Stdout, Stderr Output
	ExitCode       int  // 128 + the signal's number when a signal ended it
	TimedOut       bool // it was ended because its time was over
	OutOfMemory    bool // a process of it was ended because memory was over, as far as is known
}

// Unavailable says that this system cannot run a job inside walls. Missing
// names what is not there.
type Unavailable struct {
	Missing string
	cause   error
}

// Error says what is missing and, if known, what the system said.
func (e *Unavailable) Error() string { return "no sandbox: " + e.Detail() }

// Detail is Error without its first words.
func (e *Unavailable) Detail() string {
	if e.cause == nil {
		return e.Missing
	}
	return e.Missing + ": " + e.cause.Error()
}

// Unwrap gives what the system said.
func (e *Unavailable) Unwrap() error { return e.cause }

func errNotEntered() error {
	return &Unavailable{Missing: "this program does not begin with sandbox.Enter, and so cannot become a job"}
}

var errArgvOrProgram = errors.New("start a job: it takes exactly one of Argv and Program")

// openEnvironment is what an open job knows of ours: where programs are.
func openEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", "TERM=dumb"}
}

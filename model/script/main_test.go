package script_test

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/js/jsworker"
	"github.com/rolecall/rolecall/model/script"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(map[string]sandbox.Program{jsworker.Program: jsworker.Serve})
	os.Exit(m.Run())
}

// workers are the worker processes of a test.
type workers struct {
	*script.WorkerPool
	sent func(process *sandbox.Process, line string) // called for each request, if it is set

	mu   sync.Mutex
	list []*sandbox.Process
}

// newWorkers returns a pool of processes, with or without a sandbox.
func newWorkers(t testing.TB, sandboxed bool) *workers {
	t.Helper()
	job := sandbox.Job{Program: jsworker.Program, Limits: sandbox.JobLimits{Memory: 1 << 30}, Unsandboxed: !sandboxed, Stderr: os.Stderr}
	w := new(workers)
	w.WorkerPool = script.NewWorkerPool(func() (script.WorkerConn, error) {
		p, err := launcher.StartProcess(job)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.list = append(w.list, p)
		return watchedConn{p, w.sent}, nil
	})
	t.Cleanup(w.Close)
	return w
}

// processes returns the processes started so far.
func (w *workers) processes() []*sandbox.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}

// watchedConn reports requests after they were sent.
type watchedConn struct {
	*sandbox.Process
	sent func(process *sandbox.Process, line string)
}

func (c watchedConn) Write(line []byte) (int, error) {
	n, err := c.Process.Write(line)
	if c.sent != nil {
		c.sent(c.Process, string(line))
	}
	return n, err
}

// requireSandbox skips a test where the system has no sandbox.
func requireSandbox(t testing.TB) {
	t.Helper()
	_, err := launcher.Run(t.Context(), sandbox.Job{Argv: []string{"true"}})
	if missing, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		t.Skip("no sandbox on this system: ", missing)
	}
}

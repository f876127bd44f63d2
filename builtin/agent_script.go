package builtin

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/js/jsworker"
)

// agentScriptLimits bound a worker process of agent scripts. The pool keeps its resident memory
// much lower: the limit also counts what the process reserves and does not use.
var agentScriptLimits = sandbox.JobLimits{Memory: 1 << 30, Processes: 64, FileSize: 1, Scratch: 1 << 20}

// NewScriptStarter returns a function for script.NewWorkerPool that starts worker processes in
// the sandbox. Where the system has no sandbox they are plain processes, and log receives a
// warning once. The program begins main with sandbox.Enter(builtin.SandboxPrograms()).
func NewScriptStarter(l *sandbox.Launcher, log *slog.Logger) func() (jsworker.Conn, error) {
	return (&scriptStarter{launcher: l, log: log}).start
}

// scriptStarter starts the worker processes of agent scripts.
type scriptStarter struct {
	launcher *sandbox.Launcher
	log      *slog.Logger
	warn     sync.Once

	mu        sync.Mutex // guards the following
	sandboxed bool       // a worker was started in the sandbox, so none is started without it
}

// start starts a worker process.
func (s *scriptStarter) start() (jsworker.Conn, error) {
	job := sandbox.Job{Program: jsworker.Program, Limits: agentScriptLimits}
	p, err := s.launcher.StartProcess(job)
	if missing, ok := errors.AsType[*sandbox.UnavailableError](err); ok && s.mayLeaveSandbox() {
		s.warn.Do(func() {
			s.log.Warn("agent scripts run in processes without a sandbox, with the rights of this process", "missing", missing.Detail())
		})
		job.Unsandboxed = true
		return connection(s.launcher.StartProcess(job))
	}
	if err == nil {
		s.mu.Lock()
		s.sandboxed = true
		s.mu.Unlock()
	}
	return connection(p, err)
}

// mayLeaveSandbox reports whether no worker was started in the sandbox so far.
func (s *scriptStarter) mayLeaveSandbox() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.sandboxed
}

// connection returns a process as a connection: an interface with a nil *Process is not nil.
func connection(p *sandbox.Process, err error) (jsworker.Conn, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

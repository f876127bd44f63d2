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
// the sandbox. Where the system has no sandbox they are plain processes. Where a program cannot
// start itself, for example because it does not call sandbox.Enter, scripts run in this process.
// log receives the warning of each of these two ways when it is first used.
//
// The program begins main with sandbox.Enter(builtin.SandboxPrograms()).
func NewScriptStarter(l *sandbox.Launcher, log *slog.Logger) func() (jsworker.Conn, error) {
	process := func(job sandbox.Job) func() (jsworker.Conn, error) {
		job.Program, job.Limits = jsworker.Program, agentScriptLimits
		return func() (jsworker.Conn, error) { return connection(l.StartProcess(job)) }
	}
	return newScriptStarter(log,
		startingWay{start: process(sandbox.Job{})},
		startingWay{process(sandbox.Job{Unsandboxed: true}), "agent scripts run in processes without a sandbox, with the rights of this process"},
		startingWay{jsworker.StartInProcess, jsworker.InProcessWarning},
	).start
}

// scriptStarter starts the workers of agent scripts in the best way that works.
type scriptStarter struct {
	log  *slog.Logger
	ways []startingWay // the best first

	mu   sync.Mutex // guards used
	used int        // the best way that has worked; no worse one is used later
}

// newScriptStarter returns a starter of which no way has been used.
func newScriptStarter(log *slog.Logger, ways ...startingWay) *scriptStarter {
	return &scriptStarter{log: log, ways: ways, used: len(ways)}
}

// startingWay is one way to start a worker, and what to warn of.
type startingWay struct {
	start   func() (jsworker.Conn, error)
	warning string
}

// start starts a worker.
func (s *scriptStarter) start() (jsworker.Conn, error) {
	var missing *sandbox.UnavailableError
	for i, way := range s.ways {
		conn, err := way.start()
		if err == nil {
			s.noteUse(i, missing)
			return conn, nil
		}
		if !errors.As(err, &missing) || !s.mayUse(i+1) {
			return nil, err
		}
	}
	return nil, missing
}

// mayUse reports whether no better way has worked so far.
func (s *scriptStarter) mayUse(way int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return way <= s.used && way < len(s.ways)
}

// noteUse notes a way that has worked, and warns of it the first time. missing is why the way before
// it has not worked.
func (s *scriptStarter) noteUse(way int, missing *sandbox.UnavailableError) {
	s.mu.Lock()
	first := way < s.used
	s.used = min(s.used, way)
	s.mu.Unlock()
	if warning := s.ways[way].warning; first && warning != "" {
		s.log.Warn(warning, "missing", missing.Detail())
	}
}

// connection returns a process as a connection. With an error it returns nil, and not a connection that
// holds a nil *Process.
func connection(p *sandbox.Process, err error) (jsworker.Conn, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

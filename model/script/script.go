// Package script provides models written as JavaScript generators, which need no API key
// and no network.
//
//	role("root", function* (task) {
//	  const file = yield call("read_file", {path: "notes.txt"});
//	  if (file.error) return "there are no notes";
//	  yield say("reading");
//	  return file.content.length;
//	});
//
// docs/agent-scripts.md describes the language for authors. In Go:
//
//	m, err := script.New("agents.js", source)
//	defer m.Close()
//
// A script is a pure function of its conversation: it has no clock, no randomness and no
// I/O. Each Request replays the conversation: recorded results answer its calls, and recorded
// messages its receives. say and console.log have no effect in recorded steps. A script that
// yields something other than what is recorded fails with script_diverged. The virtual
// machine of a script is kept for the next Request, but only as a cache.
//
// With Config.Workers scripts run in worker processes. The agents of one Model share at most one
// for each processor, and each has a virtual machine of its own. A worker that hangs or dies is
// replaced. Only the agent whose step it was fails; for the others the conversation is replayed.
//
// The package calls no tool: what a script yields is a proposal to the runtime.
package script

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js"
	"github.com/rolecall/rolecall/internal/js/jsworker"
	"github.com/rolecall/rolecall/model"
)

// Config limits what scripts may use. The zero Config has the defaults.
type Config struct {
	StepTimeout time.Duration // for one step of a script; 0 is 5 seconds
	Memory      int           // bytes for each agent's script; 0 is 64 MiB
	CacheSize   int           // agents whose virtual machine is kept between requests; 0 is 1,024, or 64 without Workers; negative keeps none

	// Workers runs the scripts in worker processes. Nil runs them in this process: a script that
	// never returns from a built-in function then occupies a processor for ever, and a fault of
	// the engine ends the process.
	Workers *WorkerPool

	// CheckLater makes New return a Model whose source has not run. The first Generate or Roles
	// runs it, and every Generate returns the error that New would have returned.
	CheckLater bool

	Log *slog.Logger // receives a warning without Workers; nil is slog.Default
}

// WorkerPool starts the processes that run scripts and bounds the memory of all of them together.
// Several Models may share one. Close it after them.
type WorkerPool = jsworker.VMPool

// WorkerConn is the connection to a worker process.
type WorkerConn = jsworker.Conn

// NewWorkerPool returns a pool. It calls start for each process. builtin.NewScriptStarter returns
// such a function, which uses the sandbox.
func NewWorkerPool(start func() (WorkerConn, error)) *WorkerPool { return jsworker.NewVMPool(start) }

// Model is a model.Model of the scripts in one source. It is safe for concurrent use.
type Model struct {
	name    string
	check   func() error // runs the source once, which sets roles
	roles   []string     // those that have a script, in the order of the source
	group   *jsworker.VMGroup
	ownPool *jsworker.VMPool // of the group, if it is not shared; else nil
	cache   *cache

	use    sync.RWMutex // held for reading while Generate runs, so that Close waits for it
	closed bool         // guarded by use
}

// New returns a Model that runs source. Errors mention name, for example a file name. Close
// the Model after use.
//
// An error has the code invalid_config and the line, if the source is not JavaScript or
// throws at its top level. A source without a role is an error too.
func New(name string, source []byte) (*Model, error) {
	return Config{}.New(name, source)
}

// New is the function New with limits.
func (c Config) New(name string, source []byte) (*Model, error) {
	m := &Model{name: name}
	workers, size := c.Workers, defaultCacheSize
	if workers == nil {
		c.warnInProcess(name)
		m.ownPool = jsworker.NewInProcessPool()
		workers, size = m.ownPool, inProcessCacheSize
	}
	m.cache = newCache(cmp.Or(c.CacheSize, size))
	m.group = workers.NewVMGroup(js.Limits{Memory: c.Memory, Time: c.StepTimeout, Pure: true},
		jsworker.Script{Source: prelude}, jsworker.Script{Name: name, Source: string(source)})
	m.check = sync.OnceValue(m.readRoles)
	if c.CheckLater {
		return m, nil
	}
	if err := m.check(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// warnInProcess logs what it means that scripts run in this process.
func (c Config) warnInProcess(name string) {
	log := c.Log
	if log == nil {
		log = slog.Default()
	}
	log.Warn(jsworker.InProcessWarning, "file", name)
}

// readRoles loads the source once, which validates it, and sets the roles that it defines.
func (m *Model) readRoles() error {
	ctx := context.Background()
	vm, err := m.group.Load(ctx, nil)
	if err != nil {
		return errcode.New(errcode.InvalidConfig, "%s", m.inSource(err))
	}
	defer vm.Close()
	text, err := vm.CallFunction(ctx, "rolecall.roles", nil)
	if err == nil {
		err = json.Unmarshal(text, &m.roles)
	}
	if err != nil {
		return errcode.New(errcode.InvalidConfig, "%s", m.inSource(err))
	}
	if len(m.roles) == 0 {
		return errcode.New(errcode.InvalidConfig, `%s: no script: define one with role("root", function* (task) {…})`, m.name)
	}
	return nil
}

// Roles returns the roles that have a script, in the order of the source. "*" is the
// default of all others. It returns none if the source is invalid (Config.CheckLater).
func (m *Model) Roles() []string {
	_ = m.check() // Generate returns the error
	return slices.Clone(m.roles)
}

// Generate implements model.Model. It yields one AnswerDelta with the answer of the next step. The
// runtime adds ids to the calls of the Answer and otherwise records it unchanged.
//
// An error has the code script_diverged if the script yields something other than what is
// recorded. It has the code llm_call_failed if there is no script for the role. It also has
// this code if the script throws, exceeds a limit or yields an invalid value. Errors of a script
// have the details step and read. step is the number of the answer in the conversation, from 1. read
// is the number of messages that were received. A failed turn is over. Record it as an
// Answer with Finish End and the number read in MessagesRead. The next message then starts
// the script again.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		answer, err := m.answer(ctx, r)
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		yield(model.AnswerDelta{Answer: answer}, nil)
	}
}

// Close waits until no Generate runs. It ends the workers of this Model, and the pool if it is not
// shared. Generate returns an error after it. Close may be called twice.
func (m *Model) Close() error {
	m.use.Lock()
	defer m.use.Unlock()
	m.closed = true
	m.cache.clear()
	m.group.Close()
	if m.ownPool != nil {
		m.ownPool.Close()
	}
	return nil
}

// maxAttempts bounds how often one request starts its script. From the second time on the script
// has its worker alone, so it is lost again only when something else kills the worker.
const maxAttempts = 3

// answer replays the conversation and returns the answer of the live step. While it works,
// no other request can use the run. If its virtual machine is lost, for example because another
// script ended their worker, a new run replays the conversation again.
func (m *Model) answer(ctx context.Context, r model.Request) (*model.Answer, error) {
	m.use.RLock()
	defer m.use.RUnlock()
	if m.closed {
		return nil, errcode.New(errcode.LLMCallFailed, "model %s is closed", m.name)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	run := m.runFor(r)
	answer, err := run.replay(ctx)
	for attempt := 2; errors.Is(err, jsworker.ErrLost) && attempt <= maxAttempts; attempt++ {
		run.close()
		run = newRun(m, r)
		run.alone = true
		answer, err = run.replay(ctx)
	}
	if errors.Is(err, jsworker.ErrLost) {
		err = run.scriptError(errcode.Wrap(errcode.LLMCallFailed, err, "its worker process ended again and again"))
	}
	if err != nil || answer.Finish.EndsTurn() || run.vm == nil {
		run.close()
		return answer, err
	}
	run.vm.ShareWorker()
	m.cache.put(r.Self.ID, run)
	return answer, nil
}

// runFor returns the cached run of r's agent if it can continue with r, else a new one.
func (m *Model) runFor(r model.Request) *run {
	cached := m.cache.take(r.Self.ID)
	if cached != nil && cached.resumeFrom(r) {
		return cached
	}
	if cached != nil {
		cached.close()
	}
	return newRun(m, r)
}

//go:embed prelude.js
var prelude string

// hasRole reports whether there is a script for a role, its own or the default.
func (m *Model) hasRole(role string) bool {
	return slices.Contains(m.roles, role) || slices.Contains(m.roles, "*")
}

// inSource returns an error's text with the name of the source at the beginning.
func (m *Model) inSource(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		text = e.Message
	}
	if strings.HasPrefix(text, m.name+":") {
		return text
	}
	return m.name + ": " + text
}

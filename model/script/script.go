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
// I/O. Each Request replays the conversation: recorded results answer its calls, messages
// its receives, and say and console.log have no effect in recorded steps. A script that
// yields something other than what is recorded fails with script_diverged. The virtual
// machine of a script is kept for the next Request, but only as a cache.
//
// The package calls no tool: what a script yields is a proposal to the runtime.
package script

import (
	"context"
	_ "embed"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js"
	"github.com/rolecall/rolecall/model"
)

// Config limits what scripts may use. The zero Config has the defaults.
type Config struct {
	StepTimeout time.Duration // for one step of a script; 0 is 5 seconds
	Memory      int           // bytes for each agent's script; 0 is 64 MiB
	CacheSize   int           // agents whose virtual machine is kept between requests; 0 is 64, negative is none
}

// Model is a model.Model of the scripts in one source. It is safe for concurrent use.
type Model struct {
	name   string
	source string
	roles  []string // those that have a script, in the order of the source
	limits js.Limits
	cache  *cache

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
	m := &Model{
		name:   name,
		source: string(source),
		limits: js.Limits{Memory: c.Memory, Time: c.StepTimeout, Pure: true},
		cache:  newCache(c.CacheSize),
	}
	vm, err := m.load()
	if err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "%s", m.locate(err))
	}
	defer vm.Close()
	if m.roles, err = rolesOf(vm); err != nil {
		return nil, err
	}
	if len(m.roles) == 0 {
		return nil, errcode.New(errcode.InvalidConfig, `%s: no script: define one with role("root", function* (task) {…})`, name)
	}
	return m, nil
}

// Roles returns the roles that have a script, in the order of the source. "*" is the
// default of all others.
func (m *Model) Roles() []string { return slices.Clone(m.roles) }

// Generate implements model.Model. It yields one Delta, the answer of the next step. The
// runtime adds ids to the calls of the Answer and otherwise records it unchanged.
//
// An error has the code script_diverged if the script yields something other than what is
// recorded. It has the code llm_call_failed if there is no script for the role, or if the
// script throws, exceeds a limit or yields an invalid value. Both have the details step, the
// number of the answer in the conversation, from 1, and read, the number of messages that
// were received. A failed turn is over: record it as an Answer with Finish End and that
// number in MessagesRead, and the next message starts the script again.
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

// Close waits until no Generate runs and frees the cached virtual machines. Generate returns
// an error after it. Close may be called twice.
func (m *Model) Close() error {
	m.use.Lock()
	defer m.use.Unlock()
	m.closed = true
	m.cache.clear()
	return nil
}

// answer replays the conversation and returns the answer of the live step. While it works,
// no other request can use the run.
func (m *Model) answer(ctx context.Context, r model.Request) (*model.Answer, error) {
	m.use.RLock()
	defer m.use.RUnlock()
	if m.closed {
		return nil, errcode.New(errcode.LLMCallFailed, "model %s is closed", m.name)
	}
	run := m.runFor(r)
	answer, err := run.replay(ctx)
	if err != nil || answer.Finish.EndsTurn() || run.vm == nil {
		run.close()
		return answer, err
	}
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

//go:embed driver.js
var driver string

// load returns a VM that has evaluated the driver and the source.
func (m *Model) load() (*js.VM, error) {
	vm, err := js.New(m.limits)
	if err != nil {
		return nil, err
	}
	err = vm.LoadScript("", driver)
	if err == nil {
		err = vm.LoadScript(m.name, m.source)
	}
	if err != nil {
		vm.Close()
		return nil, err
	}
	return vm, nil
}

// hasRole reports whether there is a script for a role, its own or the default.
func (m *Model) hasRole(role string) bool {
	return slices.Contains(m.roles, role) || slices.Contains(m.roles, "*")
}

// locate returns an error's text with the name of the source at the beginning.
func (m *Model) locate(err error) string {
	if text := err.Error(); strings.HasPrefix(text, m.name+":") {
		return text
	}
	return m.name + ": " + err.Error()
}

// rolesOf returns the roles that the loaded source defines.
func rolesOf(vm *js.VM) (roles []string, err error) {
	text, err := vm.CallFunction(context.Background(), "rolecall.roles", nil)
	if err != nil {
		return nil, err
	}
	return roles, json.Unmarshal(text, &roles)
}

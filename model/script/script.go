// Package script owns the deterministic brains: models written as JavaScript
// generators, without a key and without a network.
//
//	role("root", function* (task) {
//	  const file = yield call("read_file", {path: "notes.txt"});
//	  if (file.error) return "there are no notes";
//	  yield say("reading");
//	  return file.content.length;
//	});
//
// A brain is a pure function of its conversation: it has no clock, no
// randomness and no I/O. With each Request the conversation is fed to it
// again: recorded results answer its calls, messages its receives, and what it
// said and logged before stays silent; a brain that yields something else than
// what is recorded fails with script_diverged. The virtual machine a brain has
// come to is kept for the next Request, but it is a cache: losing it changes
// nothing.
//
// The package calls no tool and knows none: what a brain yields is a proposal.
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

// Config bounds a Model. The zero Config is the default.
type Config struct {
	StepTimeout time.Duration // for one step of a brain; 0 is 5 seconds
	Memory      int           // bytes of one brain; 0 is 64 MiB
	CacheSize   int           // how many brains are kept between requests; 0 is 64, negative is none
}

// Model is a model.Model of the brains in one source. Close it after use.
type Model struct {
	name   string
	source string
	roles  []string // those that have a brain, in order of registration
	limits js.Limits
	cache  *cache

	use    sync.RWMutex // held for reading by each Generate, so that Close waits for them
	closed bool         // guarded by use
}

// New makes a Model of source; name is what errors call it, as a file's name.
// An error carries the code invalid_config and names the line: the source is
// no JavaScript, its top level throws, or no role is in it.
func New(name string, source []byte) (*Model, error) {
	return Config{}.New(name, source)
}

// New is New with limits.
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
		return nil, errcode.New(errcode.InvalidConfig, `%s: no brain: register one with role("root", function* (task) {…})`, name)
	}
	return m, nil
}

// Roles gives the roles that have a brain, "*" for the default, in order of
// registration.
func (m *Model) Roles() []string { return slices.Clone(m.roles) }

// Generate implements model.Model: it yields one Delta, the answer of the next
// step. Calls of an Answer have no id; the runtime gives them one and records
// the Answer as it is.
//
// Errors carry script_diverged when the brain yields something else than what
// is recorded, llm_call_failed when it throws, yields nonsense, takes too long
// or has no brain for the role. Both have the details step, counted over the
// answers of the conversation from 1, and read, the messages taken in until
// then. A turn that failed is over: record it as an Answer with Finish End and
// that Read, and the next message starts the brain anew.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		answer, err := m.answer(ctx, r)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Answer: answer}, nil)
	}
}

// Close frees the brains that are kept, after the running Generates have
// ended. It may be called twice; a later Generate is an error.
func (m *Model) Close() error {
	m.use.Lock()
	defer m.use.Unlock()
	m.closed = true
	m.cache.clear()
	return nil
}

// answer brings the agent's brain to the end of the conversation and gives
// what it wants then. While it works nobody else has the brain.
func (m *Model) answer(ctx context.Context, r model.Request) (*model.Answer, error) {
	m.use.RLock()
	defer m.use.RUnlock()
	if m.closed {
		return nil, errcode.New(errcode.LLMCallFailed, "model %s is closed", m.name)
	}
	b := m.brain(r)
	answer, err := b.replay(ctx)
	if err != nil || answer.Finish == model.FinishEnd || b.vm == nil {
		b.close()
		return answer, err
	}
	m.cache.put(r.Self.ID, b)
	return answer, nil
}

// brain gives the kept brain of r's agent if it can go on with r, else a new
// one.
func (m *Model) brain(r model.Request) *run {
	kept := m.cache.take(r.Self.ID)
	if kept != nil && kept.resumeFrom(r) {
		return kept
	}
	if kept != nil {
		kept.close()
	}
	return newBrain(m, r)
}

//go:embed brain.js
var prelude string

// load makes a VM that has evaluated the source.
func (m *Model) load() (*js.VM, error) {
	vm, err := js.New(m.limits)
	if err != nil {
		return nil, err
	}
	err = vm.Load("", prelude)
	if err == nil {
		err = vm.Load(m.name, m.source)
	}
	if err != nil {
		vm.Close()
		return nil, err
	}
	return vm, nil
}

// hasRole reports whether some brain answers for a role.
func (m *Model) hasRole(role string) bool {
	return slices.Contains(m.roles, role) || slices.Contains(m.roles, "*")
}

// locate makes sure that an error's text begins with a place in the source.
func (m *Model) locate(err error) string {
	if text := err.Error(); strings.HasPrefix(text, m.name+":") {
		return text
	}
	return m.name + ": " + err.Error()
}

func rolesOf(vm *js.VM) (roles []string, err error) {
	text, err := vm.Call(context.Background(), "rolecall.roles", nil)
	if err != nil {
		return nil, err
	}
	return roles, json.Unmarshal(text, &roles)
}

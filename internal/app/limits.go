package app

import (
	"reflect"
	"sync"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/config"
)

// liveLimits is what the configuration lets programs and requests do, asked at each
// call. The zero bounds are those of an organization without a configuration: it lets no
// request out.
type liveLimits struct {
	mu      sync.RWMutex // guards what follows; held for writing while roles that go with it change
	command config.Command
	network builtin.NetworkPolicy
}

// commands is what programs may do now.
func (b *liveLimits) commands() builtin.Commands {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return builtin.Commands{
		Unsandboxed: b.command.Open, Readable: b.command.Readable, Env: b.command.Env,
		Limits: sandbox.Limits(b.command.Limits),
	}
}

// requests is what requests may reach now.
func (b *liveLimits) requests() builtin.NetworkPolicy {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.network
}

// set puts what cfg says in force together with what change does, or neither:
// who asks meanwhile waits, so that a role of one configuration never has the
// reach of another.
func (b *liveLimits) set(cfg *config.Config, change func() error) error {
	command, network := cfg.Command, networkPolicy(cfg.Network)
	command.Pos = config.Pos{}
	b.mu.RLock()
	same := reflect.DeepEqual(command, b.command) && reflect.DeepEqual(network, b.network)
	b.mu.RUnlock()
	if same {
		return change()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := change(); err != nil {
		return err
	}
	b.command, b.network = command, network
	return nil
}

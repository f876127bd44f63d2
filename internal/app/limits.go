package app

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// liveLimits holds the limits of programs and HTTP requests, which tools read at each
// call, and of connections. The zero liveLimits allows no request.
type liveLimits struct {
	mu      sync.RWMutex // guards the fields below; set holds it while the roles change
	command config.Command
	network builtin.NetworkPolicy

	connections atomic.Pointer[gateway.ConnectionLimits] // nil is the default; read without mu
	perMinute   atomic.Int64                             // requests of a caller; 0 is no limit
}

// connectionLimits returns the current limits of TCP connections.
func (b *liveLimits) connectionLimits() gateway.ConnectionLimits {
	if l := b.connections.Load(); l != nil {
		return *l
	}
	return gateway.ConnectionLimits{}
}

// requestsPerMinute returns how many requests a caller may send in a minute; 0 is no limit.
func (b *liveLimits) requestsPerMinute() int { return int(b.perMinute.Load()) }

// setConnections applies the limits of TCP connections, and of the requests of a caller.
func (b *liveLimits) setConnections(cfg *config.Config) {
	b.perMinute.Store(int64(cfg.Gateway.Requests))
	limits := cfg.Organization.Limits
	b.connections.Store(&gateway.ConnectionLimits{
		Total: int(limits.Connections), PerAddress: int(limits.ConnectionsPerAddress), TrustedProxies: cfg.Gateway.TrustedProxies,
	})
}

// commands returns the current limits of programs.
func (b *liveLimits) commands() builtin.CommandConfig {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return builtin.CommandConfig{
		Unsandboxed: b.command.Open, Readable: b.command.Readable, Env: b.command.Env,
		Limits: sandbox.JobLimits(b.command.Limits),
	}
}

// requests returns the current network policy.
func (b *liveLimits) requests() builtin.NetworkPolicy {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.network
}

// set applies the limits of cfg together with change, or neither if change fails.
// Readers block meanwhile, so that a role of one configuration is never combined with
// the limits of another. If the limits stay the same, no reader blocks.
func (b *liveLimits) set(cfg *config.Config, change func() error) error {
	command, network := cfg.Command, networkPolicy(cfg.Network)
	command.Pos = yamldoc.Pos{}
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

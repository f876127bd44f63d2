package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice/announced"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/natsbroker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/rabbitmq"
)

// embeddedBroker is the name of the broker of tool services in a configuration without a document
// of kind broker. It opens no port.
const embeddedBroker = "embedded"

// brokers holds the connections of all brokers. Services with equal brokers share one, so an
// unchanged broker keeps its connections across a reload. register must be called before the
// other methods, which are safe for concurrent use.
type brokers struct {
	kinds    []broker.Kind
	accounts func(broker string) broker.Accounts
	log      *slog.Logger

	mu   sync.Mutex // guards open
	open map[string]*openBroker
}

// openBroker is a connected broker.
type openBroker struct {
	name   string
	driver broker.Driver
	uses   int
}

// register adds the kinds that ship and the kinds of a build.
func (b *brokers) register(more []broker.Kind) error {
	for _, k := range append([]broker.Kind{natsbroker.Kind(), rabbitmq.Kind()}, more...) {
		if slices.Contains(b.listKinds(), k.Name) || k.Check == nil || k.Connect == nil {
			return errcode.New(errcode.InvalidConfig, "register the kind of broker %q: it is registered already, or has no functions", k.Name)
		}
		b.kinds = append(b.kinds, k)
	}
	return nil
}

// listKinds returns the names of the kinds.
func (b *brokers) listKinds() (names []string) {
	for _, k := range b.kinds {
		names = append(names, k.Name)
	}
	return names
}

// findKind returns a kind by name.
func (b *brokers) findKind(name string) (broker.Kind, bool) {
	i := slices.Index(b.listKinds(), name)
	if i < 0 {
		return broker.Kind{}, false
	}
	return b.kinds[i], true
}

// brokerFingerprint returns a digest of what a connection to a broker depends on. It includes its
// password.
func brokerFingerprint(b config.Broker) string {
	password := string(b.Password)
	b.Pos, b.Password, b.Announce = yamldoc.Pos{}, "", config.Announce{}
	text, _ := json.Marshal([]any{b, password}) // texts always marshal
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// driverConfig returns the configuration of a broker as its driver reads it.
func (b *brokers) driverConfig(c config.Broker) broker.Config {
	return broker.Config{
		Name: c.Name, URL: c.URL, User: c.User, Password: string(c.Password), Listen: c.Listen, TLS: broker.TLSFiles(c.TLS),
		Settings: c.Settings, Log: b.log, Accounts: b.accounts(c.Name),
	}
}

// acquire returns the driver of a broker, and what releases it.
func (b *brokers) acquire(c config.Broker) (broker.Driver, func() error, error) {
	fingerprint := brokerFingerprint(c)
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.open[fingerprint]
	if one == nil {
		k, ok := b.findKind(c.Type)
		if !ok {
			return nil, nil, errcode.New(errcode.InvalidConfig, "this build has no broker of type %q", c.Type)
		}
		driver, err := k.Connect(b.driverConfig(c))
		if err != nil {
			return nil, nil, err
		}
		one = &openBroker{name: c.Name, driver: driver}
		if b.open == nil {
			b.open = map[string]*openBroker{}
		}
		b.open[fingerprint] = one
	}
	one.uses++
	return one.driver, sync.OnceValue(func() error { return b.release(fingerprint) }), nil
}

// release ends one use of a broker, and closes it after the last one.
func (b *brokers) release(fingerprint string) error {
	b.mu.Lock()
	one := b.open[fingerprint]
	one.uses--
	if one.uses > 0 {
		b.mu.Unlock()
		return nil
	}
	delete(b.open, fingerprint)
	b.mu.Unlock()
	return one.driver.Close()
}

// disconnectInvalid disconnects, from brokers in this process, the services whose accounts are not
// valid any more, or have other queues.
func (b *brokers) disconnectInvalid() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.open {
		if e, ok := one.driver.(broker.Embedded); ok {
			e.DisconnectInvalid()
		}
	}
}

// connectedServices returns the ids of the services that are connected to brokers in this process,
// by the name of the broker.
func (b *brokers) connectedServices() map[string][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := map[string][]string{}
	for _, one := range b.open {
		if e, ok := one.driver.(broker.Embedded); ok {
			ids[one.name] = append(ids[one.name], e.ConnectedServices()...)
		}
	}
	return ids
}

// accountsInterval is how often watchAccounts checks. Another process may change the keys.
const accountsInterval = 10 * time.Second

// watchAccounts disconnects the services whose keys have expired, until ctx ends.
func (b *brokers) watchAccounts(ctx context.Context) {
	tick := time.NewTicker(accountsInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.disconnectInvalid()
		}
	}
}

// BrokerAddresses returns the addresses HOST:PORT at which brokers in this process accept tool
// services, sorted.
func (a *App) BrokerAddresses() (list []string) {
	a.brokers.mu.Lock()
	defer a.brokers.mu.Unlock()
	for _, one := range a.brokers.open {
		if e, ok := one.driver.(broker.Embedded); ok && e.Address() != "" {
			list = append(list, e.Address())
		}
	}
	slices.Sort(list)
	return list
}

// check returns the problems of the brokers of a configuration.
func (b *brokers) check(cfg *config.Config) (faults []*yamldoc.Error) {
	for _, c := range cfg.Brokers {
		k, ok := b.findKind(c.Type)
		if !ok {
			if c.Type != "" { // else loading has reported it
				faults = append(faults, cfg.ErrorAt(c.Pos, "type", "this build has no broker of type "+strconv.Quote(c.Type), "it has "+strings.Join(b.listKinds(), ", ")))
			}
			continue
		}
		if err := k.Check(b.driverConfig(c)); err != nil {
			faults = append(faults, cfg.ErrorAt(c.Pos, "broker", faultText(err), ""))
		}
		if b.takesPort(cfg, c) {
			faults = append(faults, cfg.ErrorAt(c.Pos, "listen", "a broker with other settings listens on this port", "restart rolecall to change the broker, or choose another port"))
		}
		if !c.Announce.IsOff() && !k.Announces {
			faults = append(faults, cfg.ErrorAt(c.Pos, "announce", "is not available for brokers of type "+strconv.Quote(c.Type), "declare the services with kind: toolService"))
		}
		for _, id := range c.Announce.Allow {
			if err := modules.CheckName(id); err != nil {
				faults = append(faults, cfg.ErrorAt(c.Pos, "announce", "allow: "+errcode.Message(err), ""))
			}
		}
	}
	return faults
}

// takesPort reports whether a broker needs the port of a broker in this process that a change
// replaces. That one listens until the change is installed, and the new one has to listen before.
func (b *brokers) takesPort(cfg *config.Config, c config.Broker) bool {
	stays := map[string]bool{}
	for _, other := range cfg.Brokers {
		stays[brokerFingerprint(other)] = true
	}
	_, port, err := net.SplitHostPort(c.Listen)
	if err != nil { // it opens no port, or its kind reports the mistake
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for fingerprint, one := range b.open {
		e, ok := one.driver.(broker.Embedded)
		if !ok || stays[fingerprint] {
			continue
		}
		if _, taken, _ := net.SplitHostPort(e.Address()); taken == port {
			return true
		}
	}
	return false
}

// accounts authenticates tool services at one embedded broker, by their keys. These are the
// services of the configuration in service that have this broker, and the services that may
// announce themselves there.
type accounts struct {
	*App
	broker string
}

// FindAccount implements broker.Accounts.
func (a *accounts) FindAccount(service, password string) (broker.Queues, bool) {
	active := a.active.Load()
	if active == nil || !a.keys.HasSecret(keystore.Service, service, password) {
		return broker.Queues{}, false
	}
	for _, s := range active.config.ToolServices {
		if s.Name == service {
			if cmp.Or(s.Broker, embeddedBroker) != a.broker {
				return broker.Queues{}, false
			}
			return broker.Queues{Service: s.Name, Request: s.Request, Response: s.Response}, true
		}
	}
	if b, admission := a.announcements.policy.Load().find(service); admission == announced.Rejected || b.Name != a.broker {
		return broker.Queues{}, false
	}
	request, response, ok := protocol.AnnouncedQueues(service)
	return broker.Queues{Service: service, Request: request, Response: response}, ok
}

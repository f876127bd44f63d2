package announced_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/announced"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// store is a modules.OwnerStore in memory.
type store struct {
	mu     sync.Mutex
	values map[toolgroups.GroupOwner][]byte
	writes int
}

func (s *store) ReadValue(_ context.Context, o toolgroups.GroupOwner) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[o], nil
}

func (s *store) WriteValue(_ context.Context, o toolgroups.GroupOwner, v []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[o] = v
	s.writes++
	return nil
}

func (s *store) ListOwners(context.Context) iter.Seq2[toolgroups.GroupOwner, error] {
	return func(func(toolgroups.GroupOwner, error) bool) {}
}

// answering is a broker whose services answer every request at once.
type answering struct{ receive func(broker.Delivery) }

func (b *answering) Open(_ context.Context, _ broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	return &answering{receive}, nil
}
func (b *answering) MaxBytes() int { return 1 << 20 }
func (b *answering) Close() error  { return nil }

func (b *answering) Send(_ context.Context, m broker.Message) (bool, error) {
	b.receive(broker.Delivery{Message: broker.Message{ID: m.ID, Body: []byte(`{"error":null,"response":"done","end_of_stream":true}`)}})
	return true, nil
}

// process is a registry with what it has brought into service.
type process struct {
	t         *testing.T
	registry  *announced.Registry
	store     *store
	pins      *modules.PinStore
	admission announced.Admission
	modules   map[string]*announced.Module
	logs      strings.Builder
}

// start starts a registry. It must be called in a bubble of synctest; the test stops it.
func start(t *testing.T, admission announced.Admission) *process {
	p := &process{t: t, admission: admission, store: &store{values: map[toolgroups.GroupOwner][]byte{}}, modules: map[string]*announced.Module{}}
	p.pins = modules.NewPinStore(p.store)
	p.registry = announced.NewRegistry(announced.Config{
		Admit: func(service string) announced.Admission {
			if service == "rejected" {
				return announced.Rejected
			}
			return p.admission
		},
		Keys: func(service string) ([]string, error) {
			switch service {
			case "keyless":
				return nil, nil
			case "damaged":
				return nil, errors.New("the file is damaged")
			}
			return []string{"key of " + service}, nil
		},
		NewCaller: func(service string) (*toolservice.Module, error) {
			request, response, _ := protocol.AnnouncedQueues(service)
			return toolservice.New(toolservice.Config{
				Service: toolservice.Service{ID: service, Request: request, Response: response},
				Broker:  func() (broker.Driver, func() error, error) { return &answering{}, func() error { return nil }, nil },
			})
		},
		Load: func(ctx context.Context, m *announced.Module) error {
			p.modules[m.Name()] = m
			return m.Provision(ctx)
		},
		Changed: func(string) {}, NameTaken: func(_, tool string) bool { return tool == "taken" }, Pins: p.pins, Log: slog.New(slog.NewTextHandler(&p.logs, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.registry.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

// text returns a tool with a description.
func text(description string) []protocol.AnnouncedTool {
	return []protocol.AnnouncedTool{{Name: "work", Description: description}}
}

// say announces a service and waits until the announcement is handled.
func (p *process) say(service string, change func(*protocol.Announcement)) protocol.Announcement {
	a := protocol.Announcement{
		Service: service, Request: "request:tg:" + service, Response: "response:tg:" + service, Tools: text("first"),
		Instance: "one", Started: time.Now(), Time: time.Now(), Lease: 60,
	}
	if change != nil {
		change(&a)
	}
	p.repeat(a)
	return a
}

// repeat sends an announcement as it is.
func (p *process) repeat(a protocol.Announcement) {
	p.registry.Receive(a.Service, a.Sign("key of "+a.Service))
	synctest.Wait()
}

// tools lists the tools of a service with their descriptions.
func (p *process) tools(service string) (list []string) {
	m := p.modules[service]
	if m == nil {
		return nil
	}
	for _, t := range m.ToolGroups()[0].Tools {
		list = append(list, t.Definition().Name+" "+t.Definition().Description)
	}
	return list
}

// call calls the only tool of a service; "" is without one.
func (p *process) call(service string) string {
	m := p.modules[service]
	if m == nil || len(m.ToolGroups()[0].Tools) == 0 {
		return ""
	}
	r, err := m.ToolGroups()[0].Tools[0].Call(p.t.Context(), tool.Call{ID: "1", Args: json.RawMessage(`{}`)})
	if err != nil || !r.IsError {
		return fmt.Sprint(r.Text, err)
	}
	return string(r.Structured)
}

// want fails unless the call of a service has a result that contains want.
func (p *process) want(when, want string) {
	p.t.Helper()
	if got := p.call("joke"); !strings.Contains(got, want) || want == "" && got != "" {
		p.t.Errorf("%s: %q, want %q", when, got, want)
	}
}

const gone = "does not announce itself now"

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, announced.Accept)
		first := p.say("joke", nil)
		p.want("announced", "done")
		time.Sleep(59 * time.Second)
		p.want("in the lease", "done")
		p.repeat(first) // a copy does not renew it
		time.Sleep(2 * time.Second)
		p.want("after the lease", gone)
		p.repeat(first)
		p.want("after a copy", gone)
		p.say("joke", nil)
		p.want("announced again", "done")
		end := p.say("joke", func(a *protocol.Announcement) { a.End, a.Time = true, a.Time.Add(time.Millisecond) })
		p.want("after the goodbye", gone)
		p.say("joke", func(a *protocol.Announcement) { a.Time = end.Time }) // sent before, arrives later
		p.want("after a late one", gone)
		p.say("joke", func(a *protocol.Announcement) { a.Instance = "two" })
		p.want("another process", "done")
		p.repeat(end) // ends another process only
		p.want("after a copy of the goodbye", "done")
		if p.store.writes != 1 {
			t.Errorf("%d writes, want 1: the definition never changed", p.store.writes)
		}
	})
}

// The instance that was started last says what the tools are. Others only say that the service is
// there.
func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, announced.Accept)
		p.say("joke", func(a *protocol.Announcement) { a.Instance = "old" })
		started, first := time.Now(), p.modules["joke"].ToolGroups()[0].Tools[0]
		time.Sleep(time.Second)
		p.say("joke", func(a *protocol.Announcement) { a.Instance, a.Tools = "new", text("second") })
		p.want("a changed definition", "")
		if r, err := first.Call(t.Context(), tool.Call{ID: "1", Args: json.RawMessage(`{}`)}); err != nil || !strings.Contains(string(r.Structured), "has changed its definition") {
			t.Errorf("a call of the definition before: %s, %v", r.Structured, err)
		}
		time.Sleep(time.Second)
		p.say("joke", func(a *protocol.Announcement) { a.Instance, a.Started = "old", started })
		p.want("the old instance does not bring it back", "")
		p.say("joke", func(a *protocol.Announcement) { a.Instance, a.End = "new", true })
		time.Sleep(time.Second)
		p.say("joke", func(a *protocol.Announcement) { a.Instance, a.Started = "old", started })
		p.want("the new instance has gone", "done")
	})
}

// A service that is started again and again stays available, however many processes it has had.
// What they said is not believed again.
func TestInstances_Restarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, announced.Accept)
		var said []protocol.Announcement
		for i := range 60 {
			said = append(said, p.say("joke", func(a *protocol.Announcement) { a.Instance, a.Lease = fmt.Sprint(i), 600 }))
			p.want(fmt.Sprintf("process %d", i), "done")
			said = append(said, p.say("joke", func(a *protocol.Announcement) {
				a.Instance, a.End, a.Time = fmt.Sprint(i), true, a.Time.Add(time.Millisecond)
			}))
			p.want(fmt.Sprintf("after process %d", i), gone)
			time.Sleep(5 * time.Second)
		}
		for _, a := range said {
			p.repeat(a)
			time.Sleep(2 * time.Second)
		}
		p.want("after copies of all announcements", gone)
	})
}

// What the operator accepted for an MCP server is not accepted for a service that has its name.
func TestQuarantine_DefinitionOfMCPServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, announced.Quarantine)
		mcp, err := mcpclient.PinOf("", &sdk.Tool{Name: "work", Description: "first", InputSchema: map[string]any{"type": "object", "additionalProperties": false}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.pins.UpdateTools(t.Context(), "module:joke", "", []modules.ToolPin{mcp}); err != nil {
			t.Fatal(err)
		}
		if err := p.registry.Restore(t.Context(), "joke"); err != nil {
			t.Fatal(err)
		}
		if got := p.tools("joke"); len(got) > 0 {
			t.Errorf("restored are %q", got)
		}
		p.say("joke", nil)
		p.want("announced", "")
		if got, err := p.pins.ReadPins(t.Context(), "module:joke"); err != nil || len(got.Pending) != 1 {
			t.Errorf("in quarantine are %+v, %v", got.Pending, err)
		}
	})
}

// The number of services is bounded. One that announces itself too late is not in service.
func TestServices_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, announced.Accept)
		for i := range 130 {
			p.say(fmt.Sprint("service-", i), nil)
		}
		list := p.registry.Services()
		if len(list) != 128 || slices.Contains(list, "service-129") || !strings.Contains(p.logs.String(), "there are 128 announced services already") {
			t.Errorf("%d services", len(list))
		}
	})
}

// Services that say as much as they may do not keep another one from being heard.
func TestReceive_IsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, announced.Quarantine)
		p.store.mu.Lock() // the first announcement waits for the disk
		now := time.Now()
		say := func(service string, at time.Time) {
			p.registry.Receive(service, protocol.Announcement{
				Service: service, Request: "request:tg:" + service, Response: "response:tg:" + service, Tools: text("first"),
				Instance: "one", Started: now, Time: at, Lease: 60,
			}.Sign("key of "+service))
		}
		for i := range 20 {
			for n := range 127 {
				say(fmt.Sprint("greedy-", n), now.Add(time.Duration(i)*time.Millisecond))
			}
		}
		say("modest", now)
		p.store.mu.Unlock()
		synctest.Wait()
		if !slices.Contains(p.registry.Services(), "modest") {
			t.Errorf("in service are %d others", len(p.registry.Services()))
		}
	})
}

func TestReceive_Drops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, announced.Accept)
		for _, service := range []string{"rejected", "keyless", "damaged", "a..b", "a b", "", strings.Repeat("x", 65), "*", ">"} {
			p.registry.Receive(service, protocol.Announcement{Service: service, Time: time.Now(), Started: time.Now(), Instance: "one", Lease: 60,
				Request: "request:tg:" + service, Response: "response:tg:" + service}.Sign("key of "+service))
			synctest.Wait()
		}
		if list := p.registry.Services(); len(list) > 0 {
			t.Errorf("in service are %v", list)
		}
		if logs := p.logs.String(); !strings.Contains(logs, "the keys cannot be read") || !strings.Contains(logs, "service=damaged") {
			t.Errorf("logged is %s", logs)
		}
		p.say("joke", func(a *protocol.Announcement) {
			a.Tools = append(a.Tools,
				protocol.AnnouncedTool{Name: "taken"}, protocol.AnnouncedTool{Name: "twice"}, protocol.AnnouncedTool{Name: "twice"},
				protocol.AnnouncedTool{Name: "bad name"}, protocol.AnnouncedTool{Name: "schema", Input: json.RawMessage(`{"type":"array"}`)},
				protocol.AnnouncedTool{Name: "no-object", Input: json.RawMessage(`1`)}, protocol.AnnouncedTool{Name: "effect", Effect: "harmless"},
				protocol.AnnouncedTool{Name: "long", Description: strings.Repeat("x", 9<<10)},
				protocol.AnnouncedTool{Name: "hidden", Description: "a\u200bb"})
		})
		if got := p.tools("joke"); strings.Join(got, ", ") != "work first, hidden ab" {
			t.Errorf("the tools are %q", got)
		}
	})
}

// Property: processes announce, repeat and end in any order. A tool can be called if and only if
// the operator has accepted exactly the definition that the service offers, and the lease of a
// process lasts.
func TestRegistry_AgreesWithModel(t *testing.T) {
	type process struct {
		started, said, ends time.Time
	}
	for seed := range uint64(short.Count(10, 200)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			p := start(t, announced.Quarantine)
			model, accepted, offered := map[string]process{}, "", ""
			var copies []protocol.Announcement
			for step := range 60 {
				time.Sleep(time.Duration(r.IntN(20)+2) * time.Second) // slower than the limit
				now := time.Now()
				switch r.IntN(8) {
				case 0: // the operator accepts
					record, err := p.pins.ReadPins(t.Context(), "module:joke")
					if err != nil {
						t.Fatal(err)
					}
					for _, one := range record.Pending {
						if _, err := p.pins.AcceptTool(t.Context(), one.Owner, one.Name, one.Digest); err != nil {
							t.Fatal(err)
						}
						accepted = one.Offered.Description
					}
				case 1: // a copy
					if len(copies) > 0 {
						p.repeat(copies[r.IntN(len(copies))])
					}
				case 2: // a forged one
					p.registry.Receive("joke", protocol.Announcement{Service: "joke", Request: "request:tg:joke", Response: "response:tg:joke",
						Tools: text("forged"), Instance: "x", Started: now, Time: now, Lease: 60}.Sign("key of other"))
					synctest.Wait()
				default:
					id := fmt.Sprint(r.IntN(3))
					one, known := model[id]
					end := r.IntN(5) == 0
					if !known || now.After(one.ends) {
						one.started = now
					}
					description := fmt.Sprint("version ", r.IntN(2))
					copies = append(copies, p.say("joke", func(a *protocol.Announcement) {
						a.Instance, a.Started, a.End, a.Tools, a.Lease = id, one.started, end, text(description), 60
					}))
					if one.said, one.ends = now, now.Add(time.Minute); end {
						one.ends = now
					}
					if end && p.modules["joke"] == nil {
						continue // a goodbye of a service that was not there
					}
					model[id] = one
					leads := !end
					for other, o := range model {
						leads = leads && (other == id || !now.Before(o.ends) || !o.started.After(one.started))
					}
					if leads {
						offered = description
					}
				}
				alive := false
				for _, one := range model {
					alive = alive || time.Now().Before(one.ends)
				}
				want := ""
				switch {
				case accepted == "" || accepted != offered:
				case alive:
					want = "done"
				default:
					want = gone
				}
				p.want(fmt.Sprintf("seed %d, step %d", seed, step), want)
				if t.Failed() {
					return
				}
			}
		})
	}
}

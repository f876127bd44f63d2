package main

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/tool"
)

// absent is a model that is thinking until the house is closed.
type absent struct{}

// Generate implements model.Model.
func (absent) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		<-ctx.Done()
		yield(model.Delta{}, ctx.Err())
	}
}

// society is a house with a task whose top agent is at work for ever.
type society struct {
	*house
	top   identity.AgentID
	calls atomic.Uint64
	close func()
}

// call is a tool call of the top agent with an id of its own, as the runtime
// gives them.
func (s *society) call() tool.Call {
	id := identity.DeriveAt(time.Now(), string(s.top), strconv.FormatUint(s.calls.Add(1), 10))
	return tool.Call{ID: identity.CallID(id), By: identity.ByAgent(s.top)}
}

func newSociety(store journal.Store) *society {
	h := made(newHouse(store, absent{}))
	id := made(h.StartTask(context.Background(), org.TaskSpec{Role: string(h.role), Text: question, Caller: operator}))
	task, _ := h.Org().Task(id)
	return &society{house: h, top: task.Top, close: func() { h.Close() }}
}

// made gives what cannot fail in a benchmark.
func made[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

var brief = org.TaskBrief{Objective: "tell the weather", Constraints: org.Lines{}, Inputs: "a city", Outputs: "a sentence", CompletionCriteria: "the sentence is told"}

func (s *society) spawn(first json.RawMessage) identity.AgentID {
	return made(s.SpawnAgent(context.Background(), s.call(), org.Spawn{Role: s.role, Brief: brief}, first)).ID
}

// spawnComparison holds a spawned agent, with its permission check and its
// record, against a goroutine with a mailbox.
func spawnComparison() (comparison, error) {
	return comparison{title: "spawn in memory", goals: []goal{{part: "spawn", claim: "a spawn in memory, CPU", of: 1, within: time.Microsecond}}, candidates: []candidate{
		{"a goroutine with a channel, in a map", 20_000, func(n int) {
			mailboxes := map[int]chan string{}
			for i := range n {
				box := make(chan string, 1)
				mailboxes[i] = box
				go func() { <-box }()
			}
			for _, box := range mailboxes {
				close(box)
			}
		}},
		{"rolecall Spawn", 5_000, func(n int) {
			s := newSociety(memory.New())
			defer s.close()
			for range n {
				s.spawn(nil)
			}
		}},
	}}, nil
}

// spawners is how many agents spawn at once in durableComparison.
const spawners = 64

// durableComparison is spawnComparison on a disk.
func durableComparison() (comparison, error) {
	return comparison{title: "spawn on disk, 64 spawners at once", goals: []goal{{part: "spawn", claim: "a spawn on disk, 64 spawners at once", of: 1, within: 15 * time.Microsecond}}, candidates: []candidate{
		{"one write of 512 bytes and one fsync", 50, func(n int) {
			onDisk(func(dir string) {
				f := made(os.Create(filepath.Join(dir, "raw")))
				defer f.Close()
				for range n {
					made(f.Write(make([]byte, 512)))
					made(0, f.Sync())
				}
			})
		}},
		{"rolecall Spawn", 100 * spawners, func(n int) {
			onDisk(func(dir string) {
				store := made(persist.Open(dir))
				defer store.Close()
				s := newSociety(store)
				defer s.close()
				together(func() {
					for range n / spawners {
						s.spawn(nil)
					}
				})
			})
		}},
	}}, nil
}

func together(spawn func()) {
	var all sync.WaitGroup
	for range spawners {
		all.Go(spawn)
	}
	all.Wait()
}

func onDisk(run func(dir string)) {
	dir := made(os.MkdirTemp(".", "bench-"))
	defer os.RemoveAll(dir)
	run(dir)
}

// messageComparison holds a message from agent to agent, checked, recorded and
// in the other's inbox, against a handover between two goroutines that checks
// and keeps nothing.
func messageComparison() (comparison, error) {
	s := newSociety(memory.New())
	child := s.spawn(json.RawMessage(`"begin"`))
	payload := json.RawMessage(`{"text":"` + question + `"}`)
	return comparison{title: "message from agent to agent, one way", candidates: []candidate{
		{"unbuffered channel between two goroutines", 500_000, handover(0)},
		{"channel with 64 places", 500_000, handover(64)},
		{"rolecall: the permission check", 500_000, func(n int) {
			for range n {
				if err := s.Org().MayMessage(s.top, child); err != nil {
					panic(err)
				}
			}
		}},
		{"rolecall: Send", 20_000, func(n int) {
			fresh := newSociety(memory.New())
			defer fresh.close()
			to := string(fresh.spawn(json.RawMessage(`"begin"`)))
			for range n {
				made(fresh.SendMessage(context.Background(), fresh.call(), to, payload, 0))
			}
		}},
	}}, nil
}

func handover(places int) func(n int) {
	return func(n int) {
		box := make(chan json.RawMessage, places)
		done := make(chan int)
		go func() {
			got := 0
			for m := range box {
				got += len(m)
			}
			done <- got
		}()
		payload := json.RawMessage(`{}`)
		for range n {
			box <- payload
		}
		close(box)
		sink.Add(uint64(<-done))
	}
}

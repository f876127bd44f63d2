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

// waitingModel is a model that never answers until the runtime is closed.
type waitingModel struct{}

// Generate implements model.Model.
func (waitingModel) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		<-ctx.Done()
		yield(model.AnswerDelta{}, ctx.Err())
	}
}

// taskFixture is a fixture with a task whose top agent stays active.
type taskFixture struct {
	*fixture
	top   identity.AgentID
	calls atomic.Uint64
	close func()
}

// call returns a tool call of the top agent with a unique id, derived as the runtime
// derives them.
func (s *taskFixture) call() tool.Call {
	id := identity.DeriveIDAt(time.Now(), string(s.top), strconv.FormatUint(s.calls.Add(1), 10))
	return tool.Call{ID: identity.CallID(id), By: identity.ByAgent(s.top)}
}

func newTaskFixture(store journal.Store) *taskFixture {
	fx := must(newFixture(store, waitingModel{}))
	id := must(fx.StartTask(context.Background(), org.TaskSpec{Role: string(fx.role), Text: question, Caller: operator}))
	task, _ := fx.Org().TaskByID(id)
	return &taskFixture{fixture: fx, top: task.Top, close: func() { fx.Close() }}
}

// must returns v and panics on an error.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

var brief = org.TaskBrief{Objective: "tell the weather", Constraints: org.TextLines{}, Inputs: "a city", Outputs: "a sentence", CompletionCriteria: "the sentence is complete"}

func (s *taskFixture) spawn(first json.RawMessage) identity.AgentID {
	return must(s.SpawnAgent(context.Background(), s.call(), org.SpawnSpec{Role: s.role, Brief: brief}, first)).ID
}

// spawnComparison compares a spawned agent, with its permission check and its record,
// with a goroutine that has a channel.
func spawnComparison() (comparison, error) {
	return comparison{title: "spawn in memory", goals: []goal{{part: "spawn", claim: "a spawn in memory, CPU", candidate: 1, maxTime: time.Microsecond}}, candidates: []candidate{
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
		{"rolecall SpawnAgent", 5_000, func(n int) {
			s := newTaskFixture(memory.New())
			defer s.close()
			for range n {
				s.spawn(nil)
			}
		}},
	}}, nil
}

// spawners is the number of concurrent spawners in durableComparison.
const spawners = 64

// durableComparison is spawnComparison on a disk.
func durableComparison() (comparison, error) {
	return comparison{title: "spawn on disk, 64 spawners at once", goals: []goal{{part: "spawn", claim: "a spawn on disk, 64 spawners at once", candidate: 1, maxTime: 15 * time.Microsecond}}, candidates: []candidate{
		{"one write of 512 bytes and one fsync", 50, func(n int) {
			withDiskDir(func(dir string) {
				f := must(os.Create(filepath.Join(dir, "raw")))
				defer f.Close()
				for range n {
					must(f.Write(make([]byte, 512)))
					must(0, f.Sync())
				}
			})
		}},
		{"rolecall SpawnAgent", 100 * spawners, func(n int) {
			withDiskDir(func(dir string) {
				store := must(persist.Open(dir))
				defer store.Close()
				s := newTaskFixture(store)
				defer s.close()
				runSpawners(func() {
					for range n / spawners {
						s.spawn(nil)
					}
				})
			})
		}},
	}}, nil
}

// runSpawners runs a function concurrently in all spawners.
func runSpawners(spawn func()) {
	var all sync.WaitGroup
	for range spawners {
		all.Go(spawn)
	}
	all.Wait()
}

// withDiskDir runs a function with a temporary directory below the current one.
func withDiskDir(run func(dir string)) {
	dir := must(os.MkdirTemp(".", "bench-"))
	defer os.RemoveAll(dir)
	run(dir)
}

// messageComparison compares a message between agents, which is checked, recorded and
// delivered to an inbox, with a channel between two goroutines.
func messageComparison() (comparison, error) {
	s := newTaskFixture(memory.New())
	child := s.spawn(json.RawMessage(`"begin"`))
	payload := json.RawMessage(`{"text":"` + question + `"}`)
	return comparison{title: "message from agent to agent, one way", candidates: []candidate{
		{"unbuffered channel between two goroutines", 500_000, channelSend(0)},
		{"channel with a buffer of 64", 500_000, channelSend(64)},
		{"rolecall: the permission check", 500_000, func(n int) {
			for range n {
				if err := s.Org().MayMessage(s.top, child); err != nil {
					panic(err)
				}
			}
		}},
		{"rolecall: SendMessage", 20_000, func(n int) {
			fresh := newTaskFixture(memory.New())
			defer fresh.close()
			to := string(fresh.spawn(json.RawMessage(`"begin"`)))
			for range n {
				must(fresh.SendMessage(context.Background(), fresh.call(), to, payload, 0))
			}
		}},
	}}, nil
}

// channelSend sends n messages over a channel to a goroutine that reads them.
func channelSend(buffer int) func(n int) {
	return func(n int) {
		box := make(chan json.RawMessage, buffer)
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

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/identity"
	verdicts "github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/tool"
)

// What an organization on a disk has to bear.
const (
	loadGoal    = 10_000 // a second
	latencyGoal = 20 * time.Millisecond
)

// How long each kind of load is looked at, and how long it runs before.
const (
	loadTime = 5 * time.Second
	loadWarm = time.Second
)

// burden is a load: a model, and what is done with a house that has it.
type burden func(m *meter) (model.Model, func(*house))

// loads lists what is asked of an organization at once.
var loads = []struct {
	claim string
	goal  bool
	burden
}{
	{"messages a second, 64 senders, on disk when sent", true, gossip(spawners)},
	{"messages a second, 256 senders", false, gossip(4 * spawners)},
	{"messages a second, 256 pairs, sent and taken", false, letters(4 * spawners)},
	{"audited calls a second, 64 agents, one an answer", true, errands(spawners, 1)},
	{"audited calls a second, 64 agents, eight an answer", false, errands(spawners, 8)},
	{"audited calls a second, 256 agents, one an answer", false, errands(4*spawners, 1)},
}

// load shows what an organization on a disk bears, and how long each piece of
// work waits for its record.
func load(w *tabwriter.Writer) {
	dir, kind, err := disk()
	made(0, errors.Join(err, os.RemoveAll(dir)))
	fmt.Fprintf(w, "on %s\ta second\tmedian\t99 of 100\tlongest\tCPU each\n", kind)
	var lines []verdicts.Result
	raw := syncing()
	fmt.Fprintf(w, "writes of %d bytes with an fsync each%s\n", recordBytes, raw)
	for _, l := range loads {
		s := bear(l.burden)
		fmt.Fprintf(w, "%s%s\n", l.claim, s)
		if l.goal {
			lines = append(lines, s.lines(l.claim, raw)...)
		}
	}
	w.Flush()
	say(lines...)
}

// seen is what a meter has seen.
type seen struct {
	rate float64
	took []time.Duration // sorted
	cpu  time.Duration   // each
}

// String gives the cells of a row.
func (s seen) String() string {
	return fmt.Sprintf("\t%.0f\t%v\t%v\t%v\t%v", s.rate, s.at(0.5), s.at(0.99), s.at(1), s.cpu)
}

func (s seen) at(part float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	return s.took[min(len(s.took)-1, int(part*float64(len(s.took))))].Round(10 * time.Microsecond)
}

// lines gives what became of the goals. A record waits for the commit under
// way and then for its own: on a disk that needs too long for an fsync no
// program keeps the goal for 99 of 100.
func (s seen) lines(claim string, raw seen) []verdicts.Result {
	within := verdicts.Result{Part: "load", Claim: claim + ": 99 of 100 within", Goal: "≤ " + latencyGoal.String(), Observed: s.at(0.99).String(), Passed: len(s.took) > 0 && s.at(0.99) <= latencyGoal}
	if alone := raw.at(0.99); !within.Passed && alone > latencyGoal/2 {
		within.Skipped = fmt.Sprintf("the disk alone needs %v for 99 of 100 fsyncs", alone)
	}
	return []verdicts.Result{
		{Part: "load", Claim: claim, Goal: fmt.Sprintf("≥ %d", loadGoal), Observed: fmt.Sprintf("%.0f", s.rate), Passed: s.rate >= loadGoal},
		within,
	}
}

// syncing shows what the disk does at that moment without anybody's help.
func syncing() (s seen) {
	onDisk(func(dir string) {
		f := made(os.Create(filepath.Join(dir, "raw")))
		defer f.Close()
		m := &meter{}
		done := make(chan bool)
		go func() {
			defer close(done)
			for !m.over.Load() {
				began := time.Now()
				fsyncs(f, 1, recordBytes)
				m.add(time.Since(began))
			}
		}()
		s = m.watch(loadWarm)
		m.over.Store(true)
		<-done
	})
	return s
}

// bear puts a load on an organization with a disk of its own.
func bear(put burden) (s seen) {
	onDisk(func(dir string) {
		m := &meter{}
		brain, run := put(m)
		store := made(persist.Open(dir))
		h := made(newHouse(store, brain))
		done := make(chan bool)
		go func() {
			defer close(done)
			run(h)
		}()
		time.Sleep(loadWarm)
		s = m.watch(loadTime)
		m.over.Store(true)
		<-done
		made(0, errors.Join(h.Close(), store.Close()))
	})
	return s
}

// meter keeps how long pieces of work took while it is watched.
type meter struct {
	over atomic.Bool // nothing more is to begin
	mu   sync.Mutex
	on   bool
	took []time.Duration
}

func (m *meter) add(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on {
		m.took = append(m.took, took)
	}
}

func (m *meter) turn(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = on
}

func (m *meter) watch(lasting time.Duration) seen {
	m.turn(true)
	began, used := time.Now(), cpu()
	time.Sleep(lasting)
	m.turn(false)
	took, used := time.Since(began), cpu()-used
	slices.Sort(m.took)
	n := len(m.took)
	return seen{float64(n) / took.Seconds(), m.took, used / time.Duration(max(1, n))}
}

// pairs spawns agents with one below each. Nobody but the top agent of their
// task has anything to do.
func (h *house) pairs(n int) (above, below []identity.AgentID) {
	id := made(h.StartTask(context.Background(), org.TaskSpec{Role: string(h.role), Text: question, Caller: operator}))
	task, _ := h.Org().Task(id)
	for range n {
		above = append(above, h.under(task.Top))
		below = append(below, h.under(above[len(above)-1]))
	}
	return above, below
}

func (h *house) under(parent identity.AgentID) identity.AgentID {
	return made(h.SpawnAgent(context.Background(), callBy(parent), org.Spawn{Role: h.role, Brief: brief}, nil)).ID
}

// callBy is a call of an agent with an id of its own.
func callBy(id identity.AgentID) tool.Call {
	return tool.Call{ID: identity.CallID(strconv.FormatUint(callIDs.Add(1), 10)), By: identity.ByAgent(id)}
}

var callIDs atomic.Uint64

// post sends a message from agent to agent that says when it was sent.
func (h *house) post(from, to identity.AgentID) (sent time.Time) {
	sent = time.Now()
	payload := fmt.Sprintf(`{"text":%q,"sent":%d}`, question, sent.UnixNano())
	made(h.SendMessage(context.Background(), callBy(from), string(to), json.RawMessage(payload), 0))
	return sent
}

// gossip has agents write to each other as fast as each is told that its
// message is on disk. Nobody reads.
func gossip(senders int) burden {
	return func(m *meter) (model.Model, func(*house)) {
		return absent{}, func(h *house) {
			above, below := h.pairs(senders / 2)
			from, to := slices.Concat(above, below), slices.Concat(below, above)
			shared(senders, senders, func(i int) {
				for !m.over.Load() {
					m.add(time.Since(h.post(from[i], to[i])))
				}
			})
		}
	}
}

// letters has each of some agents write to one below it whenever that one has
// taken the letter before.
func letters(pairs int) burden {
	return func(m *meter) (model.Model, func(*house)) {
		r := &reader{m: m}
		return r, func(h *house) {
			above, below := h.pairs(pairs)
			for _, id := range below {
				r.taken.Store(id, make(chan bool, 1))
			}
			shared(pairs, pairs, func(i int) {
				taken, _ := r.taken.Load(below[i])
				for !m.over.Load() {
					h.post(above[i], below[i])
					<-taken.(chan bool)
				}
			})
		}
	}
}

// reader is a model that takes its mail and waits for more. Top agents think
// for ever.
type reader struct {
	m     *meter
	taken sync.Map // agent → who waits until its letter is read
}

// Generate implements model.Model.
func (r *reader) Generate(ctx context.Context, q model.Request) iter.Seq2[model.Delta, error] {
	if q.Self.Parent == "" {
		return absent{}.Generate(ctx, q)
	}
	return func(yield func(model.Delta, error) bool) {
		for i := len(q.Items) - 1; i >= 0 && q.Items[i].Message != nil; i-- {
			r.read(q.Self.ID, q.Items[i].Message.Payload)
		}
		yield(model.Delta{Answer: &model.Answer{Finish: model.FinishWait, MessagesRead: model.Messages(q.Items)}}, nil)
	}
}

func (r *reader) read(by identity.AgentID, payload json.RawMessage) {
	var letter struct{ Sent int64 }
	made(0, json.Unmarshal(payload, &letter))
	r.m.add(time.Since(time.Unix(0, letter.Sent)))
	if taken, ok := r.taken.Load(by); ok {
		taken.(chan bool) <- true
	}
}

// errands has agents work on tasks of many calls, one task after the other.
func errands(agents, calls int) burden {
	return func(m *meter) (model.Model, func(*house)) {
		return &asker{m: m, calls: calls}, func(h *house) {
			shared(agents, agents, func(int) {
				for !m.over.Load() {
					h.finished()
				}
			})
		}
	}
}

// finished runs a task that has to end well.
func (h *house) finished() org.Task {
	id := made(h.StartTask(context.Background(), org.TaskSpec{Role: string(h.role), Text: question, Caller: operator}))
	task := made(h.WaitTask(context.Background(), id))
	if task.Status != org.Done {
		panic(task.Error)
	}
	return task
}

// asker is a model that calls a tool in each answer and measures when it is
// asked again: then the outcome is on record.
type asker struct {
	m     *meter
	calls int      // in an answer
	asked sync.Map // agent → when it answered last
}

// errandLength is how many answers with calls a task has.
const errandLength = 50

// Generate implements model.Model.
func (a *asker) Generate(_ context.Context, q model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if asked, ok := a.asked.LoadAndDelete(q.Self.ID); ok {
			for range a.calls {
				a.m.add(time.Since(asked.(time.Time)))
			}
		}
		step := len(q.Items) / (1 + a.calls)
		if step == errandLength || a.m.over.Load() {
			yield(model.Delta{Answer: &model.Answer{Text: verdict, Finish: model.FinishEnd, MessagesRead: 1}}, nil)
			return
		}
		a.asked.Store(q.Self.ID, time.Now())
		yield(model.Delta{Answer: a.answer(step)}, nil)
	}
}

// answer calls with arguments of its own: equal steps would be a repetition.
func (a *asker) answer(step int) *model.Answer {
	answer := &model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1}
	for i := range a.calls {
		answer.Calls = append(answer.Calls, model.Call{
			Provider: strconv.Itoa(i), Name: toolName, Args: json.RawMessage(fmt.Sprintf(`{"city":"city %d of %d"}`, i, step)),
		})
	}
	return answer
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// The load of a soak.
const (
	soakTaskInterval = 100 * time.Millisecond // between the starts of two tasks
	soakRoleInterval = 250 * time.Millisecond // between two changes of a role
	soakFollowTime   = 200 * time.Millisecond // how long a follower of all events stays
	soakMaxTasks     = 64                     // concurrent tasks; more are skipped
	soakWarmupTasks  = 600                    // tasks before the measurement; they fill the cache of idle agents
)

// The goals of a soak.
const (
	growthGoal     = 1.1  // maximum ratio of the last quarter to the second
	taskMemoryGoal = 2560 // bytes of memory that an ended task may keep: 1 KiB, 512 bytes for each of its two helpers, and 512 bytes for the store's map of the pages that it has written
)

// runSoak puts an organization on a disk under a mixed, steady load and shows what
// grows. The log on disk must grow, and a summary of every ended task stays in memory.
// Nothing else may grow.
func runSoak(w *tabwriter.Writer) {
	withDiskDir(func(dir string) {
		s := newSoaking(dir)
		before := takeSample(s)
		runShared(soakWarmupTasks, spawners, func(int) { s.runTask(2) })
		warm := s.waitIdle(before)
		samples := s.run(*soakTime)
		after := s.waitIdle(before)
		s.printQuarters(w, samples)
		w.Flush()
		fmt.Printf("%s; %d tasks were skipped; idle again: %+v\n", s.outcomeText(), s.skipped.Load(), s.CurrentLoad())
		reportResults(append(soakResults(samples, bytesPerTask(warm, after)), soakreport.Result{
			Part: "soak", Claim: "goroutines when idle", Goal: fmt.Sprint("≤ ", before.goroutines), Observed: fmt.Sprint(after.goroutines), Passed: after.goroutines <= before.goroutines,
		})...)
		s.close()
	})
}

// soakRun is an organization under load.
type soakRun struct {
	*runtime.Runtime
	store    *persist.Store
	dataFile string
	role     org.Role
	start    time.Time
	workers  sync.WaitGroup

	ended, skipped atomic.Int64
	mu             sync.Mutex // guards outcomes
	outcomes       map[string]int
}

func newSoaking(dir string) *soakRun {
	s := &soakRun{store: must(persist.Open(dir)), dataFile: filepath.Join(dir, persist.FileName), outcomes: map[string]int{}}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	s.Runtime = must(runtime.New(runtime.Config{
		Store: s.store, Groups: groups, Workspaces: dir, Limits: unlimited,
		Model: func(string) (model.Model, error) { return mixedModel{s}, nil },
	}))
	must(0, builtin.RegisterGroups(groups, s.ToolHost(), builtin.Options{}))
	must(grouptest.RegisterGroup(s.GroupManager(), "bench", toolgroups.Group{ID: "weather", Tools: effectTools()}))
	s.role = must(s.CreateRole(context.Background(), tool.Call{By: operator}, s.spec("guide", rolePrompt)))
	return s
}

// effectTools returns a tool of each effect class.
func effectTools() (list []tool.Tool) {
	for name, effect := range map[string]tool.Effect{toolName: tool.ReadOnly, "note": tool.Idempotent, "act": tool.Mutating} {
		list = append(list, must(tool.New(name, toolText, forecast, &tool.Options{Effect: effect})))
	}
	return list
}

func (s *soakRun) spec(name, prompt string) org.RoleSpec {
	use := toolgroups.SetOf("weather", toolgroups.OrgManagement, toolgroups.Artifact, toolgroups.Context)
	return org.RoleSpec{Name: name, Prompt: prompt, Use: &use, Grant: &use}
}

// run keeps the load up and takes samples.
func (s *soakRun) run(lasting time.Duration) (samples []sample) {
	s.start = time.Now()
	ctx, stop := context.WithTimeout(context.Background(), lasting)
	defer stop()
	free := make(chan bool, soakMaxTasks)
	s.every(ctx, soakTaskInterval, func(i int) { s.startTask(free, i) })
	s.every(ctx, soakRoleInterval, s.changeRole)
	s.workers.Go(func() { s.followAll(ctx) })
	pause := time.NewTicker(max(lasting/80, 250*time.Millisecond))
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			samples = append(samples, takeSample(s))
			if *profilePath != "" && time.Since(s.start) < lasting/2 {
				s.writeHeapProfile("middle")
			}
		case <-ctx.Done():
			s.writeHeapProfile("end")
			return samples
		}
	}
}

// every calls do periodically until ctx ends.
func (s *soakRun) every(ctx context.Context, pause time.Duration, do func(i int)) {
	s.workers.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				do(i)
			case <-ctx.Done():
				return
			}
		}
	})
}

// startTask runs a task in the background, or skips it when soakMaxTasks are running.
func (s *soakRun) startTask(free chan bool, i int) {
	select {
	case free <- true:
	default:
		s.skipped.Add(1)
		return
	}
	s.workers.Go(func() {
		defer func() { <-free }()
		s.runTask(i)
	})
}

// runTask runs a task. Some are watched to their ends, some briefly, and some are
// cancelled.
func (s *soakRun) runTask(i int) {
	ctx := context.Background()
	id := must(s.StartTask(ctx, org.TaskSpec{Role: string(s.role.ID), Text: question, Caller: operator}))
	if i%8 == 0 {
		s.watch(id, i%16 == 0)
	}
	if i%16 == 1 {
		must(0, s.CancelTask(ctx, id, "it is enough"))
	}
	task := must(s.WaitTask(ctx, id))
	s.ended.Add(1)
	s.countOutcome(string(task.Status))
}

// watch follows the events of a task, all of them or only the first.
func (s *soakRun) watch(id identity.TaskID, toItsEnd bool) {
	s.workers.Go(func() {
		task, _ := s.Org().TaskByID(id)
		for _, err := range s.WatchTask(context.Background(), id, task.FirstSeq) {
			must(0, err)
			if !toItsEnd {
				return
			}
		}
	})
}

func (s *soakRun) countOutcome(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[what]++
}

func (s *soakRun) outcomeText() string { return strings.TrimPrefix(fmt.Sprint(s.outcomes), "map") }

// changeRole changes the prompt of the agents' role. Every eighth time it also creates
// and deletes a role, and every 64th time it collects garbage.
func (s *soakRun) changeRole(i int) {
	must2(s.UpdateRole(operator, s.role.ID, s.spec("guide", fmt.Sprint(rolePrompt, " Today is day ", i, ".")), org.Apply))
	if i%8 == 0 {
		guest := must(s.CreateRole(context.Background(), tool.Call{By: operator}, s.spec(fmt.Sprint("guest ", i), rolePrompt)))
		must(s.DeleteRole(operator, guest.ID, org.Apply))
	}
	if i%64 == 63 {
		must(s.ArtifactStore().CollectGarbage(context.Background(), org.Apply))
	}
}

func must2[V, W any](_ V, _ W, err error) { must(0, err) }

// followAll follows all events for a short time, again and again.
func (s *soakRun) followAll(ctx context.Context) {
	for ctx.Err() == nil {
		some, stop := context.WithTimeout(ctx, soakFollowTime)
		for _, err := range s.store.FollowEvents(some, s.store.LastSeq(), journal.WaitForMore) {
			must(0, err)
		}
		stop()
	}
}

// waitIdle waits until no agent works and returns a sample. A goroutine that has
// reported its end may need a moment to exit.
func (s *soakRun) waitIdle(before sample) sample {
	s.workers.Wait()
	for range 200 {
		load := s.CurrentLoad()
		if load.Starting+load.Thinking+load.Calling == 0 && goruntime.NumGoroutine() <= before.goroutines {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return takeSample(s)
}

func (s *soakRun) close() { must(0, errors.Join(s.Close(), s.store.Close())) }

// writeHeapProfile writes a heap profile next to the CPU profile.
func (s *soakRun) writeHeapProfile(when string) {
	if *profilePath == "" {
		return
	}
	f := must(os.Create(*profilePath + ".heap." + when))
	must(0, errors.Join(pprof.WriteHeapProfile(f), f.Close()))
}

// sample is the resource use of the process at one moment.
type sample struct {
	ended                   int64 // tasks
	heap, resident, written int64 // bytes
	goroutines, files       int
}

func takeSample(s *soakRun) sample {
	return sample{
		ended: s.ended.Load(), heap: heapBytes(), resident: procStatus("VmRSS")[0], written: must(os.Stat(s.dataFile)).Size(),
		goroutines: goruntime.NumGoroutine(), files: len(must(os.ReadDir("/proc/self/fd"))),
	}
}

// medianOfQuarter returns the medians of a quarter of all samples, counted from 0.
func medianOfQuarter(samples []sample, i int) sample {
	part := samples[i*len(samples)/4 : (i+1)*len(samples)/4]
	return sample{
		ended: medianBy(part, func(s sample) int64 { return s.ended }), heap: medianBy(part, func(s sample) int64 { return s.heap }),
		resident: medianBy(part, func(s sample) int64 { return s.resident }), written: medianBy(part, func(s sample) int64 { return s.written }),
		goroutines: medianBy(part, func(s sample) int { return s.goroutines }), files: medianBy(part, func(s sample) int { return s.files }),
	}
}

func medianBy[V cmp.Ordered](list []sample, of func(sample) V) V {
	var values []V
	for _, s := range list {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// printQuarters prints the medians of each quarter.
func (s *soakRun) printQuarters(w *tabwriter.Writer, samples []sample) {
	fmt.Fprintln(w, "quarter\ttasks ended\theap\tresident\tgoroutines\topen files\tdata file")
	for i := range 4 {
		q := medianOfQuarter(samples, i)
		fmt.Fprintf(w, "%d\t%d\t%.1f MiB\t%s\t%d\t%d\t%s\n", i+1, q.ended, float64(q.heap)/(1<<20), mebibytes(q.resident), q.goroutines, q.files, mebibytes(q.written))
	}
}

// bytesPerTask returns the bytes that an ended task keeps: the growth of the heap
// between two idle samples.
func bytesPerTask(from, to sample) int64 { return (to.heap - from.heap) / max(1, to.ended-from.ended) }

// soakResults compares the last quarter with the second, because the first warms up. A
// summary of every ended task stays in memory, so what it may keep is subtracted from
// the heap. Whether it keeps no more is a claim of its own.
func soakResults(samples []sample, kept int64) []soakreport.Result {
	early, late := medianOfQuarter(samples, 1), medianOfQuarter(samples, 3)
	allowed := (late.ended - early.ended) * min(max(kept, 0), taskMemoryGoal)
	return []soakreport.Result{
		{Part: "soak", Claim: "heap that an ended task keeps", Goal: fmt.Sprintf("≤ %d B", taskMemoryGoal), Observed: fmt.Sprintf("%d B", kept), Passed: kept <= taskMemoryGoal},
		growthResult("heap without what ended tasks keep", late.heap-allowed, early.heap, 1<<20),
		growthResult("goroutines", int64(late.goroutines), int64(early.goroutines), spawners),
		growthResult("open files", int64(late.files), int64(early.files), 0),
	}
}

// growthResult allows a constant in addition to the ratio, because small numbers vary
// with the current work.
func growthResult(what string, late, early, slack int64) soakreport.Result {
	return soakreport.Result{
		Part: "soak", Claim: what + ", last quarter compared with second", Goal: fmt.Sprintf("≤ %.1f × + %d", growthGoal, slack),
		Observed: fmt.Sprintf("%.2f ×", float64(late)/float64(early)), Passed: float64(late) <= growthGoal*float64(early)+float64(slack),
	}
}

// mixedModel is a model whose agents use all kinds of tools.
type mixedModel struct{ s *soakRun }

// Generate implements model.Model.
func (m mixedModel) Generate(_ context.Context, q model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		a, err := m.answer(q)
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		a.MessagesRead = model.CountMessages(q.Items)
		if yield(model.AnswerDelta{Text: "I think"}, nil) {
			yield(model.AnswerDelta{Answer: a}, nil)
		}
	}
}

// answer returns the next step of a task's leader or helper. Some agents fail.
func (m mixedModel) answer(q model.Request) (*model.Answer, error) {
	steps, id := m.leaderSteps, string(q.Self.Task)
	if q.Self.Parent != "" {
		steps, id = m.helperSteps, string(q.Self.ID)
	}
	plan := steps(q)
	n := answers(q.Items)
	if n == 2 && strings.HasSuffix(id, "7") {
		return nil, errcode.New(errcode.LLMCallFailed, "simulated model failure")
	}
	if n >= len(plan) {
		return &model.Answer{Text: verdict, Finish: model.FinishEnd}, nil
	}
	return &model.Answer{Finish: model.FinishToolCalls, Calls: plan[n]}, nil
}

// leaderSteps are calls of all effect classes, helpers, messages now and later, an
// artifact, the termination of a helper, and calls that are rejected.
func (m mixedModel) leaderSteps(q model.Request) [][]model.Call {
	helpers, ref := resultValues(q.Items, "agentId"), resultValues(q.Items, "artifactRef")
	spawn := call("spawn_agent_with_task", object{"roleId": m.s.role.ID, "taskBrief": brief, "initialMessage": object{"task": question}})
	return [][]model.Call{
		{call(toolName, object{"city": "Vienna"}), call(toolName, object{"city": "Graz"}), call("note", object{"city": "Linz"}), call("act", object{"city": "Linz"})},
		{spawn, spawn},
		{
			call("send_message", object{"to": valueAt(helpers, 0), "payload": object{"text": "and the wind?"}}),
			call("send_message", object{"to": valueAt(helpers, 1), "payload": object{"text": "and tomorrow?"}, "delayMs": 30}),
			call("put_artifact", object{"type": "report", "content": string(q.Self.Task) + strings.Repeat(" sunny", 100)}),
		},
		{call("get_artifact", object{"ref": valueAt(ref, 0)}), call("terminate_agent", object{"agentId": valueAt(helpers, 0), "reason": "the figures are in"})},
		{call("run_command", object{"command": "true"}), call("note", object{"town": "Linz"}), call("get_context_status", object{})},
	}
}

// helperSteps are a call, a message to the root, and the end of the turn.
func (mixedModel) helperSteps(model.Request) [][]model.Call {
	return [][]model.Call{
		{call(toolName, object{"city": "Graz"})},
		{call("send_message", object{"to": "root", "payload": object{"text": "at work"}})},
	}
}

type object = map[string]any

func call(name string, args object) model.Call {
	return model.Call{Name: name, Args: must(json.Marshal(args))}
}

func answers(items []model.Item) (n int) {
	for _, item := range items {
		if item.Answer != nil {
			n++
		}
	}
	return n
}

// resultValues returns the values that the results so far have under a name.
func resultValues(items []model.Item, name string) (list []string) {
	for _, item := range items {
		var held map[string]any
		if item.Result == nil || json.Unmarshal(item.Result.Content, &held) != nil {
			continue
		}
		if text, ok := held[name].(string); ok {
			list = append(list, text)
		}
	}
	return list
}

// valueAt returns the i-th value, or the name of an agent that does not exist.
func valueAt(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "missing"
}

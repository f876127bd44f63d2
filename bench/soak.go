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
	verdicts "github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// The steady load of a soak.
const (
	soakTasks = 100 * time.Millisecond // between two tasks
	soakRoles = 250 * time.Millisecond // between two changes of a role
	soakFeed  = 200 * time.Millisecond // that a follower of all events stays
	soakMost  = 64                     // tasks at a time: more have to wait
	soakWarm  = 600                    // tasks before: they fill what is remembered of agents at rest
)

// What a soak may show.
const (
	flatGoal = 1.1     // last quarter against second, at most
	keptGoal = 2 << 10 // bytes of memory that an ended task may keep: 1 KiB, and 512 for each of its two helpers
)

// soak puts an organization on a disk under a mixed and steady load and shows
// what grows. The log on disk must grow, and of every ended task something
// stays known; the rest must not.
func soak(w *tabwriter.Writer) {
	onDisk(func(dir string) {
		s := newSoaking(dir)
		before := sampled(s)
		shared(soakWarm, spawners, func(int) { s.task(2) })
		warm := s.rest(before)
		samples := s.run(*lasting)
		after := s.rest(before)
		s.table(w, samples)
		w.Flush()
		fmt.Printf("%s; %d tasks did not begin in time; at rest again: %+v\n", s.tally(), s.late.Load(), s.Load())
		say(append(judged(samples, keeps(warm, after)), verdicts.Result{
			Part: "soak", Claim: "goroutines when all is quiet", Goal: fmt.Sprint("≤ ", before.goroutines), Observed: fmt.Sprint(after.goroutines), Passed: after.goroutines <= before.goroutines,
		})...)
		s.close()
	})
}

// soaking is a house at work.
type soaking struct {
	*runtime.Runtime
	store *persist.Store
	file  string
	role  org.Role
	began time.Time
	all   sync.WaitGroup

	ended, late atomic.Int64
	mu          sync.Mutex // guards outcomes
	outcomes    map[string]int
}

func newSoaking(dir string) *soaking {
	s := &soaking{store: made(persist.Open(dir)), file: filepath.Join(dir, persist.FileName), outcomes: map[string]int{}}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	s.Runtime = made(runtime.New(runtime.Config{
		Store: s.store, Groups: groups, Workspaces: dir,
		Model: func(string) (model.Model, error) { return mixed{s}, nil },
	}))
	made(0, builtin.RegisterGroups(groups, s.ToolHost(), builtin.Options{}))
	made(s.RegisterGroup("bench", toolgroups.Group{ID: "weather", Tools: effects()}))
	s.role = made(s.CreateRole(context.Background(), tool.Call{By: operator}, s.spec("guide", rolePrompt)))
	return s
}

// effects makes a tool of each effect class.
func effects() (list []tool.Tool) {
	for name, effect := range map[string]tool.Effect{toolName: tool.ReadOnly, "note": tool.Idempotent, "act": tool.Mutating} {
		list = append(list, made(tool.New(name, toolText, forecast, &tool.Options{Effect: effect})))
	}
	return list
}

func (s *soaking) spec(name, prompt string) org.RoleSpec {
	use := toolgroups.Of("weather", toolgroups.OrgManagement, toolgroups.Artifact, toolgroups.Context)
	return org.RoleSpec{Name: name, Prompt: prompt, Use: &use, Grant: &use}
}

// run keeps the load on and takes samples.
func (s *soaking) run(lasting time.Duration) (samples []sample) {
	s.began = time.Now()
	ctx, stop := context.WithTimeout(context.Background(), lasting)
	defer stop()
	free := make(chan bool, soakMost)
	s.every(ctx, soakTasks, func(i int) { s.begin(free, i) })
	s.every(ctx, soakRoles, s.changeRole)
	s.all.Go(func() { s.followAll(ctx) })
	pause := time.NewTicker(max(lasting/80, 250*time.Millisecond))
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			samples = append(samples, sampled(s))
			if *profile != "" && time.Since(s.began) < lasting/2 {
				s.profile("middle")
			}
		case <-ctx.Done():
			s.profile("end")
			return samples
		}
	}
}

// every does something again and again until ctx ends.
func (s *soaking) every(ctx context.Context, pause time.Duration, do func(i int)) {
	s.all.Go(func() {
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

// begin starts a task if there are not too many, and stays with it.
func (s *soaking) begin(free chan bool, i int) {
	select {
	case free <- true:
	default:
		s.late.Add(1)
		return
	}
	s.all.Go(func() {
		defer func() { <-free }()
		s.task(i)
	})
}

// task runs a task: some are watched to their ends, some for a moment, some
// are cancelled.
func (s *soaking) task(i int) {
	ctx := context.Background()
	id := made(s.StartTask(ctx, org.TaskSpec{Role: string(s.role.ID), Text: question, Caller: operator}))
	if i%8 == 0 {
		s.watch(id, i%16 == 0)
	}
	if i%16 == 1 {
		made(0, s.CancelTask(ctx, id, "it is enough"))
	}
	task := made(s.WaitTask(ctx, id))
	s.ended.Add(1)
	s.count(string(task.Status))
}

func (s *soaking) watch(id identity.TaskID, toItsEnd bool) {
	s.all.Go(func() {
		task, _ := s.Org().Task(id)
		for _, err := range s.WatchTask(context.Background(), id, task.FirstSeq) {
			made(0, err)
			if !toItsEnd {
				return
			}
		}
	})
}

func (s *soaking) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[what]++
}

func (s *soaking) tally() string { return strings.TrimPrefix(fmt.Sprint(s.outcomes), "map") }

// changeRole gives everybody's role another prompt; now and then a role comes
// and goes, and contents that nothing names are swept.
func (s *soaking) changeRole(i int) {
	made2(s.UpdateRole(operator, s.role.ID, s.spec("guide", fmt.Sprint(rolePrompt, " Today is day ", i, ".")), false))
	if i%8 == 0 {
		guest := made(s.CreateRole(context.Background(), tool.Call{By: operator}, s.spec(fmt.Sprint("guest ", i), rolePrompt)))
		made(s.DeleteRole(operator, guest.ID, false))
	}
	if i%64 == 63 {
		made(s.Artifacts().CollectGarbage(context.Background(), false))
	}
}

func made2[V, W any](_ V, _ W, err error) { made(0, err) }

// followAll follows all events for a while, again and again.
func (s *soaking) followAll(ctx context.Context) {
	for ctx.Err() == nil {
		some, stop := context.WithTimeout(ctx, soakFeed)
		for _, err := range s.store.FollowEvents(some, s.store.LastSeq(), true) {
			made(0, err)
		}
		stop()
	}
}

// rest waits until nobody works and gives what the process has then; a
// goroutine that has told of its end needs a moment to be gone.
func (s *soaking) rest(before sample) sample {
	s.all.Wait()
	for range 200 {
		if s.Load().Working == 0 && goruntime.NumGoroutine() <= before.goroutines {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return sampled(s)
}

func (s *soaking) close() { made(0, errors.Join(s.Close(), s.store.Close())) }

// profile writes what is on the heap beside the CPU profile that was asked for.
func (s *soaking) profile(when string) {
	if *profile == "" {
		return
	}
	f := made(os.Create(*profile + ".heap." + when))
	made(0, errors.Join(pprof.WriteHeapProfile(f), f.Close()))
}

// sample is what the process has at a moment.
type sample struct {
	ended                   int64 // tasks
	heap, resident, written int64 // bytes
	goroutines, files       int
}

func sampled(s *soaking) sample {
	return sample{
		ended: s.ended.Load(), heap: heap(), resident: status("VmRSS")[0], written: made(os.Stat(s.file)).Size(),
		goroutines: goruntime.NumGoroutine(), files: len(made(os.ReadDir("/proc/self/fd"))),
	}
}

// quarter gives the medians of a quarter of all samples, counted from 0.
func quarter(samples []sample, i int) sample {
	part := samples[i*len(samples)/4 : (i+1)*len(samples)/4]
	return sample{
		ended: median(part, func(s sample) int64 { return s.ended }), heap: median(part, func(s sample) int64 { return s.heap }),
		resident: median(part, func(s sample) int64 { return s.resident }), written: median(part, func(s sample) int64 { return s.written }),
		goroutines: median(part, func(s sample) int { return s.goroutines }), files: median(part, func(s sample) int { return s.files }),
	}
}

func median[V cmp.Ordered](list []sample, of func(sample) V) V {
	var values []V
	for _, s := range list {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// table shows the quarters.
func (s *soaking) table(w *tabwriter.Writer, samples []sample) {
	fmt.Fprintln(w, "quarter\ttasks ended\theap\tresident\tgoroutines\topen files\tdata file")
	for i := range 4 {
		q := quarter(samples, i)
		fmt.Fprintf(w, "%d\t%d\t%.1f MiB\t%s\t%d\t%d\t%s\n", i+1, q.ended, float64(q.heap)/(1<<20), mebibytes(q.resident), q.goroutines, q.files, mebibytes(q.written))
	}
}

// keeps gives the bytes that stay in memory of an ended task: what the heap
// grew by from one rest to another.
func keeps(from, to sample) int64 { return (to.heap - from.heap) / max(1, to.ended-from.ended) }

// judged holds the last quarter against the second: the first warms up. An
// ended task is known as long as the process runs, so that what it may keep is
// taken off the heap; whether it keeps no more is a claim of its own.
func judged(samples []sample, kept int64) []verdicts.Result {
	early, late := quarter(samples, 1), quarter(samples, 3)
	allowed := (late.ended - early.ended) * min(max(kept, 0), keptGoal)
	return []verdicts.Result{
		{Part: "soak", Claim: "heap that an ended task keeps", Goal: fmt.Sprintf("≤ %d B", keptGoal), Observed: fmt.Sprintf("%d B", kept), Passed: kept <= keptGoal},
		steady("heap beside what ended tasks keep", late.heap-allowed, early.heap, 1<<20),
		steady("goroutines", int64(late.goroutines), int64(early.goroutines), spawners),
		steady("open files", int64(late.files), int64(early.files), 0),
	}
}

// steady allows some beside the ratio: what little there is moves with the
// work of the moment.
func steady(what string, late, early, some int64) verdicts.Result {
	return verdicts.Result{
		Part: "soak", Claim: what + ", last quarter against second", Goal: fmt.Sprintf("≤ %.1f × + %d", flatGoal, some),
		Observed: fmt.Sprintf("%.2f ×", float64(late)/float64(early)), Passed: float64(late) <= flatGoal*float64(early)+float64(some),
	}
}

// mixed is a model that has its agents do everything there is to do.
type mixed struct{ s *soaking }

// Generate implements model.Model.
func (m mixed) Generate(_ context.Context, q model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a, err := m.answer(q)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		a.MessagesRead = model.Messages(q.Items)
		if yield(model.Delta{Text: "I think"}, nil) {
			yield(model.Delta{Answer: a}, nil)
		}
	}
}

// answer is the next step of who leads a task, or of who helps. Some fail.
func (m mixed) answer(q model.Request) (*model.Answer, error) {
	steps, id := m.leads, string(q.Self.Task)
	if q.Self.Parent != "" {
		steps, id = m.helps, string(q.Self.ID)
	}
	plan := steps(q)
	n := answers(q.Items)
	if n == 2 && strings.HasSuffix(id, "7") {
		return nil, errcode.New(errcode.LLMCallFailed, "the model has a bad day")
	}
	if n >= len(plan) {
		return &model.Answer{Text: verdict, Finish: model.FinishEnd}, nil
	}
	return &model.Answer{Finish: model.FinishToolCalls, Calls: plan[n]}, nil
}

// leads: calls of all kinds, helpers, mail now and later, an artifact, an end
// of a helper, calls that are refused.
func (m mixed) leads(q model.Request) [][]model.Call {
	helpers, ref := found(q.Items, "agentId"), found(q.Items, "artifactRef")
	spawn := call("spawn_agent_with_task", object{"roleId": m.s.role.ID, "taskBrief": brief, "initialMessage": object{"task": question}})
	return [][]model.Call{
		{call(toolName, object{"city": "Vienna"}), call(toolName, object{"city": "Graz"}), call("note", object{"city": "Linz"}), call("act", object{"city": "Linz"})},
		{spawn, spawn},
		{
			call("send_message", object{"to": nth(helpers, 0), "payload": object{"text": "and the wind?"}}),
			call("send_message", object{"to": nth(helpers, 1), "payload": object{"text": "and tomorrow?"}, "delayMs": 30}),
			call("put_artifact", object{"type": "report", "content": string(q.Self.Task) + strings.Repeat(" sunny", 100)}),
		},
		{call("get_artifact", object{"ref": nth(ref, 0)}), call("terminate_agent", object{"agentId": nth(helpers, 0), "reason": "the figures are in"})},
		{call("run_command", object{"command": "true"}), call("note", object{"town": "Linz"}), call("get_context_status", object{})},
	}
}

// helps: a call, a word to who leads, and the end of a turn.
func (mixed) helps(model.Request) [][]model.Call {
	return [][]model.Call{
		{call(toolName, object{"city": "Graz"})},
		{call("send_message", object{"to": "root", "payload": object{"text": "at work"}})},
	}
}

type object = map[string]any

func call(name string, args object) model.Call {
	return model.Call{Name: name, Args: made(json.Marshal(args))}
}

func answers(items []model.Item) (n int) {
	for _, item := range items {
		if item.Answer != nil {
			n++
		}
	}
	return n
}

// found lists what results so far hold under a name.
func found(items []model.Item, name string) (list []string) {
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

func nth(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nobody"
}

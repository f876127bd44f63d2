package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// The goals for a million idle agents.
const (
	readyGoal    = 5 * time.Second
	residentGoal = 3 << 29 // 1.5 GiB
)

// The agent tree of million: tasks with a root each, departments below the roots,
// teams below the departments, and all other agents below the teams.
const (
	millionTasks = 8
	departments  = 8  // per root
	teams        = 16 // per department
)

// runMillion shows how long a new process on a data directory full of idle agents
// takes until it can work, and how much memory it uses.
func runMillion(*tabwriter.Writer) {
	dir := *dataDir
	if dir == "" {
		dir = must(os.MkdirTemp(".", "bench-"))
		defer os.RemoveAll(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, persist.FileName)); errors.Is(err, fs.ErrNotExist) {
		populate(dir, populationSize(1_000_000))
	}
	args := []string{"-data", dir}
	if *profilePath != "" {
		args = append(args, "-profile", *profilePath+".open")
	}
	again := exec.Command(must(os.Executable()), append(args, "opened")...)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	must(0, again.Run())
}

// idleModel is a model whose roots never answer. All other agents wait for the next
// message.
type idleModel struct{ answered chan struct{} }

// Generate implements model.Model.
func (s idleModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	if !strings.Contains(r.System, rolePrompt) {
		return waitingModel{}.Generate(ctx, r)
	}
	return func(yield func(model.AnswerDelta, error) bool) {
		select {
		case s.answered <- struct{}{}:
		default:
		}
		yield(model.AnswerDelta{Answer: &model.Answer{Finish: model.FinishWait, MessagesRead: messageCount(r)}}, nil)
	}
}

// messageCount returns the number of messages an agent has received so far.
func messageCount(r model.Request) (n int) {
	for _, item := range r.Items {
		if item.Message != nil {
			n++
		}
	}
	return n
}

// openMillion opens a data directory as the program does.
func openMillion(dir string, agentModel model.Model) (*persist.Store, *runtime.Runtime) {
	store := must(persist.Open(dir))
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt := must(runtime.New(runtime.Config{Store: store, Groups: groups, Limits: unlimited, Model: func(string) (model.Model, error) { return agentModel, nil }}))
	must(0, builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}))
	return store, rt
}

// populator fills a data directory.
type populator struct {
	*runtime.Runtime
	role      identity.RoleID
	calls     atomic.Uint64
	remaining atomic.Int64 // agents yet to be spawned
}

// populate creates n idle agents.
func populate(dir string, n int) {
	start := time.Now()
	store, rt := openMillion(dir, idleModel{})
	f := &populator{Runtime: rt}
	use := toolgroups.SetOf(toolgroups.Artifact)
	f.role = must(rt.CreateRole(context.Background(), tool.Call{By: operator}, org.RoleSpec{Name: "guide", Prompt: rolePrompt, Use: &use, Grant: &use})).ID
	f.remaining.Store(int64(n))
	roots := f.startTasks()
	above := f.spawnBelow(f.spawnBelow(roots, departments), teams)
	f.spawnRemaining(above)
	f.waitIdle(store, len(roots))
	must(0, errors.Join(rt.Close(), store.Close()))
	fmt.Printf("%d agents created in %v\n", n, time.Since(start).Round(time.Second))
}

// startTasks starts the tasks and returns their roots.
func (f *populator) startTasks() (list []identity.AgentID) {
	for range millionTasks {
		id := must(f.StartTask(context.Background(), org.TaskSpec{Text: question, Caller: operator}))
		task, _ := f.Org().TaskByID(id)
		f.remaining.Add(-1)
		list = append(list, task.Top)
	}
	return list
}

// spawnBelow spawns up to each agents below each parent, while any remain.
func (f *populator) spawnBelow(parents []identity.AgentID, each int) (list []identity.AgentID) {
	for _, parent := range parents {
		for range each {
			if f.remaining.Add(-1) >= 0 {
				list = append(list, f.spawn(parent))
			}
		}
	}
	return list
}

// spawnRemaining spawns all remaining agents concurrently, evenly below the parents.
func (f *populator) spawnRemaining(parents []identity.AgentID) {
	runSpawners(func() {
		for left := f.remaining.Add(-1); left >= 0; left = f.remaining.Add(-1) {
			f.spawn(parents[int(left)%len(parents)])
		}
	})
}

func (f *populator) spawn(parent identity.AgentID) identity.AgentID {
	call := tool.Call{ID: identity.CallID(strconv.FormatUint(f.calls.Add(1), 10)), By: identity.ByAgent(parent)}
	return must(f.SpawnAgent(context.Background(), call, org.SpawnSpec{Role: f.role, Brief: brief}, nil)).ID
}

// waitIdle waits until all agents but the roots are idle. Agents that spawned others
// are still runnable, so each gets a message that ends its turn.
func (f *populator) waitIdle(store journal.Store, roots int) {
	for _, id := range must(store.RunnableAgents(context.Background())) {
		if a, _ := f.Org().AgentByID(id); !a.Root {
			must(f.SendMessage(context.Background(), tool.Call{By: operator}, string(id), []byte(`"rest"`), 0))
		}
	}
	for len(must(store.RunnableAgents(context.Background()))) > roots {
		time.Sleep(10 * time.Millisecond)
	}
}

// runMillionOpened is the second half of million, in a process of its own.
func runMillionOpened(w *tabwriter.Writer) {
	ctx, answered := context.Background(), make(chan struct{}, 1)
	store, rt := openMillion(*dataDir, idleModel{answered})
	loaded := wall()
	for _, task := range rt.Org().ListTasks() {
		must(0, rt.ResumeTask(ctx, task.ID))
	}
	ready, used := wall(), cpu()
	resident := procStatus("VmHWM", "VmRSS", "RssAnon", "RssFile")
	live, collected := heapBytes(), procStatus("RssAnon")[0]
	woken := measureWake(rt, answered)
	n := 0
	for _, task := range rt.Org().ListTasks() {
		n += len(rt.Org().AgentTree(task.Top))
	}
	must(0, errors.Join(rt.Close(), store.Close()))
	size := must(os.Stat(filepath.Join(*dataDir, persist.FileName))).Size()

	fmt.Fprintln(w, "agents\tloaded after\tready after\tCPU time\theap per agent\tan agent answers a message after\tfile")
	fmt.Fprintf(w, "%d\t%v\t%v\t%v\t%d B\t%v\t%s\n", n, loaded.Round(time.Millisecond), ready.Round(time.Millisecond),
		used.Round(time.Millisecond), live/int64(n), woken.Round(time.Microsecond), mebibytes(size))
	w.Flush()
	fmt.Fprintln(w, "peak resident\tresident when ready\tof it anonymous\tof it file\tanonymous after a collection")
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", mebibytes(resident[0]), mebibytes(resident[1]), mebibytes(resident[2]), mebibytes(resident[3]), mebibytes(collected))
	w.Flush()
	reportMillion(n, ready, used, resident[0])
}

// measureWake returns the time until the model of an agent that receives a message is
// called.
func measureWake(rt *runtime.Runtime, answered <-chan struct{}) time.Duration {
	select {
	case <-answered: // from an agent that was resumed
	default:
	}
	agent := rt.Org().AgentTree(rt.Org().ListTasks()[0].Top)[0]
	start := time.Now()
	must(rt.SendMessage(context.Background(), tool.Call{By: operator}, string(agent), []byte(`"hello"`), 0))
	<-answered
	return time.Since(start)
}

// procStatus reads sizes of this process from /proc, in bytes.
func procStatus(names ...string) []int64 {
	list := make([]int64, len(names))
	for line := range strings.Lines(string(must(os.ReadFile("/proc/self/status")))) {
		for i, name := range names {
			if rest, ok := strings.CutPrefix(line, name+":"); ok {
				list[i] = must(strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)) << 10
			}
		}
	}
	return list
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// reportMillion reports whether the goals, which are those of a million agents, were
// reached.
func reportMillion(n int, ready, used time.Duration, most int64) {
	about := fmt.Sprintf("%d idle agents on disk: ", n)
	reportResults(soakreport.Result{
		Part: "load", Claim: about + "ready", Goal: "≤ " + readyGoal.String(),
		Observed: fmt.Sprintf("%.2fs, %.2fs of CPU", ready.Seconds(), used.Seconds()), Passed: ready <= readyGoal,
	}, soakreport.Result{
		Part: "load", Claim: about + "peak resident", Goal: "≤ " + mebibytes(residentGoal),
		Observed: mebibytes(most), Passed: most <= residentGoal,
	})
}

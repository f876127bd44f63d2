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
	verdicts "github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// What a million idle agents may cost.
const (
	readyGoal    = 5 * time.Second
	residentGoal = 3 << 29 // 1.5 GiB
)

// The society of million: tasks with a root each, departments below the roots,
// teams below those, and below the teams everybody else.
const (
	millionTasks = 8
	departments  = 8  // of a root
	teams        = 16 // of a department
)

// million shows what it takes until a process that was just started on a data
// directory full of idle agents can work, and what it then holds in memory.
func million(*tabwriter.Writer) {
	dir := *data
	if dir == "" {
		dir = made(os.MkdirTemp(".", "bench-"))
		defer os.RemoveAll(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, persist.FileName)); errors.Is(err, fs.ErrNotExist) {
		fill(dir, population(1_000_000))
	}
	args := []string{"-data", dir}
	if *profile != "" {
		args = append(args, "-profile", *profile+".open")
	}
	again := exec.Command(made(os.Executable()), append(args, "opened")...)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	made(0, again.Run())
}

// sleepy is a model whose roots think until the house is closed; everybody
// else waits for the next message.
type sleepy struct{ answered chan struct{} }

// Generate implements model.Model.
func (s sleepy) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	if !strings.Contains(r.System, rolePrompt) {
		return absent{}.Generate(ctx, r)
	}
	return func(yield func(model.Delta, error) bool) {
		select {
		case s.answered <- struct{}{}:
		default:
		}
		yield(model.Delta{Answer: &model.Answer{Finish: model.FinishWait, MessagesRead: messages(r)}}, nil)
	}
}

// messages counts what was written to an agent so far.
func messages(r model.Request) (n int) {
	for _, item := range r.Items {
		if item.Message != nil {
			n++
		}
	}
	return n
}

// openMillion opens a data directory as the program does.
func openMillion(dir string, brain model.Model) (*persist.Store, *runtime.Runtime) {
	store := made(persist.Open(dir))
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt := made(runtime.New(runtime.Config{Store: store, Groups: groups, Model: func(string) (model.Model, error) { return brain, nil }}))
	made(0, builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}))
	return store, rt
}

// founder fills a data directory.
type founder struct {
	*runtime.Runtime
	role  identity.RoleID
	calls atomic.Uint64
	left  atomic.Int64 // agents yet to be spawned
}

// fill makes a society of n agents at rest.
func fill(dir string, n int) {
	began := time.Now()
	store, rt := openMillion(dir, sleepy{})
	f := &founder{Runtime: rt}
	use := toolgroups.Of(toolgroups.Artifact)
	f.role = made(rt.CreateRole(context.Background(), tool.Call{By: operator}, org.RoleSpec{Name: "guide", Prompt: rolePrompt, Use: &use, Grant: &use})).ID
	f.left.Store(int64(n))
	roots := f.roots()
	above := f.below(f.below(roots, departments), teams)
	f.crowd(above)
	f.settle(store, len(roots))
	made(0, errors.Join(rt.Close(), store.Close()))
	fmt.Printf("%d agents made in %v\n", n, time.Since(began).Round(time.Second))
}

// roots starts the tasks.
func (f *founder) roots() (list []identity.AgentID) {
	for range millionTasks {
		id := made(f.StartTask(context.Background(), org.TaskSpec{Text: question, Caller: operator}))
		task, _ := f.Org().Task(id)
		f.left.Add(-1)
		list = append(list, task.Top)
	}
	return list
}

// below spawns some agents below each of a list, as far as there are any left.
func (f *founder) below(parents []identity.AgentID, each int) (list []identity.AgentID) {
	for _, parent := range parents {
		for range each {
			if f.left.Add(-1) >= 0 {
				list = append(list, f.spawn(parent))
			}
		}
	}
	return list
}

// crowd spawns all that are left, many at once, evenly below a list.
func (f *founder) crowd(parents []identity.AgentID) {
	together(func() {
		for left := f.left.Add(-1); left >= 0; left = f.left.Add(-1) {
			f.spawn(parents[int(left)%len(parents)])
		}
	})
}

func (f *founder) spawn(parent identity.AgentID) identity.AgentID {
	call := tool.Call{ID: identity.CallID(strconv.FormatUint(f.calls.Add(1), 10)), By: identity.ByAgent(parent)}
	return made(f.SpawnAgent(context.Background(), call, org.Spawn{Role: f.role, Brief: brief}, nil)).ID
}

// settle has everybody who spawned come to rest: it was done in their names,
// and they do not know that they have nothing to do.
func (f *founder) settle(store journal.Store, roots int) {
	for _, id := range made(store.RunnableAgents(context.Background())) {
		if a, _ := f.Org().Agent(id); !a.Root {
			made(f.SendMessage(context.Background(), tool.Call{By: operator}, string(id), []byte(`"rest"`), 0))
		}
	}
	for len(made(store.RunnableAgents(context.Background()))) > roots {
		time.Sleep(10 * time.Millisecond)
	}
}

// opened is million's second half, in a process of its own.
func opened(w *tabwriter.Writer) {
	ctx, answered := context.Background(), make(chan struct{}, 1)
	store, rt := openMillion(*data, sleepy{answered})
	loaded := wall()
	for _, task := range rt.Org().ListTasks() {
		made(0, rt.ResumeTask(ctx, task.ID))
	}
	ready, used := wall(), cpu()
	resident := status("VmHWM", "VmRSS", "RssAnon", "RssFile")
	live, collected := heap(), status("RssAnon")[0]
	woken := awake(rt, answered)
	n := 0
	for _, task := range rt.Org().ListTasks() {
		n += len(rt.Org().Tree(task.Top))
	}
	made(0, errors.Join(rt.Close(), store.Close()))
	size := made(os.Stat(filepath.Join(*data, persist.FileName))).Size()

	fmt.Fprintln(w, "agents\tloaded after\tready after\tCPU time\theap, each\tone that is written to answers after\tfile")
	fmt.Fprintf(w, "%d\t%v\t%v\t%v\t%d B\t%v\t%s\n", n, loaded.Round(time.Millisecond), ready.Round(time.Millisecond),
		used.Round(time.Millisecond), live/int64(n), woken.Round(time.Microsecond), mebibytes(size))
	w.Flush()
	fmt.Fprintln(w, "resident at most\twhen ready\tof it anonymous\tof it the file\tanonymous after a collection")
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", mebibytes(resident[0]), mebibytes(resident[1]), mebibytes(resident[2]), mebibytes(resident[3]), mebibytes(collected))
	w.Flush()
	judge(n, ready, used, resident[0])
}

// awake gives the time until an agent that is written to has been asked.
func awake(rt *runtime.Runtime, answered <-chan struct{}) time.Duration {
	select {
	case <-answered: // by somebody who was resumed
	default:
	}
	someone := rt.Org().Tree(rt.Org().ListTasks()[0].Top)[0]
	began := time.Now()
	made(rt.SendMessage(context.Background(), tool.Call{By: operator}, string(someone), []byte(`"hello"`), 0))
	<-answered
	return time.Since(began)
}

// status reads figures of this process, in bytes.
func status(names ...string) []int64 {
	list := make([]int64, len(names))
	for line := range strings.Lines(string(made(os.ReadFile("/proc/self/status")))) {
		for i, name := range names {
			if rest, ok := strings.CutPrefix(line, name+":"); ok {
				list[i] = made(strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)) << 10
			}
		}
	}
	return list
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// judge says whether the goals, which are those of a million, were reached.
func judge(n int, ready, used time.Duration, most int64) {
	about := fmt.Sprintf("%d idle agents on disk: ", n)
	say(verdicts.Result{
		Part: "load", Claim: about + "ready", Goal: "≤ " + readyGoal.String(),
		Observed: fmt.Sprintf("%.2fs, %.2fs of CPU", ready.Seconds(), used.Seconds()), Passed: ready <= readyGoal,
	}, verdicts.Result{
		Part: "load", Claim: about + "resident at most", Goal: "≤ " + mebibytes(residentGoal),
		Observed: mebibytes(most), Passed: most <= residentGoal,
	})
}

//go:build unix

package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

const gib = 1 << 30

// fakeDisk is a store on a disk whose space the test sets.
type fakeDisk struct {
	journal.Store
	looks atomic.Int32

	mu    sync.Mutex // guards the fields below
	space journal.DiskSpace
	err   error
}

func (d *fakeDisk) wrap(s journal.Store) journal.Store {
	d.Store = s
	return d
}

// DiskSpace implements journal.DiskStore.
func (d *fakeDisk) DiskSpace() (journal.DiskSpace, error) {
	d.looks.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.space, d.err
}

func (d *fakeDisk) set(free uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.space = journal.DiskSpace{Free: free, Total: 100 * gib}
}

// expire lets d's last figure expire. It must be called in a synctest bubble.
func (d *fakeDisk) expire() { time.Sleep(time.Second) }

func TestRuntime_BelowDiskReserveNothingBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{}
		d.set(gib)
		fx := fixtureConfig{model: blockingRoot(make(chan struct{}), alwaysWait), wrapStore: d.wrap}.open(t)
		caller := fx.createCaller(t, "artifact")
		id := fx.start(t, org.TaskSpec{Text: "wait"})
		synctest.Wait()
		for _, tt := range []struct {
			name  string
			begin func() error
		}{
			{"task", func() error {
				_, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "t", Caller: operator})
				return err
			}},
			{"call", func() error {
				_, err := fx.InvokeTool(t.Context(), caller, "put_artifact", mustJSON(obj{"type": "t", "content": "x"}))
				return err
			}},
			{"unknown tool", func() error {
				_, err := fx.InvokeTool(t.Context(), caller, "no_such_tool", nil)
				return err
			}},
			{"message", func() error {
				_, err := fx.SendMessage(t.Context(), newCall(operator), string(fx.topAgent(t, id)), mustJSON("m"), 0)
				return err
			}},
			{"readiness", fx.CheckStorage},
		} {
			d.set(256<<20 - 1)
			d.expire()
			before := len(fx.events(t))
			if err := tt.begin(); errcode.CodeOf(err) != errcode.StorageLow {
				t.Errorf("%s: got %v, want storage_low", tt.name, err)
			}
			if now := len(fx.events(t)); now != before {
				t.Errorf("%s: %d events were recorded", tt.name, now-before)
			}
			d.set(gib)
			d.expire()
			if err := tt.begin(); err != nil {
				t.Errorf("%s, with room: %v", tt.name, err)
			}
			synctest.Wait()
		}
	})
}

// An agent rests between two calls of one answer, and before a request to its model.
func TestAgent_RestsBelowDiskReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{}
		d.set(gib)
		var ran, asked atomic.Int32
		poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) {
			ran.Add(1)
			d.set(0)
			d.expire()
			return "ran", nil
		})
		m := answerFunc(func(r model.Request) model.Answer {
			if asked.Add(1) == 1 {
				return callTools("poke", obj{}, "poke", obj{})
			}
			return endWith("done")
		})
		fx := fixtureConfig{tools: []tool.Tool{poke}, model: m, wrapStore: d.wrap}.open(t)
		id := fx.start(t, fx.workerTask(t, ""))
		for _, step := range []struct{ ran, asked int32 }{{1, 1}, {2, 1}} {
			time.Sleep(time.Minute) // in synctest's time
			if ran.Load() != step.ran || asked.Load() != step.asked {
				t.Fatalf("without room %d calls ran and the model was asked %d times, want %+v", ran.Load(), asked.Load(), step)
			}
			d.set(gib)
		}
		fx.wantResult(t, fx.wait(t, id), `"done"`, "")
	})
}

// An answer that arrives when there is no room for its calls is recorded: the next
// process does not ask the model again.
func TestAgent_RestRecordsAnswer(t *testing.T) {
	dir := fastTempDir(t)
	var asked atomic.Int32
	poke := newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) { return "ran", nil })
	id := identity.TaskID("")
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{}
		d.set(gib)
		m := answerFunc(func(model.Request) model.Answer {
			asked.Add(1)
			d.set(0)
			d.expire()
			return callTools("poke", obj{})
		})
		fx := fixtureConfig{dir: dir, tools: []tool.Tool{poke}, model: m, wrapStore: d.wrap}.open(t)
		id = fx.start(t, fx.workerTask(t, ""))
		time.Sleep(time.Minute)
		if n := len(eventsOf[journal.ToolCall](t, fx)); n != 0 {
			t.Errorf("%d calls were decided without room", n)
		}
		fx.shutdown(t)
	})
	fx := fixtureConfig{dir: dir, tools: []tool.Tool{poke}, model: answerFunc(func(r model.Request) model.Answer {
		asked.Add(1)
		return endWith(fmt.Sprint(answerCount(r)))
	})}.open(t)
	fx.resume(t, id)
	task := fx.wait(t, id)
	if asked.Load() != 2 {
		t.Errorf("the model was asked %d times, want 2", asked.Load())
	}
	fx.wantResult(t, task, `"1"`, "")
}

// What has begun is recorded when the space has fallen below the reserve meanwhile.
func TestAgent_RecordsAnswerBelowDiskReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{}
		d.set(gib)
		fx := fixtureConfig{model: answerFunc(func(model.Request) model.Answer {
			d.set(0)
			d.expire()
			return endWith("done")
		}), wrapStore: d.wrap}.open(t)
		id := fx.start(t, fx.workerTask(t, ""))
		time.Sleep(time.Minute) // in synctest's time
		if n := len(eventsOf[journal.TaskEnded](t, fx)); n != 1 {
			t.Error("the task has not ended")
		}
		d.set(gib)
		fx.wait(t, id)
	})
}

func TestDiskReserve_Size(t *testing.T) {
	for _, tt := range []struct {
		name       string
		space      journal.DiskSpace
		configured int64
		want       int64
	}{
		{"large disk", journal.DiskSpace{Free: gib, Total: 1 << 40}, 0, 256 << 20},
		{"small disk", journal.DiskSpace{Free: gib, Total: 80 << 20}, 0, 20 << 20},
		{"configured", journal.DiskSpace{Free: gib, Total: 80 << 20}, 5, 5},
		{"larger than the disk", journal.DiskSpace{Free: gib, Total: 80 << 20}, 1 << 50, 1 << 50},
		{"huge disk", journal.DiskSpace{Free: 1<<64 - 1, Total: 1<<64 - 1}, 0, 256 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &fakeDisk{space: tt.space}
			fx := fixtureConfig{wrapStore: d.wrap}.open(t)
			if err := fx.ApplyConfig(runtime.OrgConfig{Storage: runtime.StorageLimits{DiskReserve: tt.configured}}); err != nil {
				t.Fatal(err)
			}
			if got := fx.CurrentLoad().DiskReserve; got != tt.want {
				t.Errorf("got a reserve of %d, want %d", got, tt.want)
			}
			if err := fx.CheckStorage(); (err == nil) != (tt.want <= gib) {
				t.Errorf("got %v with a reserve of %d and %d free", err, tt.want, tt.space.Free)
			}
		})
	}
}

// A system that does not report the free space has no reserve, and the log says so. Any
// other error refuses work.
func TestDiskReserve_UnknownSpace(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want errcode.Code
		log  string
	}{
		{fmt.Errorf("statfs: %w", errors.ErrUnsupported), "", "there is no disk reserve"},
		{syscall.EIO, errcode.StorageLow, "input/output error"},
	} {
		var log strings.Builder
		d := &fakeDisk{err: tt.err}
		fx := fixtureConfig{wrapStore: d.wrap, configure: func(c *runtime.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }}.open(t)
		for range 3 {
			if err := fx.CheckStorage(); errcode.CodeOf(err) != tt.want {
				t.Errorf("%v: got %v, want code %q", tt.err, err, tt.want)
			}
		}
		if strings.Count(log.String(), tt.log) != 1 {
			t.Errorf("%v: the log is %s", tt.err, &log)
		}
	}
}

func TestDiskReserve_LooksAtMostOnceInFiveMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{}
		d.set(gib)
		fx := fixtureConfig{wrapStore: d.wrap}.open(t)
		for range 10_000 {
			if err := fx.CheckStorage(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Microsecond)
		}
		if n := d.looks.Load(); n > 3 {
			t.Errorf("%d looks at the disk in 10 ms", n)
		}
	})
}

// fillingDisk is a disk of a fixed size that only the data file uses.
type fillingDisk struct {
	journal.Store
	dir  string
	size atomic.Uint64
	most atomic.Uint64 // that was used
}

func (d *fillingDisk) wrap(s journal.Store) journal.Store {
	d.Store = s
	return d
}

func (d *fillingDisk) used() uint64 {
	var s syscall.Stat_t
	if err := syscall.Stat(filepath.Join(d.dir, persist.FileName), &s); err != nil {
		panic(err)
	}
	return uint64(s.Blocks) * 512
}

// DiskSpace implements journal.DiskStore.
func (d *fillingDisk) DiskSpace() (journal.DiskSpace, error) {
	size := d.size.Load()
	return journal.DiskSpace{Free: size - min(size, d.used()), Total: size}, nil
}

// Commit implements journal.Log.
func (d *fillingDisk) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	seq, err := d.Store.Commit(ctx, b)
	for used := d.used(); ; {
		if most := d.most.Load(); used <= most || d.most.CompareAndSwap(most, used) {
			return seq, err
		}
	}
}

// Agents and a caller that fill a small disk with artifacts stay within it. The agents
// rest, the caller is refused, and with more space all of them go on.
func TestDiskReserve_ArtifactsDoNotFillDisk(t *testing.T) {
	cases := []struct {
		disk uint64
		size int // of an artifact
	}{{16 << 20, 200 << 10}, {80 << 20, 7 << 20}}
	for _, c := range cases[:short.Count(1, len(cases))] {
		t.Run(fmt.Sprint("a disk of ", c.disk>>20, " MiB"), func(t *testing.T) {
			dir := fastTempDir(t)
			synctest.Test(t, func(t *testing.T) {
				d := &fillingDisk{dir: dir}
				d.size.Store(c.disk)
				args := mustJSON(obj{"type": "t", "content": strings.Repeat("x", c.size)})
				var ended atomic.Bool
				m := answerFunc(func(model.Request) model.Answer {
					if ended.Load() {
						return endWith("done")
					}
					return callTools("put_artifact", args, "put_artifact", args)
				})
				fx := fixtureConfig{dir: dir, model: m, wrapStore: d.wrap, configure: func(c *runtime.Config) { c.Rounds = 1 << 20 }}.open(t)
				task, ann := fx.workerTask(t, ""), fx.createCaller(t, "artifact")
				tasks := []identity.TaskID{fx.start(t, task), fx.start(t, task)}
				var err error
				for err == nil {
					_, err = fx.InvokeTool(t.Context(), ann, "put_artifact", args)
				}
				if errcode.CodeOf(err) != errcode.StorageLow {
					t.Errorf("the caller got %v, want storage_low", err)
				}
				time.Sleep(time.Minute) // in synctest's time: until the agents rest
				if most := d.most.Load(); most > c.disk || most < c.disk/4 {
					t.Errorf("%d bytes of %d were used", most, c.disk)
				}
				if n := len(eventsOf[journal.TurnFailed](t, fx)); n > 0 {
					t.Errorf("%d turns failed", n)
				}
				ended.Store(true)
				d.size.Store(1 << 40)
				for _, id := range tasks {
					fx.wantResult(t, fx.wait(t, id), `"done"`, "")
				}
				if a := fx.invoke(t, ann, "put_artifact", args); a.Code() != "" {
					t.Errorf("with room the caller got %s", a.Code())
				}
				fx.shutdown(t)
			})
		})
	}
}

// Calls that end at the same time with large results stay within a small disk. What does
// not fit is recorded as a preview without an artifact.
func TestDiskReserve_ConcurrentResultsDoNotFillDisk(t *testing.T) {
	disk, calls := uint64(short.Count(28<<20, 48<<20)), short.Count(10, 24)
	dir := fastTempDir(t)
	synctest.Test(t, func(t *testing.T) {
		d := &fillingDisk{dir: dir}
		d.size.Store(disk)
		var n atomic.Int32
		all := make(chan struct{}) // closed when all calls run
		big := newTool(t, "big", tool.Options{}, func(context.Context, obj) (any, error) {
			i := int(n.Add(1))
			if i == calls {
				close(all)
			}
			<-all
			return fmt.Sprint(i) + strings.Repeat("x", 3_800_000), nil
		})
		fx := fixtureConfig{dir: dir, tools: []tool.Tool{big}, wrapStore: d.wrap}.open(t)
		ann := fx.createCaller(t, "probe")
		var done sync.WaitGroup
		for range calls {
			done.Go(func() {
				if a, err := fx.InvokeTool(t.Context(), ann, "big", nil); err != nil || a.Code() != "" || len(a.Result.JSON()) < 3_800_000 {
					t.Errorf("the caller got %v, %v", a, err)
				}
			})
		}
		done.Wait()
		stored := 0
		for _, e := range eventsOf[journal.ToolResult](t, fx) {
			if strings.Contains(string(e.Body.(journal.ToolResult).Result), "artifactRef") {
				stored++
			}
		}
		if most := d.most.Load(); most > disk || stored == 0 || stored == calls {
			t.Errorf("%d bytes of %d were used, and %d of %d results were stored", most, disk, stored, calls)
		}
		fx.shutdown(t)
	})
}

// Models that answer at the same time at length stay within a small disk. The answers that
// do not fit wait, with those of the tasks' ends, and are recorded when there is room.
func TestDiskReserve_ConcurrentAnswersDoNotFillDisk(t *testing.T) {
	disk, tasks := uint64(short.Count(28<<20, 48<<20)), short.Count(5, 8)
	dir := fastTempDir(t)
	synctest.Test(t, func(t *testing.T) {
		d := &fillingDisk{dir: dir}
		d.size.Store(disk)
		text := strings.Repeat("x", 3_000_000)
		var asked atomic.Int32
		m := modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
			asked.Add(1)
			time.Sleep(time.Second) // in synctest's time: all answers arrive together
			return endWith(text), nil
		})
		fx := fixtureConfig{dir: dir, model: m, wrapStore: d.wrap}.open(t)
		spec := fx.workerTask(t, "")
		ids := make([]identity.TaskID, tasks)
		for i := range ids {
			ids[i] = fx.start(t, spec)
		}
		time.Sleep(time.Minute) // until the agents rest
		if most := d.most.Load(); most > disk {
			t.Errorf("%d bytes of %d were used", most, disk)
		}
		if n := len(eventsOf[journal.TaskEnded](t, fx)); n == tasks {
			t.Error("all tasks have ended: the disk is too large for this test")
		}
		d.size.Store(1 << 40)
		for _, id := range ids {
			fx.wantResult(t, fx.wait(t, id), string(mustJSON(text)), "")
		}
		if int(asked.Load()) != tasks {
			t.Errorf("models were asked %d times for %d tasks", asked.Load(), tasks)
		}
		fx.shutdown(t)
	})
}

// A script gets complete results. One that the disk has no room for becomes an error,
// which is recorded.
func TestDiskReserve_ResultOfScriptWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDisk{}
		d.set(gib)
		fill := newTool(t, "fill", tool.Options{}, func(context.Context, obj) (any, error) {
			d.set(0)
			d.expire()
			return strings.Repeat("x", 3_800_000), nil
		})
		fx := fixtureConfig{tools: []tool.Tool{fill}, model: callOnce("fill"), wrapStore: d.wrap}.open(t)
		id := fx.start(t, fx.workerTask(t, ""))
		time.Sleep(time.Minute) // until the agent rests
		list := bodiesOf[journal.ToolError](t, fx)
		if len(list) != 1 || list[0].Code != errcode.StorageLow || !strings.Contains(string(list[0].Result), "has run") {
			t.Errorf("recorded %.300v", list)
		}
		d.set(gib)
		fx.wait(t, id)
	})
}

// Programs see what is free and held by nothing.
func TestDiskReserve_OfPrograms(t *testing.T) {
	d := &fakeDisk{}
	d.set(gib)
	var space workspace.DiskSpace
	var fx *fixture
	var ann identity.Principal
	look := newTool(t, "look", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		ws, err := fx.ToolHost().OpenWorkspace(ctx, ann)
		if err == nil {
			space = ws.DiskSpace()
			err = ws.Root.Close()
		}
		return "looked", err
	})
	fx = fixtureConfig{tools: []tool.Tool{look}, wrapStore: d.wrap, configure: func(c *runtime.Config) { c.Workspaces = t.TempDir() }}.open(t)
	ann = fx.createCaller(t, "probe")
	if a := fx.invoke(t, ann, "look", obj{}); a.Code() != "" {
		t.Fatal(a.Result.Text)
	}
	if space.Reserve != 256<<20 || space.Free > gib-64<<10 || space.Free < gib-gib/10 {
		t.Errorf("a program sees %+v; want 1 GiB without what the call holds, and the reserve", space)
	}
}

// While the disk is nearly full, a driver is told so and records nothing.
func TestDriver_BelowDiskReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &fakeDisk{}
		disk.set(gib)
		fx := fixtureConfig{model: worker(t), wrapStore: disk.wrap}.open(t)
		d := fx.drive(t, org.TaskSpec{})
		defer d.Close()
		spawnWorker(t, d, "clerk")
		synctest.Wait()
		disk.set(256<<20 - 1)
		disk.expire()
		before := len(fx.events(t))
		_, call := d.Call(t.Context(), "create_role", mustJSON(obj{"name": "x", "rolePrompt": "x"}))
		_, receive := d.Receive(t.Context())
		for _, err := range []error{call, receive, d.End(t.Context(), json.RawMessage(`1`))} {
			wantCode(t, "without room", err, errcode.StorageLow)
		}
		if after := len(fx.events(t)); after != before {
			t.Errorf("%d events were recorded", after-before)
		}
		disk.set(gib)
		disk.expire()
		if list, err := d.Receive(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("received %+v, %v", list, err)
		}
	})
}

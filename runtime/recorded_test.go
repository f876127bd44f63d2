package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

const mib = 1 << 20

// artifactArgs returns arguments of put_artifact with that many bytes of content.
func artifactArgs(bytes int) any {
	return mustJSON(obj{"type": "t", "content": strings.Repeat("x", bytes)})
}

// putForever is a model that stores artifacts of that many bytes for ever.
func putForever(bytes int) answerFunc {
	args := artifactArgs(bytes)
	return func(model.Request) model.Answer { return callTools("put_artifact", args) }
}

// limit makes storage limits active.
func (fx *fixture) limit(t *testing.T, s runtime.StorageLimits) {
	t.Helper()
	if err := fx.ApplyConfig(runtime.OrgConfig{KeepRoles: true, Storage: s}); err != nil {
		t.Fatal(err)
	}
}

// recordedOf returns the stored counter of a task.
func (fx *fixture) recordedOf(t *testing.T, id identity.TaskID) string {
	t.Helper()
	value, err := fx.store.ReadRecord(t.Context(), "recorded", "task/"+string(id))
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

// A task that records without end fails at its limit. Other tasks go on.
func TestRecordedPerTask_EndsTask(t *testing.T) {
	fill := putForever(100 << 10)
	fx := fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
		if strings.Contains(string(messages(r)[0].Payload), "small") {
			return endWith("done")
		}
		return fill(r)
	})}.open(t)
	fx.limit(t, runtime.StorageLimits{RecordedPerTask: mib})
	spec := fx.workerTask(t, "")
	task := fx.run(t, spec)
	fx.wantResult(t, task, "", errcode.QuotaExceeded)
	if used := fx.CurrentLoad().Recorded; used < mib || used > mib+mib/4 {
		t.Errorf("%d bytes were recorded, want about %d", used, mib)
	}
	denied := 0
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		if c.Code == errcode.QuotaExceeded {
			denied++
		}
	}
	if denied == 0 {
		t.Error("no call was denied before the limit was reached")
	}
	if got := fx.recordedOf(t, task.ID); got != "" {
		t.Errorf("the ended task still has the counter %s", got)
	}
	spec.Text = "small"
	fx.wantResult(t, fx.run(t, spec), `"done"`, "")
}

// A caller's calls and tasks count together. At its limit nothing of it is recorded any
// more. Other callers go on, and so does the caller under a higher limit.
func TestRecordedPerCaller_RefusesCaller(t *testing.T) {
	fx := fixtureConfig{model: putForever(100 << 10)}.open(t)
	fx.limit(t, runtime.StorageLimits{RecordedPerCaller: mib})
	ann := fx.createCaller(t, "artifact")
	bob := identity.ByCaller("bob", ann.Role)
	id := fx.start(t, org.TaskSpec{Text: "t", Caller: ann, Role: string(ann.Role)})
	if task := fx.wait(t, id); task.Error == nil || task.Error.Code != errcode.QuotaExceeded {
		t.Fatalf("the task ended with %s %v", task.Status, task.Error)
	}
	before := len(fx.events(t))
	_, callErr := fx.InvokeTool(t.Context(), ann, "put_artifact", nil)
	_, taskErr := fx.StartTask(t.Context(), org.TaskSpec{Text: "t", Caller: ann, Role: string(ann.Role)})
	promptErr := fx.RecordPrompt(t.Context(), ann, "p", nil)
	for _, err := range []error{callErr, taskErr, promptErr} {
		if errcode.CodeOf(err) != errcode.QuotaExceeded {
			t.Errorf("at its limit the caller got %v, want quota_exceeded", err)
		}
	}
	if now := len(fx.events(t)); now != before {
		t.Errorf("%d events were recorded for a caller at its limit", now-before)
	}
	small := obj{"type": "t", "content": 1}
	if code := fx.invokeCode(t, bob, "put_artifact", small); code != "" {
		t.Errorf("another caller got %s", code)
	}
	fx.limit(t, runtime.StorageLimits{RecordedPerCaller: 2 * mib})
	if code := fx.invokeCode(t, ann, "put_artifact", small); code != "" {
		t.Errorf("under a higher limit the caller got %s", code)
	}
	if code := fx.invokeCode(t, ann, "put_artifact", artifactArgs(mib)); code != errcode.QuotaExceeded {
		t.Errorf("a call that does not fit got %q, want quota_exceeded", code)
	}
}

// At the limit of the organization, agents rest and callers are refused until it is
// raised. A limit below what is recorded breaks nothing.
func TestRecorded_LimitOfOrganizationRests(t *testing.T) {
	dir := fastTempDir(t)
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		fill := putForever(100 << 10)
		m := answerFunc(func(r model.Request) model.Answer {
			if ended.Load() {
				return endWith("done")
			}
			return fill(r)
		})
		fx := fixtureConfig{dir: dir, model: m}.open(t)
		fx.limit(t, runtime.StorageLimits{Recorded: 2 * mib})
		spec, ann := fx.workerTask(t, ""), fx.createCaller(t, "artifact")
		id := fx.start(t, spec)
		time.Sleep(time.Minute) // in synctest's time
		if used := fx.CurrentLoad().Recorded; used < mib || used > 2*mib {
			t.Errorf("%d bytes were recorded, want about %d", used, 2*mib)
		}
		fx.limit(t, runtime.StorageLimits{Recorded: 1})
		time.Sleep(time.Minute)
		_, err := fx.InvokeTool(t.Context(), ann, "put_artifact", nil)
		if errcode.CodeOf(err) != errcode.StorageLow || errcode.CodeOf(fx.CheckStorage()) != errcode.StorageLow {
			t.Errorf("the caller got %v, want storage_low", err)
		}
		ended.Store(true)
		fx.limit(t, runtime.StorageLimits{})
		fx.wantResult(t, fx.wait(t, id), `"done"`, "")
		fx.shutdown(t)
	})
}

// The counters survive a restart, to within 64 KiB each.
func TestRecorded_SurvivesRestart(t *testing.T) {
	dir := fastTempDir(t)
	fx := openFixture(t, dir, nil)
	ann := fx.createCaller(t, "artifact")
	for range 5 {
		fx.invoke(t, ann, "put_artifact", artifactArgs(100<<10))
	}
	before := fx.CurrentLoad().Recorded
	fx.shutdown(t)
	fx = openFixture(t, dir, nil)
	if now := fx.CurrentLoad().Recorded; now > before || now < before-64<<10 || before < 1000<<10 {
		t.Errorf("%d bytes recorded before the restart, %d after it", before, now)
	}
	fx.limit(t, runtime.StorageLimits{RecordedPerCaller: mib / 2})
	if _, err := fx.InvokeTool(t.Context(), ann, "put_artifact", nil); errcode.CodeOf(err) != errcode.QuotaExceeded {
		t.Errorf("after the restart the caller got %v, want quota_exceeded", err)
	}
}

// A damaged counter refuses, until the limit is raised above it.
func TestRecorded_DamagedCounterRefuses(t *testing.T) {
	for _, value := range []string{"", "x", "-1", "1e3", "9223372036854775807"} {
		dir := fastTempDir(t)
		fx := openFixture(t, dir, nil)
		if _, err := fx.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: "recorded", Key: "organization", Value: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
		fx.shutdown(t)
		fx = openFixture(t, dir, nil)
		if err := fx.CheckStorage(); errcode.CodeOf(err) != errcode.StorageLow {
			t.Errorf("%q: got %v, want storage_low", value, err)
		}
		fx.limit(t, runtime.StorageLimits{Recorded: 1 << 60})
		if err := fx.CheckStorage(); err != nil {
			t.Errorf("%q, with a higher limit: %v", value, err)
		}
	}
}

// What is counted is what is stored: characters that JSON escapes count with their
// escapes.
func TestRecorded_CountsStoredBytes(t *testing.T) {
	fx := fixtureConfig{}.open(t)
	ann := fx.createCaller(t, "artifact")
	before := fx.CurrentLoad().Recorded
	fx.invoke(t, ann, "put_artifact", obj{"type": "t", "content": strings.Repeat("\x01", 10<<10)})
	if got := fx.CurrentLoad().Recorded - before; got < 2*60<<10 || got > 3*60<<10 {
		t.Errorf("%d bytes were counted, want those of the arguments and of the artifact: about %d", got, 2*60<<10)
	}
}

// The size of files about a task counts too.
func TestCountFileBytes_CountsForTask(t *testing.T) {
	fx := fixtureConfig{model: streamingModel(func(ctx context.Context, _ model.Request, _ func(model.AnswerDelta)) (model.Answer, error) {
		<-ctx.Done() // the task must not end, because the files of one that has ended count for the organization alone
		return model.Answer{}, context.Cause(ctx)
	})}.open(t)
	fx.limit(t, runtime.StorageLimits{RecordedPerTask: mib})
	id := fx.start(t, org.TaskSpec{Text: "t"})
	written, err := 0, error(nil)
	for ; err == nil; written++ {
		err = fx.CountFileBytes(id, 100<<10)
	}
	if errcode.CodeOf(err) != errcode.QuotaExceeded || written != 11 {
		t.Errorf("file %d got %v, want quota_exceeded for file 11", written, err)
	}
}

// Files about a caller's task count for the caller, also if nothing else does after a restart.
func TestCountFileBytes_CountsForCallerAfterRestart(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t), model: answerFunc(func(model.Request) model.Answer { return waitForMessage() })}
	fx := cfg.open(t)
	ann := fx.createCaller(t, "artifact")
	id := fx.start(t, org.TaskSpec{Text: "t", Caller: ann, Role: string(ann.Role)})
	fx.shutdown(t)
	fx = cfg.open(t)
	fx.limit(t, runtime.StorageLimits{RecordedPerCaller: mib})
	written, err := 0, error(nil)
	for ; err == nil && written < 20; written++ {
		err = fx.CountFileBytes(id, 100<<10)
	}
	if errcode.CodeOf(err) != errcode.QuotaExceeded || written > 12 {
		t.Errorf("file %d got %v, want quota_exceeded for file 12 at most", written, err)
	}
}

// An owner of tool groups that replaces its value counts what is stored, not what was
// written: an external server may change its definitions all the time.
func TestRecorded_CountsReplacedValueOnce(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t)}
	fx := cfg.open(t)
	write := func(size, times int) {
		t.Helper()
		for i := range times {
			if err := fx.OwnerStore().WriteValue(t.Context(), "mcp/server", []byte(fmt.Sprintf("%0*d", size, i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	recorded := func() int64 { return fx.CurrentLoad().Recorded }
	before := recorded()
	write(100<<10, 20)
	if n := recorded() - before; n != 100<<10 {
		t.Errorf("20 values of 100 KiB count %d bytes", n)
	}
	write(0, 1)
	write(150<<10, 20)
	if n := recorded() - before; n != 150<<10 {
		t.Errorf("with 20 values of 150 KiB %d bytes count", n)
	}
	stored := recorded()
	fx.shutdown(t)
	fx = cfg.open(t)
	write(150<<10, 20)
	if n := recorded(); n > stored {
		t.Errorf("after a restart %d bytes count, before %d", n, stored)
	}
}

package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// oldTaskFields are the fields that the record of a task had before tasks could be paused,
// retried and given a deadline, a budget or a schema.
var oldTaskFields = []string{
	"id", "text", "caller", "agent", "callerRole", "ceiling", "groups", "hosts", "state", "workspace", "readOnly", "config",
	"status", "result", "error", "createdAt", "endedAt", "firstSeq", "key",
}

// writeOldRecords removes from the records of all tasks what older versions did not write.
func writeOldRecords(t *testing.T, store journal.Store) {
	t.Helper()
	var old []journal.Record
	for r, err := range store.ReadRecords(t.Context(), string(org.KindTask), "") {
		fields := map[string]json.RawMessage{}
		if err == nil {
			err = json.Unmarshal(r.Value, &fields)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name := range fields {
			if !slices.Contains(oldTaskFields, name) {
				delete(fields, name)
			}
		}
		if r.Value, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		old = append(old, journal.Record{Kind: string(org.KindTask), Key: r.Key, Value: r.Value})
	}
	if _, err := store.Commit(t.Context(), &journal.Batch{Put: old}); err != nil {
		t.Fatal(err)
	}
}

// Tasks that an older version recorded, in each of its states, are shown as they ended. One
// that ran goes on, and those that failed or were cancelled can be retried.
func TestOpen_TasksOfOlderVersion(t *testing.T) {
	started := make(chan struct{}, 2)
	slow := newTool(t, "slow", tool.Options{Effect: tool.ReadOnly}, func(ctx context.Context, _ obj) (any, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	before := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{slow}, model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		switch string(r.Items[0].Message.Payload) {
		case `{"text":"done"}`:
			return endWith("finished"), nil
		case `{"text":"failed"}`:
			return model.Answer{}, errcode.New(errcode.LLMCallFailed, "no luck")
		}
		return callTools("slow", obj{}), nil
	})}
	fx := before.open(t)
	ids := map[org.TaskStatus]identity.TaskID{}
	for _, status := range []org.TaskStatus{org.Done, org.Failed, org.Cancelled, org.Running} {
		spec := fx.groupTask(t, "probe")
		spec.Text = string(status)
		ids[status] = fx.start(t, spec)
		switch status {
		case org.Cancelled:
			<-started
			if err := fx.CancelTask(t.Context(), ids[status], "enough"); err != nil {
				t.Fatal(err)
			}
		case org.Running:
			<-started
		default:
			fx.wait(t, ids[status])
		}
	}
	fx.Close()
	writeOldRecords(t, fx.store)
	fx.shutdown(t)

	after := before
	after.model, after.tools = answerFunc(func(model.Request) model.Answer { return endWith("done now") }), []tool.Tool{newTool(t, "slow", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return "quick", nil })}
	fx = after.open(t)
	for status, id := range ids {
		task, err := fx.TaskRecord(t.Context(), id)
		if err != nil || task.Status != status {
			t.Errorf("%s: %+v, %v", status, task, err)
		}
	}
	done, _ := fx.TaskRecord(t.Context(), ids[org.Done])
	fx.wantResult(t, done, `"finished"`, "")
	if err := fx.RetryTask(t.Context(), done.ID, operator, org.ModelAllowance{}); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("a retry of a task that is done: %v", err)
	}
	fx.resume(t, ids[org.Running])
	fx.wantResult(t, fx.wait(t, ids[org.Running]), `"done now"`, "")
	for _, status := range []org.TaskStatus{org.Failed, org.Cancelled} {
		if err := fx.RetryTask(t.Context(), ids[status], operator, org.ModelAllowance{}); err != nil {
			t.Errorf("%s: %v", status, err)
			continue
		}
		fx.wantResult(t, fx.wait(t, ids[status]), `"done now"`, "")
	}
}

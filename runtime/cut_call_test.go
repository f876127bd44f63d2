package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// cutAnswer returns an answer that was cut off in the arguments of its second call.
func cutAnswer() model.Answer {
	a := callTools("look", obj{}, "put_artifact", json.RawMessage(`"{\"type\":\"a\",\"content\":\"once up"`))
	a.Stop, a.Usage = model.Length, model.TokenUsage{Input: 10, Output: 256}
	return a
}

// A model learns that its answer was cut off, and not only that its JSON is broken. So it does
// when the process ended before the call was decided.
func TestAgent_CutCallSaysSo(t *testing.T) {
	dir := fastTempDir(t)
	var got []model.CallResult
	m := answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return cutAnswer()
		}
		got = results(r)
		return endWith("done")
	})
	look := newTool(t, "look", tool.Options{Effect: tool.Mutating}, func(context.Context, obj) (any, error) { return "seen", nil })
	reached := make(chan struct{})
	first := fixtureConfig{dir: dir, model: m, tools: []tool.Tool{look}, wrapStore: func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			for _, e := range b.Events {
				if c, ok := e.Body.(journal.ToolCall); ok && c.Tool == "put_artifact" {
					close(reached)
					return 0, errKilled
				}
			}
			return s.Commit(ctx, b)
		}}
	}}.open(t)
	id := first.start(t, first.workerTask(t, ""))
	first.waitReached(t, id, reached)
	first.shutdown(t)

	second := fixtureConfig{dir: dir, model: m, tools: []tool.Tool{look}}.open(t)
	second.resume(t, id)
	second.wait(t, id)
	if len(got) != 2 || got[0].IsError {
		t.Fatalf("got %s, want two results", mustJSON(got))
	}
	want := "your answer was cut off at its limit of 256 tokens, in the middle of this call of put_artifact"
	if text := gjson.GetBytes(got[1].Content, "message").Str; !strings.Contains(text, want) {
		t.Errorf("got %q, want %q", text, want)
	}
}

// The record of a denial has the reason, without the advice that the model reads.
func TestAgent_RecordOfDenialHasReason(t *testing.T) {
	fx := fixtureConfig{model: answerOnce(callTools("no_such", obj{}))}.open(t)
	fx.run(t, fx.workerTask(t, ""))
	if c := bodiesOf[journal.ToolCall](t, fx)[0]; c.Reason != "there is no tool no_such" {
		t.Errorf("got the reason %q", c.Reason)
	}
	if r := bodiesOf[journal.ToolError](t, fx)[0]; !strings.Contains(string(r.Result), "Your tools: ") {
		t.Errorf("got the result %s", r.Result)
	}
}

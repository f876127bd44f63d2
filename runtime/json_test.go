package runtime_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// jsonDocuments returns JSON documents, some of which encoding/json would write
// differently.
func jsonDocuments(t *testing.T) []json.RawMessage {
	list := []json.RawMessage{
		[]byte(`{}`), []byte(` {} `), []byte(`{"a": 1}`), []byte(`{"a":"two words, \"quoted\" \\"}`), []byte(`{"a":"\\\\","b" :1}`),
		[]byte(`{"a":"<b>&"}`), []byte("{\"a\":\"\u2028 and \u2029\"}"), []byte(`{"a":"— â é"}`), []byte("{\"a\":[1,\n2]}"), []byte(`{"a":1e5}`),
	}
	const seed = 5
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	pieces := []string{`\"`, `\\`, " ", "<", "&", "\u2028", "—", "x", ":", ",", "{", "]", `\u003c`, "\u00a0"}
	for range 200 {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		gap := strings.Repeat(" ", r.IntN(2))
		list = append(list, json.RawMessage(`{"a":`+gap+`"`+b.String()+`"`+gap+`}`))
	}
	return list
}

// A restarted process sends the model the same request: arguments and results
// are those of the journal, byte for byte.
func TestNormalizeJSON_RequestEqualsJournal(t *testing.T) {
	docs := jsonDocuments(t)
	next := 0
	tell := newTool(t, "tell", tool.Options{}, func(context.Context, obj) (any, error) {
		next++
		return tool.Result{Structured: slices.Clone(docs[next-1])}, nil
	})
	var args, results []string
	asks := model.Answer{Finish: model.FinishToolCalls}
	for _, doc := range docs {
		asks.Calls = append(asks.Calls, model.Call{Name: "tell", Args: slices.Clone(doc)})
	}
	fx := fixtureConfig{tools: []tool.Tool{tell}, model: answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return asks
		}
		for _, item := range r.Items {
			switch {
			case item.Answer != nil:
				for _, c := range item.Answer.Calls {
					args = append(args, string(c.Args))
				}
			case item.Result != nil:
				results = append(results, string(item.Result.Content))
			}
		}
		return endWith("done")
	})}.open(t)
	fx.wantResult(t, fx.run(t, fx.workerTask(t, "")), `"done"`, "")
	var kept []string
	for _, b := range bodiesOf[journal.ToolResult](t, fx) {
		kept = append(kept, string(b.Result))
	}
	if diff := cmp.Diff(results, kept); diff != "" || len(kept) != len(docs) {
		t.Errorf("%d results, sent before kept:\n%s", len(kept), diff)
	}
	kept = nil
	for _, c := range bodiesOf[journal.ModelAnswered](t, fx)[0].Answer.Calls {
		kept = append(kept, string(c.Args))
	}
	if diff := cmp.Diff(args, kept); diff != "" || len(kept) != len(docs) {
		t.Errorf("%d calls, sent before kept:\n%s", len(kept), diff)
	}
}

package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// isSummaryRequest reports whether a request asks for a summary.
func isSummaryRequest(r model.Request) bool {
	return strings.HasPrefix(r.System, "You are summing up your own conversation") ||
		strings.HasPrefix(r.Note, "You are summing up your own conversation")
}

// fillTool returns a tool whose result is a text of n letters.
func fillTool(t *testing.T) tool.Tool {
	return newTool(t, "fill", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) {
		n, _ := in["n"].(float64)
		return strings.Repeat("x", int(n)), nil
	})
}

// withUsage sets the token count of an answer.
func withUsage(a model.Answer, input int) model.Answer {
	a.Usage = model.TokenUsage{Input: input, Output: 10}
	return a
}

// When a request would fill nine tenths of the context window, the agent's own
// model is first asked for a summary, in a request that begins as the one before. The next request has the
// summary in place of the older items, and an unchanged brief.
func TestCompress_FullConversationIsSummarized(t *testing.T) {
	for _, c := range []struct {
		name  string
		used  int // of 10,000
		wants bool
	}{
		{"below nine tenths", 8_900, false},
		{"from nine tenths on", 8_980, true}, // what was added since counts too
		{"more than the context window", 30_000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked modelRequests
			cfg := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{fillTool(t)}, model: withWindow(10_000, asked.model(func(_ context.Context, r model.Request, n int) (model.Answer, error) {
				switch {
				case r.Self.Role == "root":
					return delegate(r, "worker", "probe"), nil
				case isSummaryRequest(r):
					return withUsage(model.Answer{Finish: model.FinishEnd, Text: "so far so good"}, 4_000), nil
				case answerCount(r) == 0:
					return callTools("fill", obj{"n": 4_900}), nil
				case answerCount(r) == 1:
					return withUsage(callTools("fill", obj{"n": 100}), c.used), nil
				}
				return endWith("done"), nil
			}))}
			fx := cfg.open(t)
			fx.wantResult(t, fx.run(t, org.TaskSpec{}), `{"text":"done"}`, "")
			wantSummary(t, fx, workerRequests(asked.all()), c.wants)
			fx.shutdown(t)
			wantSummary(t, cfg.open(t), workerRequests(asked.all()), c.wants)
		})
	}
}

// workerRequests filters out the requests of root.
func workerRequests(list []model.Request) []model.Request {
	return slices.DeleteFunc(slices.Clone(list), func(r model.Request) bool { return r.Self.Role == "root" })
}

// wantSummary checks the requests and the record of a conversation that was
// compressed, or was not.
func wantSummary(t *testing.T, fx *fixture, asked []model.Request, wants bool) {
	t.Helper()
	kept := bodiesOf[journal.ContextCompressed](t, fx)
	if !wants {
		if len(kept) > 0 || slices.ContainsFunc(asked, isSummaryRequest) {
			t.Errorf("compressed %d times", len(kept))
		}
		return
	}
	if len(asked) != 4 || !isSummaryRequest(asked[2]) || isSummaryRequest(asked[3]) {
		t.Fatalf("%d requests", len(asked))
	}
	if summary, before := asked[2], asked[1]; !summary.NoCalls || !slices.Equal(summary.Tools, before.Tools) || summary.System != before.System || summary.Opening != before.Opening {
		t.Errorf("the summary request has the tools %v and the opening\n%s", summary.Tools, summary.Opening)
	}
	next := asked[3]
	if next.Compact == nil || next.Compact.Text != "so far so good" || next.Compact.Items == 0 {
		t.Fatalf("summary of the next request: %+v", next.Compact)
	}
	if !strings.Contains(next.Opening, "\nDone when: c\n") || len(next.Tools) == 0 || next.NoCalls {
		t.Errorf("the next request has tools %v and the opening\n%s", next.Tools, next.Opening)
	}
	want := []journal.ContextCompressed{{Summary: "so far so good", Items: next.Compact.Items, Usage: model.TokenUsage{Input: 4_000, Output: 10}}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// The output of a summary request is not an answer, so it is not shown to
// watchers.
func TestCompress_SummaryIsNotWatched(t *testing.T) {
	there := make(chan struct{})
	fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: streamingModel(func(_ context.Context, r model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
		<-there
		switch {
		case isSummaryRequest(r):
			say(model.AnswerDelta{Text: "in sum"})
			return endWith("in sum"), nil
		case r.Compact != nil:
			say(model.AnswerDelta{Text: "done"})
			return endWith("done"), nil
		}
		return withUsage(callTools("fill", obj{"n": 30_000}), 95_000), nil
	})}.open(t)
	id := fx.start(t, fx.groupTask(t, "probe"))
	var open bool
	got := fx.watchAll(t, t.Context(), id, func(journal.Event) {
		if !open {
			open = true
			close(there)
		}
	})
	if text := strings.Join(got, ", "); strings.Contains(text, "in sum") || !strings.Contains(text, "context_compressed, says done, model_answered") {
		t.Errorf("seen: %s", text)
	}
}

// Property: in every request that reaches the model, for any conversation and
// any window, each result directly follows the answer with its call. Messages
// that the model has not read are never summarized.
func TestCompress_KeepsCallsWithResultsProperty(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests, parameters.MaxSize, parameters.MaxShrinkCount = 60, 40, 60
	properties := gopter.NewProperties(parameters)
	properties.Property("calls and results stay together", prop.ForAll(func(tape []uint8, window int) string {
		return runCompressed(t, tape, window)
	}, gen.SliceOf(gen.UInt8()), gen.IntRange(1_500, 12_000)))
	properties.TestingRun(t)
}

// runCompressed runs a random conversation in a window and returns what is
// wrong with its requests.
func runCompressed(t *testing.T, tape []uint8, window int) (wrong string) {
	step := 0
	fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: withWindow(window, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		if problem := requestProblem(r); wrong == "" && problem != "" {
			wrong = fmt.Sprintf("request %d: %s", step, problem)
		}
		if isSummaryRequest(r) {
			return endWith(strings.Repeat("s", 1+step*7)), nil
		}
		if step >= len(tape) {
			return endWith("done"), nil
		}
		b := tape[step]
		step++
		size := []int{1, 40, 300, 900, 2_000}[b/50%5]
		switch b % 5 {
		case 0:
			return callTools("fill", obj{"n": size}, "fill", obj{"n": step}), nil
		case 1:
			return callTools("nobody_knows", obj{"n": step}, "fill", obj{"n": size}, "compress_context", obj{"summary": "own", "keepRecentCount": int(b % 7)}), nil
		case 2:
			return withUsage(callTools("fill", obj{"n": size}), window*int(b)/256), nil
		case 3:
			return model.Answer{}, errcode.New(errcode.ContextExceeded, "too long")
		}
		a := callTools("fill", obj{"n": size})
		a.Text = strings.Repeat("text ", size/4)
		return a, nil
	}))}.open(t)
	fx.createWorkerRole(t, "probe", "context")
	task := fx.run(t, org.TaskSpec{Role: "worker"})
	if code := errcode.ContextExceeded; wrong == "" && task.Error != nil && task.Error.Code != code {
		wrong = fmt.Sprintf("the task ended in %v", task.Error)
	}
	fx.shutdown(t)
	return wrong
}

// requestProblem returns a problem that makes a provider reject a request, or
// "".
func requestProblem(r model.Request) string {
	turns := chat.BuildTurns(r)
	for i, turn := range turns {
		if turn.Role == chat.Results && (i == 0 || len(turns[i-1].Calls) != len(turn.Results)) {
			return "results without their calls"
		}
		if turn.Role == chat.Results {
			for j, result := range turn.Results {
				if result.ID != turns[i-1].Calls[j].ID || strings.Contains(result.Text, "no outcome of this call is known") {
					return "a call without its result"
				}
			}
		}
		if len(turn.Calls) > 0 && (i+1 == len(turns) || turns[i+1].Role != chat.Results) {
			return "calls without results"
		}
	}
	if c := r.Compact; c != nil && c.Items < len(r.Items) && r.Items[c.Items].Result != nil {
		return "the cut is before a result"
	}
	return ""
}

func TestCompress_RejectsConversationThatCannotFit(t *testing.T) {
	for _, c := range []struct {
		name      string
		text      int // bytes of the task
		answer    func(r model.Request) model.Answer
		summaries int
	}{
		{"task longer than the window", 50_000, func(model.Request) model.Answer { return endWith("read it") }, 0},
		{"summary as long as what it replaces", 10, func(r model.Request) model.Answer {
			if isSummaryRequest(r) {
				return endWith(strings.Repeat("long ", 10_000))
			}
			return withUsage(callTools("fill", obj{"n": 4_000}), 9_900)
		}, 1},
		{"older part longer than the window", 10, func(model.Request) model.Answer {
			return model.Answer{Finish: model.FinishContinue, Text: strings.Repeat("long ", 10_000)}
		}, 0},
		{"recent part longer than the window", 10, func(r model.Request) model.Answer {
			if isSummaryRequest(r) {
				return endWith("sum")
			}
			a := callTools("fill", obj{"n": 4_000})
			a.Text = strings.Repeat("long ", 10_000)
			return a
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked modelRequests
			fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: withWindow(10_000, asked.model(func(_ context.Context, r model.Request, _ int) (model.Answer, error) {
				return c.answer(r), nil
			}))}.open(t)
			spec := fx.groupTask(t, "probe")
			spec.Text = strings.Repeat("x", c.text)
			task := fx.run(t, spec)
			fx.wantResult(t, task, "", errcode.ContextExceeded)
			if task.Error != nil && !strings.Contains(task.Error.Message, "context window is 10000") {
				t.Errorf("the reason is %q", task.Error.Message)
			}
			summaries := len(slices.DeleteFunc(slices.Clone(asked.all()), func(r model.Request) bool { return !isSummaryRequest(r) }))
			if summaries != c.summaries {
				t.Errorf("%d summaries, want %d", summaries, c.summaries)
			}
		})
	}
}

// A provider may count more tokens or have a smaller window than configured. If
// it rejects a request, the conversation is compressed once and the request is
// sent once more, unless there is nothing to compress.
func TestCompress_RetriesOnceWhenProviderRejects(t *testing.T) {
	refuse := errcode.New(errcode.ContextExceeded, "the provider says so")
	for _, c := range []struct {
		name     string
		refusals int
		first    bool // the first request is rejected
		want     []string
		result   string
		code     errcode.Code
	}{
		{"compression helps", 1, false, []string{"ask", "ask", "sum up", "ask"}, `"done"`, ""},
		{"compression does not help", 9, false, []string{"ask", "ask", "sum up", "ask"}, "", errcode.ContextExceeded},
		{"nothing to compress", 9, true, []string{"ask"}, "", errcode.ContextExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			refusals := 0
			fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: withWindow(100_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
				if isSummaryRequest(r) {
					got = append(got, "sum up")
					return endWith("sum"), nil
				}
				got = append(got, "ask")
				if answerCount(r) == 0 && !c.first {
					return callTools("fill", obj{"n": 3_000}, "fill", obj{"n": 2_000}), nil
				}
				if refusals < c.refusals {
					refusals++
					return model.Answer{}, refuse
				}
				return endWith("done"), nil
			}))}.open(t)
			fx.wantResult(t, fx.run(t, fx.groupTask(t, "probe")), c.result, c.code)
			if !slices.Equal(got, c.want) {
				t.Errorf("requests %v, want %v", got, c.want)
			}
		})
	}
}

// An invalid summary replaces nothing, and the turn fails with a reason.
func TestCompress_InvalidSummaryFailsTurn(t *testing.T) {
	for _, c := range []struct {
		name    string
		summary model.Answer
		err     error
		reason  string
		code    errcode.Code
	}{
		{"blank", model.Answer{Finish: model.FinishEnd, Text: " \n"}, nil, "empty summary", errcode.LLMCallFailed},
		{"a call", callTools("fill", obj{"n": 1}), nil, "empty summary", errcode.LLMCallFailed},
		{"a refusal", model.Answer{Finish: model.FinishEnd, Text: "I cannot help with that.", Stop: model.Refusal}, nil, "refused", errcode.LLMCallFailed},
		{"an error", model.Answer{}, errcode.New(errcode.RateLimited, "later"), "later", errcode.RateLimited},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: withWindow(10_000, modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
				if isSummaryRequest(r) {
					return c.summary, c.err
				}
				return withUsage(callTools("fill", obj{"n": 4_000}), 9_900), nil
			}))}.open(t)
			task := fx.run(t, fx.groupTask(t, "probe"))
			fx.wantResult(t, task, "", c.code)
			if task.Error != nil && !strings.Contains(task.Error.Message, c.reason) {
				t.Errorf("the reason is %q", task.Error.Message)
			}
			if n := len(bodiesOf[journal.ContextCompressed](t, fx)); n != 0 {
				t.Errorf("compressed %d times", n)
			}
		})
	}
}

// The window is that of the model of the agent's role.
func TestContextUsage_UsesWindowOfRoleModel(t *testing.T) {
	answer := answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("get_context_status", obj{})
		}
		return endWith(fmt.Sprint(lastResult(r)["maxTokens"], " ", lastResult(r)["status"]))
	})
	windows := map[string]model.Model{"small": withWindow(2_000, answer), "large": withWindow(50_000, answer), "": answer}
	fx := fixtureConfig{configure: func(c *runtime.Config) {
		c.Model = func(name string) (model.Model, error) { return windows[name], nil }
	}}.open(t)
	for name, want := range map[string]string{"small": `"2000 warning"`, "large": `"50000 normal"`, "": `"128000 normal"`} {
		spec := org.RoleSpec{Name: "role" + name, Model: name, Use: groupSet("context"), Prompt: strings.Repeat("long ", 1000)}
		if _, err := fx.CreateRole(t.Context(), newCall(operator), spec); err != nil {
			t.Fatal(err)
		}
		fx.wantResult(t, fx.run(t, org.TaskSpec{Role: spec.Name}), want, "")
	}
}

// A script is not asked for a summary, however long its conversation is.
func TestCompress_NeverAsksScript(t *testing.T) {
	var asked modelRequests
	fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: asked.model(func(_ context.Context, r model.Request, _ int) (model.Answer, error) {
		if answerCount(r) < 3 {
			return withUsage(callTools("fill", obj{"n": 300_000}), 500_000), nil
		}
		return endWith(fmt.Sprint(len(results(r)[0].Content))), nil
	})}.open(t)
	fx.wantResult(t, fx.run(t, fx.groupTask(t, "probe")), `"300002"`, "")
	if slices.ContainsFunc(asked.all(), isSummaryRequest) || len(bodiesOf[journal.ContextCompressed](t, fx)) > 0 {
		t.Error("it was asked for a summary")
	}
}

// After a restart a compressed agent sends the same request as before.
func TestCompress_SameRequestAfterRestart(t *testing.T) {
	var asked modelRequests
	stop := make(chan struct{})
	stopped := false
	cfg := fixtureConfig{dir: fastTempDir(t), tools: []tool.Tool{fillTool(t)}, model: withWindow(10_000, asked.model(func(ctx context.Context, r model.Request, _ int) (model.Answer, error) {
		switch {
		case isSummaryRequest(r):
			return endWith("sum <&> é"), nil
		case r.Compact == nil:
			return withUsage(callTools("fill", obj{"n": 4_000}), 9_900), nil
		case !stopped:
			stopped = true
			close(stop)
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		return endWith("done"), nil
	}))}
	fx := cfg.open(t)
	id := fx.start(t, fx.groupTask(t, "probe"))
	<-stop
	fx.shutdown(t)
	fx = cfg.open(t)
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
	list := asked.all()
	before, after := list[len(list)-2], list[len(list)-1]
	if diff := cmp.Diff(dumpRequest(before), dumpRequest(after)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if n := len(bodiesOf[journal.ContextCompressed](t, fx)); n != 1 {
		t.Errorf("compressed %d times", n)
	}
}

// dumpRequest returns the content of a request as text.
func dumpRequest(r model.Request) []string {
	list := []string{r.System, string(r.ToolJSON), fmt.Sprint(r.Compact)}
	for _, item := range r.Items {
		list = append(list, dumpItem(item))
	}
	return list
}

// Messages that the model has not read are not summarized, however long they
// are.
func TestCompress_KeepsUnreadMessages(t *testing.T) {
	unread := strings.Repeat("news", 7_000) // as many tokens
	ended := make(chan struct{})
	var asked modelRequests
	fx := fixtureConfig{tools: []tool.Tool{fillTool(t)}, model: withWindow(10_000, asked.model(func(ctx context.Context, r model.Request, n int) (model.Answer, error) {
		switch {
		case r.Self.Role == "root":
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		case isSummaryRequest(r):
			return endWith("sum"), nil
		case answerCount(r) == 0:
			return callTools("fill", obj{"n": 4_900}, "fill", obj{"n": 4_800}), nil
		}
		ended <- struct{}{}
		return endWith("read"), nil
	}))}.open(t)
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet("probe")})
	fx.send(t, agent, `"begin"`)
	<-ended
	fx.send(t, agent, `"`+unread+`"`)
	<-ended
	list := workerRequests(asked.all())
	summary, next := list[len(list)-2], list[len(list)-1]
	if !isSummaryRequest(summary) || slices.ContainsFunc(messages(summary), func(m model.Message) bool { return strings.Contains(string(m.Payload), unread) }) {
		t.Error("the unread message is in the summary request, or there is none")
	}
	turns := chat.BuildTurns(next)
	if last := turns[len(turns)-1]; next.Compact == nil || last.Role != chat.User || !strings.Contains(last.Text, unread) {
		t.Errorf("the next request has the summary %v and ends in %.100s", next.Compact, last.Text)
	}
}

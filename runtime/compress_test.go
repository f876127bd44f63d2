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

// sumsUp says whether a request wants a summary.
func sumsUp(r model.Request) bool {
	return strings.HasPrefix(r.System, "You are summing up your own conversation")
}

// filler is a tool that answers n times a letter.
func filler(t *testing.T) tool.Tool {
	return probe(t, "fill", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) {
		n, _ := in["n"].(float64)
		return strings.Repeat("x", int(n)), nil
	})
}

// counted is an answer whose provider counted some tokens.
func counted(a model.Answer, input int) model.Answer {
	a.Usage = model.Usage{Input: input, Output: 10}
	return a
}

// Before the request that would fill nine tenths of the window the agent's own
// model is asked, without tools, to sum up; the next request has the summary in
// the place of what is older, and the brief as before.
func TestAFullConversationIsSummedUpByItsOwnModel(t *testing.T) {
	for _, c := range []struct {
		name  string
		used  int // of 10,000
		wants bool
	}{
		{"below nine tenths nothing is", 8_900, false},
		{"from nine tenths on it is", 8_980, true}, // what came since counts too
		{"when more is used than the model reads", 30_000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked requests
			p := plan{dir: scratch(t), tools: []tool.Tool{filler(t)}, model: fluent(10_000, asked.of(func(_ context.Context, r model.Request, n int) (model.Answer, error) {
				switch {
				case r.Self.Role == "root":
					return manage(r, "worker", "probe"), nil
				case sumsUp(r):
					return counted(model.Answer{Finish: model.FinishEnd, Text: "so far so good"}, 4_000), nil
				case answers(r) == 0:
					return do("fill", obj{"n": 4_900}), nil
				case answers(r) == 1:
					return counted(do("fill", obj{"n": 100}), c.used), nil
				}
				return end("done"), nil
			}))}
			h := p.open(t)
			h.want(t, h.run(t, org.TaskSpec{}), `{"text":"done"}`, "")
			wantSummary(t, h, workers(asked.all()), c.wants)
			h.leave(t)
			wantSummary(t, p.open(t), workers(asked.all()), c.wants)
		})
	}
}

// workers keeps the requests of agents that are not root.
func workers(list []model.Request) []model.Request {
	return slices.DeleteFunc(slices.Clone(list), func(r model.Request) bool { return r.Self.Role == "root" })
}

func wantSummary(t *testing.T, h *house, asked []model.Request, wants bool) {
	t.Helper()
	kept := said[journal.ContextCompressed](t, h)
	if !wants {
		if len(kept) > 0 || slices.ContainsFunc(asked, sumsUp) {
			t.Errorf("compressed %d times", len(kept))
		}
		return
	}
	if len(asked) != 4 || !sumsUp(asked[2]) || sumsUp(asked[3]) {
		t.Fatalf("%d requests", len(asked))
	}
	if summary := asked[2]; summary.Tools != nil || summary.ToolJSON != nil || !strings.Contains(summary.System, `"completion_criteria": "c"`) {
		t.Errorf("the summary is asked for with tools %v and\n%s", summary.Tools, summary.System)
	}
	next := asked[3]
	if next.Compact == nil || next.Compact.Text != "so far so good" || next.Compact.Items == 0 {
		t.Fatalf("the next request has the summary %+v", next.Compact)
	}
	if !strings.Contains(next.System, `"completion_criteria": "c"`) || len(next.Tools) == 0 {
		t.Errorf("the next request has tools %v and\n%s", next.Tools, next.System)
	}
	want := []journal.ContextCompressed{{Summary: "so far so good", Items: next.Compact.Items, Usage: model.Usage{Input: 4_000, Output: 10}}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

// What a model writes to sum up is no answer: who watches is not shown it.
func TestASummaryIsNotShownAsAnAnswer(t *testing.T) {
	there := make(chan struct{})
	h := plan{tools: []tool.Tool{filler(t)}, model: speaker(func(_ context.Context, r model.Request, say func(model.Delta)) (model.Answer, error) {
		<-there
		switch {
		case sumsUp(r):
			say(model.Delta{Text: "in sum"})
			return end("in sum"), nil
		case r.Compact != nil:
			say(model.Delta{Text: "done"})
			return end("done"), nil
		}
		return counted(do("fill", obj{"n": 30_000}), 95_000), nil
	})}.open(t)
	id := h.start(t, h.role(t, "probe"))
	var open bool
	got := h.watched(t, t.Context(), id, func(journal.Event) {
		if !open {
			open = true
			close(there)
		}
	})
	if text := strings.Join(got, ", "); strings.Contains(text, "in sum") || !strings.Contains(text, "context_compressed, says done, model_answered") {
		t.Errorf("seen: %s", text)
	}
}

// Property: whatever a conversation is and however small the window, every
// request that reaches the model has each result directly behind the answer
// with its call, and what a model has not read is never summed up unread.
func TestWhateverIsCutCallsKeepTheirResults(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests, parameters.MaxSize, parameters.MaxShrinkCount = 60, 40, 60
	properties := gopter.NewProperties(parameters)
	properties.Property("calls and results stay together", prop.ForAll(func(tape []uint8, window int) string {
		return crowded(t, tape, window)
	}, gen.SliceOf(gen.UInt8()), gen.IntRange(1_500, 12_000)))
	properties.TestingRun(t)
}

// crowded plays a conversation in a window and says what was wrong with it.
func crowded(t *testing.T, tape []uint8, window int) (wrong string) {
	step := 0
	h := plan{tools: []tool.Tool{filler(t)}, model: fluent(window, mind(func(_ context.Context, r model.Request) (model.Answer, error) {
		if fault := misplaced(r); wrong == "" && fault != "" {
			wrong = fmt.Sprintf("request %d: %s", step, fault)
		}
		if sumsUp(r) {
			return end(strings.Repeat("s", 1+step*7)), nil
		}
		if step >= len(tape) {
			return end("done"), nil
		}
		b := tape[step]
		step++
		size := []int{1, 40, 300, 900, 2_000}[b/50%5]
		switch b % 5 {
		case 0:
			return do("fill", obj{"n": size}, "fill", obj{"n": step}), nil
		case 1:
			return do("nobody_knows", obj{"n": step}, "fill", obj{"n": size}, "compress_context", obj{"summary": "own", "keepRecentCount": int(b % 7)}), nil
		case 2:
			return counted(do("fill", obj{"n": size}), window*int(b)/256), nil
		case 3:
			return model.Answer{}, errcode.New(errcode.ContextExceeded, "too long")
		}
		a := do("fill", obj{"n": size})
		a.Text = strings.Repeat("text ", size/4)
		return a, nil
	}))}.open(t)
	h.workerRole(t, "probe", "context")
	task := h.run(t, org.TaskSpec{Role: "worker"})
	if code := errcode.ContextExceeded; wrong == "" && task.Error != nil && task.Error.Code != code {
		wrong = fmt.Sprintf("the task ended in %v", task.Error)
	}
	h.leave(t)
	return wrong
}

// misplaced says what a provider would refuse in a request.
func misplaced(r model.Request) string {
	turns := chat.Turns(r)
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

func TestAConversationThatCannotBeMadeToFitIsRefused(t *testing.T) {
	for _, c := range []struct {
		name      string
		text      int // bytes of the task
		think     func(r model.Request) model.Answer
		summaries int
	}{
		{"the task itself is longer than the window", 50_000, func(model.Request) model.Answer { return end("read it") }, 0},
		{"the summary is as long as what it replaces", 10, func(r model.Request) model.Answer {
			if sumsUp(r) {
				return end(strings.Repeat("long ", 10_000))
			}
			return counted(do("fill", obj{"n": 4_000}), 9_900)
		}, 1},
		{"what is to be summed up is longer than the window", 10, func(model.Request) model.Answer {
			return model.Answer{Finish: model.FinishContinue, Text: strings.Repeat("long ", 10_000)}
		}, 0},
		{"what has to stay is longer than the window", 10, func(r model.Request) model.Answer {
			if sumsUp(r) {
				return end("sum")
			}
			a := do("fill", obj{"n": 4_000})
			a.Text = strings.Repeat("long ", 10_000)
			return a
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked requests
			h := plan{tools: []tool.Tool{filler(t)}, model: fluent(10_000, asked.of(func(_ context.Context, r model.Request, _ int) (model.Answer, error) {
				return c.think(r), nil
			}))}.open(t)
			spec := h.role(t, "probe")
			spec.Text = strings.Repeat("x", c.text)
			task := h.run(t, spec)
			h.want(t, task, "", errcode.ContextExceeded)
			if task.Error != nil && !strings.Contains(task.Error.Message, "context window is 10000") {
				t.Errorf("the reason is %q", task.Error.Message)
			}
			summaries := len(slices.DeleteFunc(slices.Clone(asked.all()), func(r model.Request) bool { return !sumsUp(r) }))
			if summaries != c.summaries {
				t.Errorf("%d summaries, want %d", summaries, c.summaries)
			}
		})
	}
}

// A provider may count otherwise, or read less than the configuration says: its
// own refusal leads to one compression and one more try, and to none when there
// is nothing to compress.
func TestAProvidersRefusalLeadsToOneCompressionAndOneMoreTry(t *testing.T) {
	refuse := errcode.New(errcode.ContextExceeded, "the provider says so")
	for _, c := range []struct {
		name     string
		refusals int
		first    bool // the first request is refused already
		want     []string
		result   string
		code     errcode.Code
	}{
		{"it helps", 1, false, []string{"ask", "ask", "sum up", "ask"}, `"done"`, ""},
		{"it does not help", 9, false, []string{"ask", "ask", "sum up", "ask"}, "", errcode.ContextExceeded},
		{"there is nothing to compress", 9, true, []string{"ask"}, "", errcode.ContextExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			refusals := 0
			h := plan{tools: []tool.Tool{filler(t)}, model: fluent(100_000, mind(func(_ context.Context, r model.Request) (model.Answer, error) {
				if sumsUp(r) {
					got = append(got, "sum up")
					return end("sum"), nil
				}
				got = append(got, "ask")
				if answers(r) == 0 && !c.first {
					return do("fill", obj{"n": 3_000}, "fill", obj{"n": 2_000}), nil
				}
				if refusals < c.refusals {
					refusals++
					return model.Answer{}, refuse
				}
				return end("done"), nil
			}))}.open(t)
			h.want(t, h.run(t, h.role(t, "probe")), c.result, c.code)
			if !slices.Equal(got, c.want) {
				t.Errorf("the model is asked %v, want %v", got, c.want)
			}
		})
	}
}

// A summary that is none replaces nothing: the turn ends with a reason.
func TestASummaryThatIsNoneFailsTheTurn(t *testing.T) {
	for _, c := range []struct {
		name    string
		summary model.Answer
		err     error
		reason  string
		code    errcode.Code
	}{
		{"it is blank", model.Answer{Finish: model.FinishEnd, Text: " \n"}, nil, "empty summary", errcode.LLMCallFailed},
		{"it is a call", do("fill", obj{"n": 1}), nil, "empty summary", errcode.LLMCallFailed},
		{"it is a refusal", model.Answer{Finish: model.FinishEnd, Text: "I cannot help with that.", Stop: model.Refusal}, nil, "refused", errcode.LLMCallFailed},
		{"it does not come", model.Answer{}, errcode.New(errcode.RateLimited, "later"), "later", errcode.RateLimited},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plan{tools: []tool.Tool{filler(t)}, model: fluent(10_000, mind(func(_ context.Context, r model.Request) (model.Answer, error) {
				if sumsUp(r) {
					return c.summary, c.err
				}
				return counted(do("fill", obj{"n": 4_000}), 9_900), nil
			}))}.open(t)
			task := h.run(t, h.role(t, "probe"))
			h.want(t, task, "", c.code)
			if task.Error != nil && !strings.Contains(task.Error.Message, c.reason) {
				t.Errorf("the reason is %q", task.Error.Message)
			}
			if n := len(said[journal.ContextCompressed](t, h)); n != 0 {
				t.Errorf("compressed %d times", n)
			}
		})
	}
}

// The window is that of the model of the agent's own role.
func TestContextStatusIsOfTheWindowOfTheAgentsModel(t *testing.T) {
	think := brain(func(r model.Request) model.Answer {
		if answers(r) == 0 {
			return do("get_context_status", obj{})
		}
		return end(fmt.Sprint(last(r)["maxTokens"], " ", last(r)["status"]))
	})
	windows := map[string]model.Model{"small": fluent(2_000, think), "large": fluent(50_000, think), "": think}
	h := plan{config: func(c *runtime.Config) {
		c.Model = func(name string) (model.Model, error) { return windows[name], nil }
	}}.open(t)
	for name, want := range map[string]string{"small": `"2000 warning"`, "large": `"50000 normal"`, "": `"128000 normal"`} {
		spec := org.RoleSpec{Name: "role" + name, Model: name, Use: use("context"), Prompt: strings.Repeat("long ", 800)}
		if _, err := h.CreateRole(t.Context(), called(operator), spec); err != nil {
			t.Fatal(err)
		}
		h.want(t, h.run(t, org.TaskSpec{Role: spec.Name}), want, "")
	}
}

// A script is never asked for words, however long its conversation is.
func TestAScriptIsNotAskedForASummary(t *testing.T) {
	var asked requests
	h := plan{tools: []tool.Tool{filler(t)}, model: asked.of(func(_ context.Context, r model.Request, _ int) (model.Answer, error) {
		if answers(r) < 3 {
			return counted(do("fill", obj{"n": 300_000}), 500_000), nil
		}
		return end(fmt.Sprint(len(results(r)[0].Content))), nil
	})}.open(t)
	h.want(t, h.run(t, h.role(t, "probe")), `"300002"`, "")
	if slices.ContainsFunc(asked.all(), sumsUp) || len(said[journal.ContextCompressed](t, h)) > 0 {
		t.Error("it was")
	}
}

// A process that starts anew after the compression sends what the one before
// would have sent.
func TestARestartAfterACompressionSendsTheSame(t *testing.T) {
	var asked requests
	stop := make(chan struct{})
	stopped := false
	p := plan{dir: scratch(t), tools: []tool.Tool{filler(t)}, model: fluent(10_000, asked.of(func(ctx context.Context, r model.Request, _ int) (model.Answer, error) {
		switch {
		case sumsUp(r):
			return end("sum <&> é"), nil
		case r.Compact == nil:
			return counted(do("fill", obj{"n": 4_000}), 9_900), nil
		case !stopped:
			stopped = true
			close(stop)
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		return end("done"), nil
	}))}
	h := p.open(t)
	id := h.start(t, h.role(t, "probe"))
	<-stop
	h.leave(t)
	h = p.open(t)
	h.resume(t, id)
	h.want(t, h.wait(t, id), `"done"`, "")
	list := asked.all()
	before, after := list[len(list)-2], list[len(list)-1]
	if diff := cmp.Diff(dumped(before), dumped(after)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if n := len(said[journal.ContextCompressed](t, h)); n != 1 {
		t.Errorf("compressed %d times", n)
	}
}

// dumped shows all of a request.
func dumped(r model.Request) []string {
	list := []string{r.System, string(r.ToolJSON), fmt.Sprint(r.Compact)}
	for _, item := range r.Items {
		list = append(list, dump(item))
	}
	return list
}

// What the model has not read yet is not summed up, however long it is.
func TestUnreadMailIsNotSummedUp(t *testing.T) {
	mail := strings.Repeat("news", 7_000) // as many tokens
	ended := make(chan struct{})
	var asked requests
	h := plan{tools: []tool.Tool{filler(t)}, model: fluent(10_000, asked.of(func(ctx context.Context, r model.Request, n int) (model.Answer, error) {
		switch {
		case r.Self.Role == "root":
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		case sumsUp(r):
			return end("sum"), nil
		case answers(r) == 0:
			return do("fill", obj{"n": 4_900}, "fill", obj{"n": 4_800}), nil
		}
		ended <- struct{}{}
		return end("read"), nil
	}))}.open(t)
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use("probe")})
	h.tell(t, agent, `"begin"`)
	<-ended
	h.tell(t, agent, `"`+mail+`"`)
	<-ended
	list := workers(asked.all())
	summary, next := list[len(list)-2], list[len(list)-1]
	if !sumsUp(summary) || slices.ContainsFunc(messages(summary), func(m model.Message) bool { return strings.Contains(string(m.Payload), mail) }) {
		t.Error("it is summed up, or nothing is")
	}
	turns := chat.Turns(next)
	if last := turns[len(turns)-1]; next.Compact == nil || last.Role != chat.User || !strings.Contains(last.Text, mail) {
		t.Errorf("the next request has the summary %v and ends in %.100s", next.Compact, last.Text)
	}
}

package runtime_test

import (
	"context"
	"encoding/json"
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
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// compressAnswer returns a call of compress_context.
func compressAnswer(summary string, keep int) model.Answer {
	return callTools("compress_context", obj{"summary": summary, "keepRecentCount": keep})
}

// Property: for any conversation and any calls of compress_context in it, the
// model is sent each call with its result and each result with its call. They
// are in the order of the journal. Only the compressed part is missing, which
// is the longest that separates no call from its result. A restarted process
// sends the same bytes.
func TestCompressContext_SplitsNoCallFromResultProperty(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests, parameters.MaxSize, parameters.MaxShrinkCount = short.Count(25, 100), 30, 100
	properties := gopter.NewProperties(parameters)
	properties.Property("calls and results stay together", prop.ForAll(func(tape []uint8) string {
		return newConversation(t, tape).run(t)
	}, gen.SliceOf(gen.UInt8())))
	properties.TestingRun(t)
}

// conversation is the conversation of one agent. The n-th byte of choices
// determines its n-th answer.
type conversation struct {
	choices []uint8
	tools   []tool.Tool
	signals chan signal
	stopped map[int]bool // answers before which the process was restarted once
	seen    []string     // the items of the last request, as text
	problem string       // the first problem found, or ""
}

// signal is what the model reports to the test.
type signal int

const (
	signalTurnEnd signal = iota
	signalCallHangs
	signalProcessEnd
	signalDone
)

func newConversation(t *testing.T, tape []uint8) *conversation {
	k := &conversation{choices: tape, signals: make(chan signal), stopped: map[int]bool{}}
	k.tools = []tool.Tool{
		newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil }),
		newTool(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) {
			return tool.Result{Structured: json.RawMessage(`{ "odd" : "<&>" }`)}, nil
		}),
		newTool(t, "hang", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
			k.signals <- signalCallHangs
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}),
	}
	return k
}

// run runs the conversation over several processes and returns the problem
// found.
func (k *conversation) run(t *testing.T) string {
	cfg := fixtureConfig{dir: fastTempDir(t), tools: k.tools, model: modelFunc(k.answer)}
	fx := cfg.open(t)
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "talker", Use: groupSet("probe", "context")})
	fx.send(t, agent, `"begin"`)
	for turn := 0; ; turn++ {
		switch <-k.signals {
		case signalDone:
			fx.shutdown(t)
			return k.problem
		case signalProcessEnd:
			fx.shutdown(t)
			fx = cfg.open(t)
			fx.resume(t, id)
			continue
		case signalCallHangs:
			if err := fx.AbortTurn(agent); err != nil {
				t.Fatal(err)
			}
		}
		fx.send(t, agent, fmt.Sprintf(`{ "turn": %d, "text": "<é>" }`, turn))
	}
}

func (k *conversation) answer(ctx context.Context, r model.Request) (model.Answer, error) {
	if r.Self.Role == "root" {
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}
	k.check(r)
	n := answerCount(r)
	if n >= len(k.choices) {
		k.signals <- signalDone
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}
	keep := []int{0, 1, 2, 3, 5, 1000}[k.choices[n]/10%6]
	look := func(pairs ...any) model.Answer { return callTools(append([]any{"look", obj{"n": n}}, pairs...)...) }
	compress := []any{"compress_context", obj{"summary": fmt.Sprint("so far ", n), "keepRecentCount": keep}}
	switch k.choices[n] % 10 {
	case 0:
		k.signals <- signalTurnEnd
		return model.Answer{Finish: model.FinishEnd, Text: "o\xffdd", Value: json.RawMessage(`{ "odd" : "<&>" }`)}, nil
	case 1:
		return look(), nil
	case 2:
		return look("poke", json.RawMessage(`{ "odd" : "<&>" }`), "look", obj{}), nil
	case 3:
		return callTools("nobody_knows", obj{}, "look", json.RawMessage(`"no object"`)), nil
	case 4:
		return callTools(compress...), nil
	case 5:
		return look(compress...), nil
	case 6:
		return callTools(append(compress, "look", obj{}, "poke", obj{})...), nil
	case 7:
		return callTools(slices.Concat(compress, []any{"look", obj{}, "compress_context", obj{"summary": "again", "keepRecentCount": 1}})...), nil
	case 8:
		return look("hang", obj{}, "look", obj{}, "poke", obj{}), nil
	}
	if !k.stopped[n] {
		k.stopped[n] = true
		k.signals <- signalProcessEnd
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}
	return look(), nil
}

// check compares a request with the previous one and with the expected effect
// of compression.
func (k *conversation) check(r model.Request) {
	if k.problem != "" {
		return
	}
	dumps := make([]string, len(r.Items))
	for i, item := range r.Items {
		dumps[i] = dumpItem(item)
	}
	if n := min(len(k.seen), len(dumps)); n < len(k.seen) || !slices.Equal(k.seen, dumps[:n]) {
		k.problem = "earlier items have changed (-before +now):\n" + cmp.Diff(k.seen, dumps[:n])
		return
	}
	k.seen = dumps
	want, problem := expectedSummary(r.Items)
	if problem == "" && cmp.Diff(want, r.Compact) != "" {
		problem = "wrong compression (-want +got):\n" + cmp.Diff(want, r.Compact)
	}
	sent := r.Items
	if r.Compact != nil {
		sent = sent[r.Compact.Items:]
	}
	if problem == "" && !isPaired(sent) {
		problem = "a call without result or a result without call"
	}
	if problem != "" {
		k.problem = problem + "\nin " + strings.Join(dumps, "\n   ")
	}
}

// expectedSummary computes the summary after the calls of compress_context in a
// conversation, by trying every cut, and checks the results of these calls.
func expectedSummary(items []model.Item) (now *model.ContextSummary, problem string) {
	calls := map[identity.CallID]model.Call{}
	for i, item := range items {
		if item.Answer != nil {
			for _, c := range item.Answer.Calls {
				calls[c.ID] = c
			}
		}
		if item.Result == nil || item.Result.Tool != "compress_context" || item.Result.IsError {
			continue
		}
		var in struct {
			Summary string
			Keep    int `json:"keepRecentCount"`
		}
		if err := json.Unmarshal(calls[item.Result.Call].Args, &in); err != nil {
			return nil, err.Error()
		}
		gone, summaries := 0, 0
		if now != nil {
			gone, summaries = now.Items, 1
		}
		best := gone
		for cut := gone + 1; cut <= i-in.Keep; cut++ {
			if allAnswered(items[:cut]) {
				best = cut
			}
		}
		before, after := i-gone+summaries, i-gone+summaries
		if best > gone {
			now, after = &model.ContextSummary{Text: in.Summary, Items: best}, i-best+1
		}
		want := fmt.Sprintf(`{"ok":true,"compressed":%t,"originalCount":%d,"newCount":%d}`, best > gone, before, after)
		if got := string(item.Result.Content); got != want {
			return nil, "result " + got + ", want " + want
		}
	}
	return now, ""
}

// allAnswered reports whether every call has its result.
func allAnswered(items []model.Item) bool {
	open := map[identity.CallID]bool{}
	for _, item := range items {
		if item.Answer != nil {
			for _, c := range item.Answer.Calls {
				open[c.ID] = true
			}
		}
		if item.Result != nil {
			delete(open, item.Result.Call)
		}
	}
	return len(open) == 0
}

// isPaired reports whether the results of every answer follow it, in the order
// of its calls, and no others.
func isPaired(items []model.Item) bool {
	var due []model.Call
	for _, item := range items {
		switch {
		case item.Result != nil:
			if len(due) == 0 || due[0].ID != item.Result.Call || due[0].Name != item.Result.Tool {
				return false
			}
			due = due[1:]
		case len(due) > 0:
			return false
		case item.Answer != nil:
			due = item.Answer.Calls
		}
	}
	return len(due) == 0
}

// dumpItem returns the content of an item as text.
func dumpItem(item model.Item) string {
	switch {
	case item.Message != nil:
		m := item.Message
		return fmt.Sprintf("message %s %s %s %s %q %s", m.ID, m.From, m.To, m.Task, m.Payload, m.CreatedAt.Format(time.RFC3339Nano))
	case item.Result != nil:
		return fmt.Sprintf("result %s %s %q %t", item.Result.Call, item.Result.Tool, item.Result.Content, item.Result.IsError)
	}
	a := item.Answer
	text := fmt.Sprintf("answer %q %q %s %d %q %v %q %q", a.Text, a.Value, a.Finish, a.MessagesRead, a.Log, a.Usage, a.Tools, a.State)
	for _, c := range a.Calls {
		text += fmt.Sprintf(" %s %q %q %q", c.ID, c.Provider, c.Name, c.Args)
	}
	return text
}

// A compression is done once. If the process dies between its record and the
// record of the call's outcome, the next process returns the same result.
func TestCompressContext_CrashKeepsResult(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("on disk ", after), func(t *testing.T) {
			dir := fastTempDir(t)
			died := make(chan struct{})
			var result json.RawMessage
			cfg := fixtureConfig{dir: dir, model: answerFunc(func(r model.Request) model.Answer {
				switch answerCount(r) {
				case 0:
					return callTools("get_context_status", obj{})
				case 1:
					return compressAnswer("so far", 0)
				}
				result = results(r)[1].Content
				return endWith(r.Compact.Text)
			})}
			cfg.wrapStore = func(s journal.Store) journal.Store {
				dead := false // only the agent commits by then
				return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					is := slices.ContainsFunc(b.Events, func(e journal.Event) bool { return e.Body.EventType() == "context_compressed" })
					if !is && !dead {
						return s.Commit(ctx, b)
					}
					if after && !dead {
						if _, err := s.Commit(ctx, b); err != nil {
							return 0, err
						}
					}
					dead = true
					return 0, errKilled
				}}
			}
			cfg.configure = func(c *runtime.Config) { c.Fatal = func(error) { close(died) } }
			fx := cfg.open(t)
			id := fx.start(t, fx.groupTask(t, "context"))
			<-died
			fx.Close()
			persisttest.Close(t, fx.store)

			cfg.wrapStore, cfg.configure = nil, nil
			fx = cfg.open(t)
			fx.resume(t, id)
			fx.wantResult(t, fx.wait(t, id), `"so far"`, "")
			if want := `{"ok":true,"compressed":true,"originalCount":4,"newCount":2}`; string(result) != want {
				t.Errorf("result %s, want %s", result, want)
			}
			if n := len(bodiesOf[journal.ContextCompressed](t, fx)); n != 1 {
				t.Errorf("%d compressions recorded, want 1", n)
			}
		})
	}
}

// groupTask creates the role worker with one group and returns a task for an
// agent of it.
func (fx *fixture) groupTask(t *testing.T, group string) org.TaskSpec {
	t.Helper()
	fx.createWorkerRole(t, group)
	return org.TaskSpec{Role: "worker", Text: "find the needle"}
}

// reportedUsage runs an agent whose n-th answer is the n-th of list and returns
// the usage that get_context_status reported, in order.
func reportedUsage(t *testing.T, list ...model.Answer) (used []int) {
	t.Helper()
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if n := answerCount(r); n < len(list) {
			return list[n]
		}
		for _, result := range results(r) {
			if result.Tool == "get_context_status" {
				used = append(used, int(decodeObject(result.Content)["usedTokens"].(float64)))
			}
		}
		return endWith("done")
	}))
	fx.wantResult(t, fx.run(t, fx.groupTask(t, "context")), `"done"`, "")
	return used
}

// statusAnswer returns a call of get_context_status with a text and a token
// count.
func statusAnswer(text string, u model.TokenUsage) model.Answer {
	a := callTools("get_context_status", obj{})
	a.Text, a.Usage = text, u
	return a
}

func TestContextUsage_ProviderCountPlusEstimate(t *testing.T) {
	used := reportedUsage(t, statusAnswer("", model.TokenUsage{Input: 1000, Output: 50}), statusAnswer("", model.TokenUsage{}), statusAnswer("", model.TokenUsage{Input: 5000, Output: 7}))
	if used[0] != 1050 {
		t.Errorf("after an answer that counts 1000 and 50: %d", used[0])
	}
	if since := used[1] - used[0]; since < 20 || since > 400 {
		t.Errorf("a result and an answer came since: %d tokens", since)
	}
	if used[2] != 5007 {
		t.Errorf("after an answer that counts 5000 and 7: %d", used[2])
	}
}

func TestContextUsage_EstimateIncludesPromptAndTools(t *testing.T) {
	var used, prompt, wire int
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) > 0 {
			used = int(lastResult(r)["usedTokens"].(float64))
			return endWith("done")
		}
		prompt, wire = len(r.System), len(r.ToolJSON)
		return callTools("get_context_status", obj{})
	}))
	fx.wantResult(t, fx.run(t, fx.groupTask(t, "context")), `"done"`, "")
	if least := (prompt + wire) / 4; used < least || used > least+200 {
		t.Errorf("%d tokens, where prompt and tools have %d bytes: want %d and a little", used, prompt+wire, least)
	}
}

func TestContextUsage_EstimatesNonASCIIText(t *testing.T) {
	for _, c := range []struct {
		name, text  string
		least, most int
	}{
		{"English", strings.Repeat("plain words ", 1000), 3000, 3000},
		{"Chinese", strings.Repeat("组织由角色构成", 1000), 7000, 7000},
		{"Russian", strings.Repeat("слово ", 1000), 5000, 5250},
		{"emoji", strings.Repeat("🙂", 1000), 1000, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain := reportedUsage(t, statusAnswer("", model.TokenUsage{}))
			if n := reportedUsage(t, statusAnswer(c.text, model.TokenUsage{}))[0] - plain[0]; n < c.least || n > c.most {
				t.Errorf("%d tokens, want %d to %d", n, c.least, c.most)
			}
		})
	}
}

func TestContextUsage_ResetByCompression(t *testing.T) {
	full := statusAnswer(strings.Repeat("x", 40_000), model.TokenUsage{Input: 100_000, Output: 10_000})
	squeeze := compressAnswer("short", 0)
	squeeze.Usage = model.TokenUsage{Input: 110_000, Output: 100}
	used := reportedUsage(t, full, statusAnswer("", model.TokenUsage{Input: 110_000, Output: 1}), squeeze, statusAnswer("", model.TokenUsage{}), statusAnswer("", model.TokenUsage{Input: 900, Output: 9}))
	if used[1] != 110_001 {
		t.Errorf("before: %d, want what the provider counted", used[1])
	}
	if used[2] > 3_000 {
		t.Errorf("after: %d, want an estimate of what is left", used[2])
	}
	if used[3] != 909 {
		t.Errorf("after the next count: %d, want 909", used[3])
	}
}

// promptsAtUsage returns what the runtime tells a worker before and after its context usage is
// used tokens.
func promptsAtUsage(t *testing.T, used int, groups ...string) (before, after string) {
	t.Helper()
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			before = r.System + r.Opening + r.Note
			a := callTools("console_print", obj{"text": "x"})
			a.Usage.Input = used
			return a
		}
		after = r.System + r.Opening + r.Note
		return endWith("done")
	}))
	fx.createWorkerRole(t, groups...)
	fx.wantResult(t, fx.run(t, org.TaskSpec{Role: "worker"}), `"done"`, "")
	return before, after
}

func TestContextUsage_WarnsInPrompt(t *testing.T) {
	for _, c := range []struct {
		used int
		want string
	}{
		{60_000, ""}, {89_000, ""}, {90_000, "warning"}, {115_300, "critical"}, {121_700, "exceeded"}, {200_000, "exceeded"},
	} {
		before, after := promptsAtUsage(t, c.used, "console", "context")
		if strings.Contains(before, "## Your context") {
			t.Errorf("the prompt of an empty context has a warning:\n%s", before)
		}
		_, note, found := strings.Cut(after, "## Your context")
		if found != (c.want != "") || !strings.Contains(note, c.want) || found && !strings.Contains(note, "compress_context") {
			t.Errorf("%d used: note %q, want %q and an advice", c.used, note, c.want)
		}
	}
	for used, want := range map[int]bool{90_000: false, 114_000: false, 115_300: true, 121_700: true} { // of 128,000
		_, after := promptsAtUsage(t, used, "console")
		if told := strings.Contains(after, "## Your context"); told != want || strings.Contains(after, "compress_context") {
			t.Errorf("without compress_context and with %d tokens used, the agent reads:\n%s", used, after)
		}
	}
}

// A top agent has no brief: its task is in its first message.
func TestCompressContext_KeepsTaskOfTopAgent(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return compressAnswer("nothing of note", 0)
		}
		if r.Compact == nil {
			return endWith("not compressed")
		}
		return endWith(fmt.Sprint(strings.Contains(r.Opening, "find the needle")))
	}))
	fx.wantResult(t, fx.run(t, fx.groupTask(t, "context")), `"true"`, "")
}

func TestCompressContext_KeepsBrief(t *testing.T) {
	var prompts []string
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if r.Self.Role == "root" {
			return delegate(r, "worker", "context")
		}
		prompts = append(prompts, r.Opening)
		if answerCount(r) == 0 {
			return compressAnswer("nothing of note", 0)
		}
		return endWith(r.Compact.Text)
	}))
	fx.wantResult(t, fx.run(t, org.TaskSpec{}), `{"text":"nothing of note"}`, "")
	if diff := cmp.Diff(prompts[0], prompts[1]); diff != "" || !strings.Contains(prompts[0], "\nDone when: c\n") {
		t.Errorf("before and after:\n%s\n%s", prompts[0], diff)
	}
}

func TestContextUsage_RejectsIdleAgent(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer { return endWith("x") }))
	id := fx.start(t, org.TaskSpec{})
	fx.wait(t, id)
	if _, _, err := fx.ToolHost().ContextUsage(t.Context(), fx.topAgent(t, id)); errcode.CodeOf(err) != errcode.AgentNotFound {
		t.Errorf("usage: %v, want agent_not_found", err)
	}
	if _, err := fx.ToolHost().CompressContext(t.Context(), newCall(identity.ByAgent(fx.topAgent(t, id))), "s", 0); errcode.CodeOf(err) != errcode.AgentNotFound {
		t.Errorf("compress: %v, want agent_not_found", err)
	}
}

// createWorkerRole creates the role worker with groups.
func (fx *fixture) createWorkerRole(t *testing.T, groups ...string) {
	t.Helper()
	args := mustJSON(groups)
	spec := org.RoleSpec{Name: "worker", Use: groupSet()}
	if err := json.Unmarshal(args, spec.Use); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.CreateRole(t.Context(), newCall(operator), spec); err != nil {
		t.Fatal(err)
	}
}

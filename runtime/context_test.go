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
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// compress is a call of compress_context.
func compress(summary string, keep int) model.Answer {
	return do("compress_context", obj{"summary": summary, "keepRecentCount": keep})
}

// Property: whatever an agent's conversation was, and however often and in
// whichever company compress_context was called in it, at every step the
// model is sent every call with its result and every result with its call, in
// the order of the journal; nothing but the cut part is missing, which is the
// longest that splits nothing; and a process that starts anew sends the same
// bytes.
func TestCompressionSplitsNothing(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests, parameters.MaxSize, parameters.MaxShrinkCount = 100, 30, 100
	properties := gopter.NewProperties(parameters)
	properties.Property("calls and results stay together", prop.ForAll(func(tape []uint8) string {
		return newTalk(t, tape).play(t)
	}, gen.SliceOf(gen.UInt8())))
	properties.TestingRun(t)
}

// talk is one agent's conversation: what its n-th answer is, the n-th byte of
// the tape says.
type talk struct {
	tape    []uint8
	tools   []tool.Tool
	signals chan signal
	stopped map[int]bool // answers before which the process ended already
	seen    []string     // the items of the last request, in full
	first   string       // what is wrong, "" for nothing
}

// signal is what the talk tells who plays it.
type signal int

const (
	turnEnds signal = iota
	callHangs
	processEnds
	tapeEnds
)

func newTalk(t *testing.T, tape []uint8) *talk {
	k := &talk{tape: tape, signals: make(chan signal), stopped: map[int]bool{}}
	k.tools = []tool.Tool{
		probe(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil }),
		probe(t, "poke", tool.Options{}, func(context.Context, obj) (any, error) {
			return tool.Result{Structured: json.RawMessage(`{ "odd" : "<&>" }`)}, nil
		}),
		probe(t, "hang", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
			k.signals <- callHangs
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}),
	}
	return k
}

// play has the talk, over as many processes as it takes, and says what was
// wrong in it.
func (k *talk) play(t *testing.T) string {
	p := plan{dir: scratch(t), tools: k.tools, model: mind(k.think)}
	h := p.open(t)
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "talker", Use: use("probe", "context")})
	h.tell(t, agent, `"begin"`)
	for turn := 0; ; turn++ {
		switch <-k.signals {
		case tapeEnds:
			h.leave(t)
			return k.first
		case processEnds:
			h.leave(t)
			h = p.open(t)
			h.resume(t, id)
			continue
		case callHangs:
			if err := h.Abort(agent); err != nil {
				t.Fatal(err)
			}
		}
		h.tell(t, agent, fmt.Sprintf(`{ "turn": %d, "text": "<é>" }`, turn))
	}
}

func (k *talk) think(ctx context.Context, r model.Request) (model.Answer, error) {
	if r.Self.Role == "root" {
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}
	k.check(r)
	n := answers(r)
	if n >= len(k.tape) {
		k.signals <- tapeEnds
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}
	keep := []int{0, 1, 2, 3, 5, 1000}[k.tape[n]/10%6]
	look := func(pairs ...any) model.Answer { return do(append([]any{"look", obj{"n": n}}, pairs...)...) }
	short := []any{"compress_context", obj{"summary": fmt.Sprint("so far ", n), "keepRecentCount": keep}}
	switch k.tape[n] % 10 {
	case 0:
		k.signals <- turnEnds
		return model.Answer{Finish: model.FinishEnd, Text: "o\xffdd", Value: json.RawMessage(`{ "odd" : "<&>" }`)}, nil
	case 1:
		return look(), nil
	case 2:
		return look("poke", json.RawMessage(`{ "odd" : "<&>" }`), "look", obj{}), nil
	case 3:
		return do("nobody_knows", obj{}, "look", json.RawMessage(`"no object"`)), nil
	case 4:
		return do(short...), nil
	case 5:
		return look(short...), nil
	case 6:
		return do(append(short, "look", obj{}, "poke", obj{})...), nil
	case 7:
		return do(slices.Concat(short, []any{"look", obj{}, "compress_context", obj{"summary": "again", "keepRecentCount": 1}})...), nil
	case 8:
		return look("hang", obj{}, "look", obj{}, "poke", obj{}), nil
	}
	if !k.stopped[n] {
		k.stopped[n] = true
		k.signals <- processEnds
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}
	return look(), nil
}

// check holds a request against what was sent before and against the plainest
// way to say what compression does.
func (k *talk) check(r model.Request) {
	if k.first != "" {
		return
	}
	dumps := make([]string, len(r.Items))
	for i, item := range r.Items {
		dumps[i] = dump(item)
	}
	if n := min(len(k.seen), len(dumps)); n < len(k.seen) || !slices.Equal(k.seen, dumps[:n]) {
		k.first = "what was sent before is sent otherwise (-before +now):\n" + cmp.Diff(k.seen, dumps[:n])
		return
	}
	k.seen = dumps
	want, wrong := compressed(r.Items)
	if wrong == "" && cmp.Diff(want, r.Compact) != "" {
		wrong = "compressed otherwise (-want +got):\n" + cmp.Diff(want, r.Compact)
	}
	sent := r.Items
	if r.Compact != nil {
		sent = sent[r.Compact.Items:]
	}
	if wrong == "" && !whole(sent) {
		wrong = "a call without result or a result without call"
	}
	if wrong != "" {
		k.first = wrong + "\nin " + strings.Join(dumps, "\n   ")
	}
}

// compressed says what the calls of compress_context in a conversation make
// of it, by trying every cut, and whether they were told so.
func compressed(items []model.Item) (now *model.Summary, wrong string) {
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
			if closed(items[:cut]) {
				best = cut
			}
		}
		before, after := i-gone+summaries, i-gone+summaries
		if best > gone {
			now, after = &model.Summary{Text: in.Summary, Items: best}, i-best+1
		}
		want := fmt.Sprintf(`{"ok":true,"compressed":%t,"originalCount":%d,"newCount":%d}`, best > gone, before, after)
		if got := string(item.Result.Content); got != want {
			return nil, "told " + got + ", want " + want
		}
	}
	return now, ""
}

// closed says whether every call has its result.
func closed(items []model.Item) bool {
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

// whole says whether every answer's results follow it, in the order of its
// calls, and no others.
func whole(items []model.Item) bool {
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

// dump shows an item byte by byte.
func dump(item model.Item) string {
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

// A compression is done once: when the process ends between the record of it
// and the record of its outcome, the next one tells what was done.
func TestACompressionInterruptedByTheEndIsToldAsItWas(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("on disk ", after), func(t *testing.T) {
			dir := scratch(t)
			died := make(chan struct{})
			var told json.RawMessage
			p := plan{dir: dir, model: brain(func(r model.Request) model.Answer {
				switch answers(r) {
				case 0:
					return do("get_context_status", obj{})
				case 1:
					return compress("so far", 0)
				}
				told = results(r)[1].Content
				return end(r.Compact.Text)
			})}
			p.store = func(s journal.Store) journal.Store {
				dead := false // only the agent commits by then
				return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
					is := slices.ContainsFunc(b.Events, func(e journal.Event) bool { return e.Body.Type() == "context_compressed" })
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
			p.config = func(c *runtime.Config) { c.Fatal = func(error) { close(died) } }
			h := p.open(t)
			id := h.start(t, h.role(t, "context"))
			<-died
			h.Close()
			persisttest.Close(t, h.store)

			p.store, p.config = nil, nil
			h = p.open(t)
			h.resume(t, id)
			h.want(t, h.wait(t, id), `"so far"`, "")
			if want := `{"ok":true,"compressed":true,"originalCount":4,"newCount":2}`; string(told) != want {
				t.Errorf("told %s, want %s", told, want)
			}
			if n := len(said[journal.ContextCompressed](t, h)); n != 1 {
				t.Errorf("compressed %d times on record", n)
			}
		})
	}
}

// role makes the role worker with one group and gives a task bound to it.
func (h *house) role(t *testing.T, group string) org.TaskSpec {
	t.Helper()
	h.workerRole(t, group)
	return org.TaskSpec{Role: "worker", Text: "find the needle"}
}

// contextUsage plays a brain whose n-th answer is the n-th of list and gives what
// get_context_status said, in order.
func contextUsage(t *testing.T, list ...model.Answer) (used []int) {
	t.Helper()
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if n := answers(r); n < len(list) {
			return list[n]
		}
		for _, result := range results(r) {
			if result.Tool == "get_context_status" {
				used = append(used, int(decode(result.Content)["usedTokens"].(float64)))
			}
		}
		return end("done")
	}))
	h.want(t, h.run(t, h.role(t, "context")), `"done"`, "")
	return used
}

func status(text string, u model.Usage) model.Answer {
	a := do("get_context_status", obj{})
	a.Text, a.Usage = text, u
	return a
}

func TestUsageIsTheProvidersCountAndAnEstimateOfWhatCameSince(t *testing.T) {
	used := contextUsage(t, status("", model.Usage{Input: 1000, Output: 50}), status("", model.Usage{}), status("", model.Usage{Input: 5000, Output: 7}))
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

func TestAnEstimateCountsThePromptAndTheTools(t *testing.T) {
	var used, prompt, wire int
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if answers(r) > 0 {
			used = int(last(r)["usedTokens"].(float64))
			return end("done")
		}
		prompt, wire = len(r.System), len(r.ToolJSON)
		return do("get_context_status", obj{})
	}))
	h.want(t, h.run(t, h.role(t, "context")), `"done"`, "")
	if least := (prompt + wire) / 4; used < least || used > least+200 {
		t.Errorf("%d tokens, where prompt and tools have %d bytes: want %d and a little", used, prompt+wire, least)
	}
}

func TestTextThatIsNotASCIIIsNotUnderestimated(t *testing.T) {
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
			plain := contextUsage(t, status("", model.Usage{}))
			if n := contextUsage(t, status(c.text, model.Usage{}))[0] - plain[0]; n < c.least || n > c.most {
				t.Errorf("%d tokens, want %d to %d", n, c.least, c.most)
			}
		})
	}
}

func TestUsageStartsAnewAfterACompression(t *testing.T) {
	full := status(strings.Repeat("x", 40_000), model.Usage{Input: 100_000, Output: 10_000})
	squeeze := compress("short", 0)
	squeeze.Usage = model.Usage{Input: 110_000, Output: 100}
	used := contextUsage(t, full, status("", model.Usage{Input: 110_000, Output: 1}), squeeze, status("", model.Usage{}), status("", model.Usage{Input: 900, Output: 9}))
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

// prompts plays a worker of some groups that fills its context, and gives the
// system prompt it reads then.
func prompts(t *testing.T, used int, groups ...string) (before, after string) {
	t.Helper()
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if answers(r) == 0 {
			before = r.System
			a := do("console_print", obj{"text": "x"})
			a.Usage.Input = used
			return a
		}
		after = r.System
		return end("done")
	}))
	h.workerRole(t, groups...)
	h.want(t, h.run(t, org.TaskSpec{Role: "worker"}), `"done"`, "")
	return before, after
}

func TestAFullContextIsSaidInThePrompt(t *testing.T) {
	for _, c := range []struct {
		used int
		want string
	}{
		{60_000, ""}, {89_000, ""}, {90_000, "warning"}, {115_300, "critical"}, {121_700, "exceeded"}, {200_000, "exceeded"},
	} {
		before, after := prompts(t, c.used, "console", "context")
		if strings.Contains(before, "## Your context") {
			t.Errorf("an empty context is spoken of:\n%s", before)
		}
		_, said, found := strings.Cut(after, "## Your context")
		if found != (c.want != "") || !strings.Contains(said, c.want) || found && !strings.Contains(said, "compress_context") {
			t.Errorf("%d used: said %q, want %q and what to do", c.used, said, c.want)
		}
	}
	if _, after := prompts(t, 121_700, "console"); !strings.Contains(after, "exceeded") || strings.Contains(after, "compress_context") {
		t.Errorf("who cannot compress is told:\n%s", after)
	}
}

// A top agent has no brief: what it was asked for is in its first message.
func TestWhatATopAgentWasAskedForOutlivesCompression(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if answers(r) == 0 {
			return compress("nothing of note", 0)
		}
		if r.Compact == nil {
			return end("not compressed")
		}
		return end(fmt.Sprint(strings.Contains(r.System, "find the needle")))
	}))
	h.want(t, h.run(t, h.role(t, "context")), `"true"`, "")
}

func TestABriefOutlivesCompression(t *testing.T) {
	var prompts []string
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if r.Self.Role == "root" {
			return manage(r, "worker", "context")
		}
		prompts = append(prompts, r.System)
		if answers(r) == 0 {
			return compress("nothing of note", 0)
		}
		return end(r.Compact.Text)
	}))
	h.want(t, h.run(t, org.TaskSpec{}), `{"text":"nothing of note"}`, "")
	if diff := cmp.Diff(prompts[0], prompts[1]); diff != "" || !strings.Contains(prompts[0], `"completion_criteria": "c"`) {
		t.Errorf("before and after:\n%s\n%s", prompts[0], diff)
	}
}

func TestOnlyOneAtWorkHasAContext(t *testing.T) {
	h := open(t, "", brain(func(model.Request) model.Answer { return end("x") }))
	id := h.start(t, org.TaskSpec{})
	h.wait(t, id)
	if _, _, err := h.ContextUsage(t.Context(), h.top(t, id)); errcode.Of(err) != errcode.AgentNotFound {
		t.Errorf("usage: %v, want agent_not_found", err)
	}
	if _, err := h.Compress(t.Context(), called(identity.ByAgent(h.top(t, id))), "s", 0); errcode.Of(err) != errcode.AgentNotFound {
		t.Errorf("compress: %v, want agent_not_found", err)
	}
}

// workerRole makes the role worker with groups.
func (h *house) workerRole(t *testing.T, groups ...string) {
	t.Helper()
	args := encode(groups)
	spec := org.RoleSpec{Name: "worker", Use: use()}
	if err := json.Unmarshal(args, spec.Use); err != nil {
		t.Fatal(err)
	}
	if _, err := h.CreateRole(t.Context(), called(operator), spec); err != nil {
		t.Fatal(err)
	}
}

package retry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/retry"
)

var _ model.LanguageModel = (*retry.Model)(nil)

// fake is a model that plays one try after the other, the last for ever.
type fake struct {
	tries  []try
	window int

	asked []time.Time
}

type try struct {
	deltas []model.Delta
	err    error
}

func (f *fake) Generate(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		t := f.tries[min(len(f.asked), len(f.tries)-1)]
		f.asked = append(f.asked, time.Now())
		for _, d := range t.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if t.err != nil {
			yield(model.Delta{}, t.err)
		}
	}
}

func (f *fake) Window() int { return f.window }

func good(text string) try {
	return try{deltas: []model.Delta{{Text: text}, {Answer: &model.Answer{Text: text, Finish: model.FinishEnd, Usage: model.Usage{Input: 1000, Output: 10}}}}}
}

func bad(err error, texts ...string) (t try) {
	for _, text := range texts {
		t.deltas = append(t.deltas, model.Delta{Text: text})
	}
	t.err = err
	return t
}

func passing() *model.Error { return model.Transient(errcode.LLMCallFailed, nil, "overloaded") }

func after(d time.Duration) *model.Error {
	t := model.Transient(errcode.RateLimited, nil, "too often")
	t.RetryAfter = d
	return t
}

var lasting = model.Permanent(errcode.LLMCallFailed, nil, "bad request")

// ask shows what a model yields, one word for each.
func ask(ctx context.Context, m model.Model) (got []string, err error) {
	for d, e := range m.Generate(ctx, model.Request{}) {
		switch {
		case e != nil:
			err = e
		case d.Answer != nil:
			got = append(got, "answer "+d.Answer.Text)
		case d.Restart:
			got = append(got, "again")
		case d.Note != "":
			got = append(got, "note")
		default:
			got = append(got, d.Text)
		}
	}
	return got, err
}

func TestTries(t *testing.T) {
	empty := try{deltas: []model.Delta{{Answer: &model.Answer{Finish: model.FinishEnd}}}}
	for _, c := range []struct {
		name   string
		tries  []try
		config retry.Config
		asked  int
		want   string
		err    string
	}{
		{"the first answer is enough", []try{good("a")}, retry.Config{}, 1, "a, answer a", ""},
		{"what may pass is tried again", []try{bad(passing()), bad(after(3 * time.Second)), good("a")}, retry.Config{}, 3, "note, note, a, answer a", ""},
		{"text that was shown is void", []try{bad(passing(), "a", "b"), good("c")}, retry.Config{}, 2, "a, b, again, c, answer c", ""},
		{"what lasts is not tried again", []try{bad(lasting)}, retry.Config{}, 1, "", "bad request"},
		{"nor is an error that is no trouble", []try{bad(errors.New("odd"))}, retry.Config{}, 1, "", "odd"},
		{"a bound on tries", []try{bad(passing())}, retry.Config{}, 6, "note, note, note, note, note", "overloaded"},
		{"another bound", []try{bad(passing())}, retry.Config{MaxAttempts: 2}, 2, "note", "overloaded"},
		{"very many tries", []try{bad(passing())}, retry.Config{MaxAttempts: 200}, 200, strings.Repeat("note, ", 198) + "note", "overloaded"},
		{"a provider that asks for too long a pause", []try{bad(after(3 * time.Minute))}, retry.Config{}, 1, "", "too often"},
		{"an empty answer", []try{empty, good("a")}, retry.Config{}, 2, "note, a, answer a", ""},
		{"an end without an answer", []try{bad(nil, "a"), good("b")}, retry.Config{}, 2, "a, again, b, answer b", ""},
		{"a length used up by thinking", []try{{deltas: []model.Delta{{Answer: &model.Answer{Finish: model.FinishEnd, Stop: model.Length}}}}}, retry.Config{}, 1, "", "maxTokens"},
		{"a wait is no empty answer", []try{{deltas: []model.Delta{{Answer: &model.Answer{Finish: model.FinishWait}}}}}, retry.Config{}, 1, "answer ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{tries: c.tries}
				got, err := ask(t.Context(), retry.New(f, c.config))
				if strings.Join(got, ", ") != c.want || len(f.asked) != c.asked {
					t.Errorf("asked %d times, want %d; got %q, want %q", len(f.asked), c.asked, got, c.want)
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
			})
		})
	}
}

// A pause is between half its length and all of it, its length doubles up to a
// bound, and what the provider asks for comes on top.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		name    string
		trouble *model.Error
		least   []time.Duration // and twice that at most, beside what is asked for
		asked   time.Duration
	}{
		{"of the model alone", passing(), []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}, 0},
		{"with Retry-After", after(7 * time.Second), []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}, 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var firsts []time.Duration
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					f := &fake{tries: []try{bad(c.trouble)}}
					ask(t.Context(), retry.New(f, retry.Config{MaxAttempts: len(c.least) + 1, InitialBackoff: time.Second, MaxBackoff: 10 * time.Second}))
					for i, least := range c.least {
						if got := f.asked[i+1].Sub(f.asked[i]) - c.asked; got < least || got > 2*least {
							t.Errorf("pause %d: got %v, want %v to %v", i+1, got, least, 2*least)
						}
					}
					firsts = append(firsts, f.asked[1].Sub(f.asked[0]))
				})
			}
			if slices.Sort(firsts); firsts[0] == firsts[len(firsts)-1] {
				t.Errorf("all first pauses are %v: there is no jitter", firsts[0])
			}
		})
	}
}

func TestCancelEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		began := time.Now()
		_, err := ask(ctx, retry.New(&fake{tries: []try{bad(passing())}}, retry.Config{InitialBackoff: time.Minute, MaxBackoff: time.Hour}))
		if took := time.Since(began); err != cause || took != 100*time.Millisecond {
			t.Errorf("got %v after %v", err, took)
		}
	})
}

func TestWhoStopsListeningIsNotAskedFor(t *testing.T) {
	for name, tries := range map[string][]try{"in an answer": {good("a")}, "in a failure": {bad(passing(), "a"), good("b")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{tries: tries}
				for range retry.New(f, retry.Config{}).Generate(t.Context(), model.Request{}) {
					break
				}
				if len(f.asked) != 1 {
					t.Errorf("asked %d times, want once", len(f.asked))
				}
			})
		})
	}
}

func TestCost(t *testing.T) {
	m := retry.New(&fake{tries: []try{good("a")}, window: 9}, retry.Config{Prices: model.Prices{Input: 2_000_000_000, Output: 10_000_000_000}})
	for d := range m.Generate(t.Context(), model.Request{}) {
		if a := d.Answer; a != nil && a.Usage.Cost != 2_000_000+100_000 {
			t.Errorf("got %v", a.Usage.Cost)
		}
	}
	if m.Window() != 9 {
		t.Errorf("got a window of %d", m.Window())
	}
}

// gated is a model that answers when it is told to.
type gated struct {
	mu      sync.Mutex
	running int
	most    int
	order   []string
	release chan struct{}
}

func (g *gated) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		g.mu.Lock()
		g.running++
		g.most = max(g.most, g.running)
		g.order = append(g.order, r.System)
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.running--
			g.mu.Unlock()
		}()
		select {
		case <-g.release:
			yield(model.Delta{Answer: &model.Answer{Text: "a", Finish: model.FinishEnd}}, nil)
		case <-ctx.Done():
			yield(model.Delta{}, context.Cause(ctx))
		}
	}
}

// Requests run in the order they came, no more at once than may; who gives up
// waiting takes no place.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{release: make(chan struct{})}
		m := retry.New(g, retry.Config{Concurrency: 2})
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		var all sync.WaitGroup
		var want []string
		for i := range 20 {
			name, ctx := fmt.Sprint(i), ctx
			if i%5 != 3 {
				ctx, want = t.Context(), append(want, name)
			}
			all.Go(func() {
				for d, err := range m.Generate(ctx, model.Request{System: name}) {
					if (err == gone) == (d.Answer != nil) || err != nil && i%5 != 3 {
						t.Errorf("%s: got %v, %v", name, d, err)
					}
				}
			})
			synctest.Wait() // so that they come in this order
		}
		if len(g.order) != 2 {
			t.Errorf("%d run at first, want 2", len(g.order))
		}
		cancel(gone)
		synctest.Wait()
		for range want {
			g.release <- struct{}{}
			synctest.Wait()
		}
		all.Wait()
		if !slices.Equal(g.order, want) || g.most != 2 {
			t.Errorf("%d ran at once, in the order %v, want 2 and %v", g.most, g.order, want)
		}
	})
}

// Who waits for its pause holds no place.
func TestPauseHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tries: []try{bad(passing()), good("b"), good("a")}}
		m := retry.New(f, retry.Config{Concurrency: 1, InitialBackoff: time.Hour, MaxBackoff: time.Hour})
		var first sync.WaitGroup
		first.Go(func() { ask(t.Context(), m) })
		synctest.Wait()
		began := time.Now()
		got, err := ask(t.Context(), m)
		if time.Since(began) != 0 || err != nil || len(got) != 2 {
			t.Errorf("got %v, %v after %v", got, err, time.Since(began))
		}
		first.Wait()
	})
}

// A key that a server echoes is kept nowhere, nor without the space around it.
func TestSecretIsHidden(t *testing.T) {
	const sent = "sk-0123456789"
	for _, secret := range []string{sent, sent + " ", "\t" + sent + "\n"} {
		said := &model.Answer{Text: "your key is " + sent, Finish: model.FinishToolCalls, Reasoning: []byte(`{"r":"` + sent + `"}`),
			Calls: []model.Call{{Provider: sent, Name: sent, Args: []byte(`{"a":"` + sent + `"}`)}}}
		f := &fake{tries: []try{{deltas: []model.Delta{{Text: sent}, {Tool: sent, Args: sent}, {Answer: said}}}}}
		for d, err := range retry.New(f, retry.Config{Secret: secret}).Generate(t.Context(), model.Request{}) {
			shown := fmt.Sprintf("%+v", d)
			if d.Answer != nil {
				shown += fmt.Sprintf("%s %s %s %+v", d.Answer.Text, d.Answer.Reasoning, d.Answer.Calls[0].Args, d.Answer.Calls)
			}
			if err != nil || strings.Contains(shown, sent) {
				t.Errorf("got %s, %v of secret %q", shown, err, secret)
			}
		}
	}
}

// A key that is a word is no secret: answers would be full of holes.
func TestShortSecretDestroysNothing(t *testing.T) {
	said := &model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: "find_role", Args: []byte(`{"role":"boss"}`)}}}
	f := &fake{tries: []try{{deltas: []model.Delta{{Answer: said}}}}}
	for d, err := range retry.New(f, retry.Config{Secret: "o"}).Generate(t.Context(), model.Request{}) {
		if err != nil || d.Answer.Calls[0].Name != "find_role" || string(d.Answer.Calls[0].Args) != `{"role":"boss"}` {
			t.Errorf("got %+v, %v", d.Answer, err)
		}
	}
}

func TestChain(t *testing.T) {
	tooLong := model.Permanent(errcode.ContextExceeded, nil, "too long")
	for _, c := range []struct {
		name   string
		models []try
		want   string
		asked  string
		err    error
	}{
		{"the first is enough", []try{good("a"), good("b")}, "a, answer a", "1 0", nil},
		{"the next is asked when one fails", []try{bad(lasting), bad(passing()), good("c")}, "note, note, c, answer c", "1 1 1", nil},
		{"text that was shown is void", []try{bad(lasting, "a"), good("b")}, "a, again, b, answer b", "1 1", nil},
		{"the last failure counts", []try{bad(passing()), bad(lasting)}, "note", "1 1", lasting},
		{"a conversation too long is not for the next", []try{bad(tooLong), good("b")}, "", "1 0", tooLong},
		{"a chain of one", []try{bad(lasting)}, "", "1", lasting},
	} {
		t.Run(c.name, func(t *testing.T) {
			var links []retry.Named
			var fakes []*fake
			for i, one := range c.models {
				fakes = append(fakes, &fake{tries: []try{one}, window: 100 - i})
				links = append(links, retry.Named{Name: fmt.Sprint("m", i), Model: fakes[i]})
			}
			chain := retry.NewChain(slog.New(slog.DiscardHandler), links[0], links[1:]...)
			got, err := ask(t.Context(), chain)
			var asked []string
			for _, f := range fakes {
				asked = append(asked, fmt.Sprint(len(f.asked)))
			}
			if strings.Join(got, ", ") != c.want || strings.Join(asked, " ") != c.asked || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("got %q, asked %v, %v", got, asked, err)
			}
			if want := 101 - len(links); chain.Window() != want {
				t.Errorf("got a window of %d, want %d", chain.Window(), want)
			}
		})
	}
}

func TestChainEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	second := &fake{tries: []try{good("b")}}
	if _, err := ask(ctx, retry.NewChain(nil, retry.Named{Model: &fake{tries: []try{bad(ctx.Err())}}}, retry.Named{Model: second})); !errors.Is(err, context.Canceled) || len(second.asked) > 0 {
		t.Errorf("got %v, and the next was asked %d times", err, len(second.asked))
	}
}

// Who watches is told which model is asked next.
func TestChainNamesTheNext(t *testing.T) {
	chain := retry.NewChain(nil, retry.Named{Name: "big", Model: &fake{tries: []try{bad(lasting)}}}, retry.Named{Name: "small", Model: &fake{tries: []try{good("b")}}})
	for d := range chain.Generate(t.Context(), model.Request{}) {
		if want := `bad request; model "small" is asked`; d.Note != "" && d.Note != want {
			t.Errorf("got %q, want %q", d.Note, want)
		}
	}
}

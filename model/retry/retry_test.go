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

// stubModel is a model that plays its attempts in order and repeats the last one.
type stubModel struct {
	attempts []stubAttempt
	window   int

	calls []time.Time // when Generate was called
}

// stubAttempt is what one call of Generate yields.
type stubAttempt struct {
	deltas []model.AnswerDelta
	err    error
}

func (f *stubModel) Generate(context.Context, model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		t := f.attempts[min(len(f.calls), len(f.attempts)-1)]
		f.calls = append(f.calls, time.Now())
		for _, d := range t.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if t.err != nil {
			yield(model.AnswerDelta{}, t.err)
		}
	}
}

func (f *stubModel) Window() int { return f.window }

func succeed(text string) stubAttempt {
	return stubAttempt{deltas: []model.AnswerDelta{{Text: text}, {Answer: &model.Answer{Text: text, Finish: model.FinishEnd, Usage: model.TokenUsage{Input: 1000, Output: 10}}}}}
}

func fail(err error, texts ...string) (t stubAttempt) {
	for _, text := range texts {
		t.deltas = append(t.deltas, model.AnswerDelta{Text: text})
	}
	t.err = err
	return t
}

func transientErr() *model.Error {
	return model.TransientError(errcode.LLMCallFailed, nil, "overloaded")
}

func rateLimited(d time.Duration) *model.Error {
	t := model.TransientError(errcode.RateLimited, nil, "too often")
	t.RetryAfter = d
	return t
}

var permanentErr = model.PermanentError(errcode.LLMCallFailed, nil, "bad request")

// collect returns what a model yields, one description for each delta.
func collect(ctx context.Context, m model.Model) (got []string, err error) {
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

func TestModel_Retries(t *testing.T) {
	empty := stubAttempt{deltas: []model.AnswerDelta{{Answer: &model.Answer{Finish: model.FinishEnd}}}}
	for _, c := range []struct {
		name     string
		attempts []stubAttempt
		config   retry.Config
		asked    int
		want     string
		err      string
	}{
		{"first attempt succeeds", []stubAttempt{succeed("a")}, retry.Config{}, 1, "a, answer a", ""},
		{"transient errors", []stubAttempt{fail(transientErr()), fail(rateLimited(3 * time.Second)), succeed("a")}, retry.Config{}, 3, "note, note, a, answer a", ""},
		{"restart after text", []stubAttempt{fail(transientErr(), "a", "b"), succeed("c")}, retry.Config{}, 2, "a, b, again, c, answer c", ""},
		{"permanent error", []stubAttempt{fail(permanentErr)}, retry.Config{}, 1, "", "bad request"},
		{"not a model.Error", []stubAttempt{fail(errors.New("odd"))}, retry.Config{}, 1, "", "odd"},
		{"default MaxAttempts", []stubAttempt{fail(transientErr())}, retry.Config{}, 6, "note, note, note, note, note", "overloaded"},
		{"MaxAttempts", []stubAttempt{fail(transientErr())}, retry.Config{MaxAttempts: 2}, 2, "note", "overloaded"},
		{"many attempts", []stubAttempt{fail(transientErr())}, retry.Config{MaxAttempts: 200}, 200, strings.Repeat("note, ", 198) + "note", "overloaded"},
		{"Retry-After too long", []stubAttempt{fail(rateLimited(3 * time.Minute))}, retry.Config{}, 1, "", "too often"},
		{"empty answer is the runtime's to repair", []stubAttempt{empty}, retry.Config{}, 1, "answer ", ""},
		{"no answer", []stubAttempt{fail(nil, "a"), succeed("b")}, retry.Config{}, 2, "a, again, b, answer b", ""},
		{"maxTokens reached with white space only", []stubAttempt{{deltas: []model.AnswerDelta{{Answer: &model.Answer{Text: " \n", Finish: model.FinishEnd, Stop: model.Length}}}}}, retry.Config{}, 1, "", "maxTokens"},
		{"maxTokens reached without text", []stubAttempt{{deltas: []model.AnswerDelta{{Answer: &model.Answer{Finish: model.FinishEnd, Stop: model.Length}}}}}, retry.Config{}, 1, "", "maxTokens"},
		{"FinishWait is not empty", []stubAttempt{{deltas: []model.AnswerDelta{{Answer: &model.Answer{Finish: model.FinishWait}}}}}, retry.Config{}, 1, "answer ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &stubModel{attempts: c.attempts}
				got, err := collect(t.Context(), retry.New(f, c.config))
				if strings.Join(got, ", ") != c.want || len(f.calls) != c.asked {
					t.Errorf("asked %d times, want %d; got %q, want %q", len(f.calls), c.asked, got, c.want)
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
			})
		})
	}
}

// A delay is between half of its maximum and the maximum, which doubles up to
// MaxBackoff. The provider's Retry-After is added.
func TestModel_DelaysDoubleWithJitter(t *testing.T) {
	for _, c := range []struct {
		name    string
		failure *model.Error
		least   []time.Duration // the most is twice that; both without Retry-After
		asked   time.Duration
	}{
		{"without Retry-After", transientErr(), []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}, 0},
		{"with Retry-After", rateLimited(7 * time.Second), []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}, 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var firsts []time.Duration
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					f := &stubModel{attempts: []stubAttempt{fail(c.failure)}}
					collect(t.Context(), retry.New(f, retry.Config{MaxAttempts: len(c.least) + 1, InitialBackoff: time.Second, MaxBackoff: 10 * time.Second}))
					for i, least := range c.least {
						if got := f.calls[i+1].Sub(f.calls[i]) - c.asked; got < least || got > 2*least {
							t.Errorf("delay %d: got %v, want %v to %v", i+1, got, least, 2*least)
						}
					}
					firsts = append(firsts, f.calls[1].Sub(f.calls[0]))
				})
			}
			if slices.Sort(firsts); firsts[0] == firsts[len(firsts)-1] {
				t.Errorf("all first delays are %v: no jitter", firsts[0])
			}
		})
	}
}

func TestModel_CancelEndsADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		began := time.Now()
		_, err := collect(ctx, retry.New(&stubModel{attempts: []stubAttempt{fail(transientErr())}}, retry.Config{InitialBackoff: time.Minute, MaxBackoff: time.Hour}))
		if took := time.Since(began); err != cause || took != 100*time.Millisecond {
			t.Errorf("got %v after %v", err, took)
		}
	})
}

func TestModel_StopsWhenTheCallerStops(t *testing.T) {
	for name, tries := range map[string][]stubAttempt{"during an answer": {succeed("a")}, "during a failure": {fail(transientErr(), "a"), succeed("b")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &stubModel{attempts: tries}
				for range retry.New(f, retry.Config{}).Generate(t.Context(), model.Request{}) {
					break
				}
				if len(f.calls) != 1 {
					t.Errorf("asked %d times, want once", len(f.calls))
				}
			})
		})
	}
}

func TestModel_ComputesCost(t *testing.T) {
	m := retry.New(&stubModel{attempts: []stubAttempt{succeed("a")}, window: 9}, retry.Config{Name: "main", Prices: model.TokenPrices{Input: 2_000_000_000, Output: 10_000_000_000, Currency: "EUR"}})
	for d := range m.Generate(t.Context(), model.Request{}) {
		if a := d.Answer; a != nil && (a.Usage.Cost != 2_000_000+100_000 || a.Usage.Currency != "EUR" || a.Model != "main") {
			t.Errorf("got %v of model %q", a.Usage.Cost, a.Model)
		}
	}
	if m.Window() != 9 {
		t.Errorf("got a window of %d", m.Window())
	}
}

// blockingModel is a model that answers when the test sends to release.
type blockingModel struct {
	mu         sync.Mutex
	running    int
	maxRunning int
	order      []string
	release    chan struct{}
}

func (g *blockingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		g.mu.Lock()
		g.running++
		g.maxRunning = max(g.maxRunning, g.running)
		g.order = append(g.order, r.System)
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.running--
			g.mu.Unlock()
		}()
		select {
		case <-g.release:
			yield(model.AnswerDelta{Answer: &model.Answer{Text: "a", Finish: model.FinishEnd}}, nil)
		case <-ctx.Done():
			yield(model.AnswerDelta{}, context.Cause(ctx))
		}
	}
}

// Requests run in their order of arrival, at most Concurrency at a time. A request
// cancelled while it waits does not count.
func TestModel_LimitsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &blockingModel{release: make(chan struct{})}
		m := retry.New(g, retry.Config{Concurrency: 2})
		ctx, cancel := context.WithCancelCause(t.Context())
		errGone := errors.New("gone")
		var all sync.WaitGroup
		var want []string
		for i := range 20 {
			name, ctx := fmt.Sprint(i), ctx
			if i%5 != 3 {
				ctx, want = t.Context(), append(want, name)
			}
			all.Go(func() {
				for d, err := range m.Generate(ctx, model.Request{System: name}) {
					if (err == errGone) == (d.Answer != nil) || err != nil && i%5 != 3 {
						t.Errorf("%s: got %v, %v", name, d, err)
					}
				}
			})
			synctest.Wait() // so that they arrive in this order
		}
		if len(g.order) != 2 {
			t.Errorf("%d run at first, want 2", len(g.order))
		}
		cancel(errGone)
		synctest.Wait()
		for range want {
			g.release <- struct{}{}
			synctest.Wait()
		}
		all.Wait()
		if !slices.Equal(g.order, want) || g.maxRunning != 2 {
			t.Errorf("%d ran at once, in the order %v, want 2 and %v", g.maxRunning, g.order, want)
		}
	})
}

// A request that waits for its next attempt does not count as concurrent.
func TestModel_DelayHoldsNoConcurrencySlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &stubModel{attempts: []stubAttempt{fail(transientErr()), succeed("b"), succeed("a")}}
		m := retry.New(f, retry.Config{Concurrency: 1, InitialBackoff: time.Hour, MaxBackoff: time.Hour})
		var first sync.WaitGroup
		first.Go(func() { collect(t.Context(), m) })
		synctest.Wait()
		began := time.Now()
		got, err := collect(t.Context(), m)
		if time.Since(began) != 0 || err != nil || len(got) != 2 {
			t.Errorf("got %v, %v after %v", got, err, time.Since(began))
		}
		first.Wait()
	})
}

// A key that a server echoes is redacted, also without the space around it.
func TestModel_RedactsSecret(t *testing.T) {
	const sent = "sk-0123456789"
	for _, secret := range []string{sent, sent + " ", "\t" + sent + "\n"} {
		said := &model.Answer{Text: "your key is " + sent, Finish: model.FinishToolCalls, Reasoning: []byte(`{"r":"` + sent + `"}`),
			Calls: []model.Call{{Provider: sent, Name: sent, Args: []byte(`{"a":"` + sent + `"}`)}}}
		f := &stubModel{attempts: []stubAttempt{{deltas: []model.AnswerDelta{{Text: sent}, {Tool: sent, Args: sent}, {Answer: said}}}}}
		for d, err := range retry.New(f, retry.Config{Secrets: []string{secret}}).Generate(t.Context(), model.Request{}) {
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

// A key that is split over several deltas is redacted, and no other text is lost.
func TestModel_RedactsSecretSplitOverDeltas(t *testing.T) {
	const secret = "sk-0123456789"
	var deltas []model.AnswerDelta
	for _, c := range "the key " + secret + " ends in sk-0" {
		deltas = append(deltas, model.AnswerDelta{Text: string(c)})
	}
	for _, name := range []string{"a", "b"} {
		deltas = append(deltas, model.AnswerDelta{Tool: name})
		for _, c := range `{"k":"` + secret + `","s":"sk-01` {
			deltas = append(deltas, model.AnswerDelta{Args: string(c)})
		}
	}
	deltas = append(deltas, model.AnswerDelta{Answer: &model.Answer{Text: "x"}})
	f := &stubModel{attempts: []stubAttempt{{deltas: deltas}}}
	text, calls := "", ""
	for d, err := range retry.New(f, retry.Config{Secrets: []string{secret}}).Generate(t.Context(), model.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		text += d.Text
		calls += d.Tool + d.Args
	}
	const args = `{"k":"***","s":"sk-01`
	if text != "the key *** ends in sk-0" || calls != "a"+args+"b"+args {
		t.Errorf("got %q and %q", text, calls)
	}
}

// A key that is split between an answer of maximum length and the next one is not in both
// together, which the runtime joins.
func TestModel_RedactsSecretSplitOverAnswers(t *testing.T) {
	const secret = "sk-0123456789"
	items := []model.Item{{Answer: &model.Answer{Text: "the key sk-01", Finish: model.FinishRepair, Repair: model.RepairContinue}}}
	f := &stubModel{attempts: []stubAttempt{{deltas: []model.AnswerDelta{{Text: "23456"}, {Text: "789 ends"}, {Answer: &model.Answer{Text: "23456789 ends"}}}}}}
	shown := ""
	for d, err := range retry.New(f, retry.Config{Secrets: []string{secret}}).Generate(t.Context(), model.Request{Items: items}) {
		if err != nil || d.Answer != nil && d.Answer.Text != "*** ends" {
			t.Errorf("got %+v, %v", d.Answer, err)
		}
		shown += d.Text
	}
	if shown != "*** ends" {
		t.Errorf("got the deltas %q", shown)
	}
}

// A short key is not redacted: it would be removed from ordinary words.
func TestModel_ShortSecretIsNotRedacted(t *testing.T) {
	said := &model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: "find_role", Args: []byte(`{"role":"boss"}`)}}}
	f := &stubModel{attempts: []stubAttempt{{deltas: []model.AnswerDelta{{Answer: said}}}}}
	for d, err := range retry.New(f, retry.Config{Secrets: []string{"o"}}).Generate(t.Context(), model.Request{}) {
		if err != nil || d.Answer.Calls[0].Name != "find_role" || string(d.Answer.Calls[0].Args) != `{"role":"boss"}` {
			t.Errorf("got %+v, %v", d.Answer, err)
		}
	}
}

func TestFallback_TriesNextModel(t *testing.T) {
	tooLong := model.PermanentError(errcode.ContextExceeded, nil, "too long")
	for _, c := range []struct {
		name   string
		models []stubAttempt
		want   string
		asked  string
		err    error
	}{
		{"first model succeeds", []stubAttempt{succeed("a"), succeed("b")}, "a, answer a", "1 0", nil},
		{"next model after a failure", []stubAttempt{fail(permanentErr), fail(transientErr()), succeed("c")}, "note, note, c, answer c", "1 1 1", nil},
		{"restart after text", []stubAttempt{fail(permanentErr, "a"), succeed("b")}, "a, again, b, answer b", "1 1", nil},
		{"all models fail", []stubAttempt{fail(transientErr()), fail(permanentErr)}, "note", "1 1", permanentErr},
		{"conversation too long", []stubAttempt{fail(tooLong), succeed("b")}, "", "1 0", tooLong},
		{"only one model", []stubAttempt{fail(permanentErr)}, "", "1", permanentErr},
	} {
		t.Run(c.name, func(t *testing.T) {
			var links []retry.Named
			var fakes []*stubModel
			for i, one := range c.models {
				fakes = append(fakes, &stubModel{attempts: []stubAttempt{one}, window: 100 - i})
				links = append(links, retry.Named{Name: fmt.Sprint("m", i), Model: fakes[i]})
			}
			chain := retry.NewFallback(slog.New(slog.DiscardHandler), links[0], links[1:]...)
			got, err := collect(t.Context(), chain)
			var asked []string
			for _, f := range fakes {
				asked = append(asked, fmt.Sprint(len(f.calls)))
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

func TestFallback_StopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	second := &stubModel{attempts: []stubAttempt{succeed("b")}}
	if _, err := collect(ctx, retry.NewFallback(nil, retry.Named{Model: &stubModel{attempts: []stubAttempt{fail(ctx.Err())}}}, retry.Named{Model: second})); !errors.Is(err, context.Canceled) || len(second.calls) > 0 {
		t.Errorf("got %v, and the next was asked %d times", err, len(second.calls))
	}
}

func TestFallback_NotesNameTheNextModel(t *testing.T) {
	chain := retry.NewFallback(nil, retry.Named{Name: "big", Model: &stubModel{attempts: []stubAttempt{fail(permanentErr)}}}, retry.Named{Name: "small", Model: &stubModel{attempts: []stubAttempt{succeed("b")}}})
	for d := range chain.Generate(t.Context(), model.Request{}) {
		if want := `bad request; trying model "small"`; d.Note != "" && d.Note != want {
			t.Errorf("got %q, want %q", d.Note, want)
		}
	}
}

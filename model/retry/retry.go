// Package retry wraps a model with retries, backoff, a limit on concurrent requests
// and fallbacks to other models.
//
//	main := retry.New(openai.New(config), retry.Config{Name: "main", Concurrency: 8})
//	m := retry.NewFallback(log, retry.Named{Name: "main", Model: main}, retry.Named{Name: "small", Model: small})
//
// Only requests are repeated, never effects: the runtime acts on an answer once,
// after it has recorded it.
package retry

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// Config configures a Model. Zero fields have the defaults given with them.
type Config struct {
	Name           string
	Concurrency    int           // concurrent requests; 16
	MaxAttempts    int           // attempts of one request; 6
	InitialBackoff time.Duration // before the second attempt, doubled for each further one; 1 second
	MaxBackoff     time.Duration // the longest delay; a provider that asks for a longer one is not retried; 2 minutes
	AttemptTimeout time.Duration // of one attempt; 30 minutes
	Prices         model.TokenPrices
	Secrets        []string     // the provider's key and others, which are redacted from answers and deltas
	Log            *slog.Logger // nil discards
}

// Model is a model.Model that retries the requests of another. A request that waits
// for its next attempt does not count as concurrent. Safe for concurrent use.
type Model struct {
	model.WindowWrapper
	config Config
	secret *redact.Redactor
	sem    *semaphore.Weighted // limits concurrency; waiters are served in order

	cutNoted atomic.Bool // cutNote has returned its note
}

// New returns a Model that wraps inner.
func New(inner model.Model, config Config) *Model {
	setDefault(&config.Concurrency, 16)
	setDefault(&config.MaxAttempts, 6)
	setDefault(&config.InitialBackoff, time.Second)
	setDefault(&config.MaxBackoff, 2*time.Minute)
	setDefault(&config.AttemptTimeout, 30*time.Minute)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Model{
		WindowWrapper: model.WindowWrapper{Model: inner}, config: config,
		secret: redact.New(config.Secrets...), sem: semaphore.NewWeighted(int64(config.Concurrency)),
	}
}

// setDefault sets a zero value to its default.
func setDefault[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// Generate implements model.Model. After a failed attempt that is retried it yields
// an AnswerDelta with a Note. The AnswerDelta has Restart if the attempt had yielded one
// without an Answer.
//
// Its error is the error of ctx or of the last attempt.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		delays := backoff.Backoff{Initial: m.config.InitialBackoff, Max: m.config.MaxBackoff, Jitter: true}
		for n := 1; ; n++ {
			a := attempt{yield: yield}
			err := m.attempt(ctx, r, &a)
			if a.done {
				return
			}
			wait, retry := m.retryDelay(ctx, n, err, &delays)
			if !retry {
				yield(model.AnswerDelta{}, err)
				return
			}
			m.config.Log.Warn("retrying the model request", "model", m.config.Name, "agent", r.Self.ID, "attempt", n, "after", wait, "error", err)
			if !yield(model.AnswerDelta{Restart: a.emitted, Note: retryNote(err, wait)}, nil) {
				return
			}
			if err := sleepCtx(ctx, wait); err != nil {
				yield(model.AnswerDelta{}, err)
				return
			}
		}
	}
}

// attempt is the progress of one attempt of a request.
type attempt struct {
	yield   func(model.AnswerDelta, error) bool
	emitted bool // a delta was yielded
	done    bool // the answer was yielded, or the caller stopped
}

// emit yields deltas, up to the one with the answer.
func (a *attempt) emit(list []model.AnswerDelta) {
	for _, delta := range list {
		a.emitted = a.emitted || delta.Answer == nil
		if !a.yield(delta, nil) || delta.Answer != nil {
			a.done = true
			return
		}
	}
}

// attempt asks the model once, when the concurrency limit allows.
func (m *Model) attempt(ctx context.Context, r model.Request, a *attempt) error {
	if err := m.sem.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer m.sem.Release(1)
	ctx, cancel := context.WithTimeoutCause(ctx, m.config.AttemptTimeout, model.PermanentError(errcode.LLMCallFailed, nil, "model %q did not finish within %v", m.config.Name, m.config.AttemptTimeout))
	defer cancel()
	begun := beginning(r.Items)
	secrets := newDeltaRedactor(m.secret, begun)
	for delta, err := range m.WindowWrapper.Generate(ctx, r) {
		if err != nil {
			return err
		}
		if answer := delta.Answer; answer != nil {
			if err := m.checkLength(answer); err != nil {
				return err
			}
			if note := m.cutNote(r, answer.Usage.Input); note != "" {
				a.emit([]model.AnswerDelta{{Note: note}})
			}
			answer.Usage, answer.Model = m.usage(r, answer), m.config.Name
			m.redact(answer, begun)
		}
		if a.done {
			return nil
		}
		if a.emit(secrets.redact(delta)); a.done {
			return nil
		}
	}
	return model.TransientError(errcode.LLMCallFailed, nil, "model %q ended without an answer", m.config.Name)
}

// usage returns the tokens and the cost of an answer. Counts that the provider does
// not report are estimated, since those tokens cost money too.
func (m *Model) usage(r model.Request, a *model.Answer) model.TokenUsage {
	u := a.Usage.Clamp()
	if u.Input == 0 {
		u = model.TokenUsage{Input: chat.RequestTokens(r), Output: u.Output, Estimated: true}
	}
	if u.Output == 0 {
		u.Output, u.Estimated = chat.ItemTokens(model.Item{Answer: a}), true
	}
	if u.Cost = m.config.Prices.Cost(u); u.Cost > 0 {
		u.Currency = m.config.Prices.Currency
	}
	return u
}

// checkLength rejects an answer that reached its maximum length before it began: there is
// nothing to continue.
func (m *Model) checkLength(a *model.Answer) error {
	if a.Stop != model.Length || a.Finish != model.FinishEnd || strings.TrimSpace(a.Text) != "" || a.Value != nil {
		return nil
	}
	return model.PermanentError(errcode.LLMCallFailed, nil, "model %q reached maxTokens before it answered; raise its maxTokens", m.config.Name)
}

// retryDelay returns how long to wait before the next attempt: the next of delays,
// in addition to what the provider asked for. It reports false if err is not to be
// retried.
func (m *Model) retryDelay(ctx context.Context, try int, err error, delays *backoff.Backoff) (time.Duration, bool) {
	t, ok := errors.AsType[*model.Error](err)
	if !ok || !t.Retryable || try >= m.config.MaxAttempts || ctx.Err() != nil || t.RetryAfter > m.config.MaxBackoff {
		return 0, false
	}
	return t.RetryAfter + delays.Next(), true
}

// retryNote describes why and when the next attempt starts.
func retryNote(err error, wait time.Duration) string {
	return errcode.Message(err) + "; retrying in " + wait.Round(100*time.Millisecond).String()
}

// sleepCtx waits for d. It returns the cause of ctx if that ends first.
func sleepCtx(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

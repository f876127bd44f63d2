// Package retry keeps a model usable under trouble: it asks again what may
// succeed later, lets no more requests run at once than the provider takes,
// in the order they came, and turns to another model when one fails.
//
// What it repeats is the request, never an effect: an answer is acted upon
// once, when the runtime has recorded it.
package retry

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// Config bounds a Model. Zero fields are the defaults.
type Config struct {
	Name           string
	Concurrency    int           // requests at once; 16
	MaxAttempts    int           // of one request; 6
	InitialBackoff time.Duration // before the second try, doubled with each; 1 second
	MaxBackoff     time.Duration // the longest pause, also one the provider asks for; 2 minutes
	AttemptTimeout time.Duration // the longest that one try may take; 30 minutes
	Prices         model.Prices
	Secret         string       // the provider's key, which no answer and no delta may hold
	Log            *slog.Logger // nil discards
}

// Model is a model.Model around another. An agent that waits for its pause
// holds no place. Safe for concurrent use.
type Model struct {
	model.Wrapper
	config Config
	secret *redact.Redactor
	sem    *semaphore.Weighted // first come, first served
}

// New makes a Model around inner.
func New(inner model.Model, config Config) *Model {
	setDefault(&config.Concurrency, 16)
	setDefault(&config.MaxAttempts, 6)
	setDefault(&config.InitialBackoff, time.Second)
	setDefault(&config.MaxBackoff, 2*time.Minute)
	setDefault(&config.AttemptTimeout, 30*time.Minute)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Model{model.Wrapper{Model: inner}, config, redact.New(config.Secret), semaphore.NewWeighted(int64(config.Concurrency))}
}

func setDefault[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// Generate implements model.Model. A try that failed is followed by a Delta
// with a Note, which says Again if the try had yielded something.
//
// Errors: ctx's, or that of the last try.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		delays := backoff.Backoff{Initial: m.config.InitialBackoff, Max: m.config.MaxBackoff, Jitter: true}
		for try := 1; ; try++ {
			a := attempt{yield: yield}
			err := m.attempt(ctx, r, &a)
			if a.done {
				return
			}
			wait, again := m.retryDelay(ctx, try, err, &delays)
			if !again {
				yield(model.Delta{}, err)
				return
			}
			m.config.Log.Warn("the model is asked again", "model", m.config.Name, "agent", r.Self.ID, "try", try, "after", wait, "error", err)
			if !yield(model.Delta{Restart: a.emitted, Note: retryNote(err, wait)}, nil) {
				return
			}
			if err := sleepCtx(ctx, wait); err != nil {
				yield(model.Delta{}, err)
				return
			}
		}
	}
}

// attempt passes on what one try yields.
type attempt struct {
	yield   func(model.Delta, error) bool
	emitted bool // something was passed on
	done    bool // the answer was, or nobody listens
}

// attempt asks once, when there is a place.
func (m *Model) attempt(ctx context.Context, r model.Request, a *attempt) error {
	if err := m.sem.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer m.sem.Release(1)
	ctx, cancel := context.WithTimeoutCause(ctx, m.config.AttemptTimeout, model.Permanent(errcode.LLMCallFailed, nil, "model %q did not come to an end within %v", m.config.Name, m.config.AttemptTimeout))
	defer cancel()
	for delta, err := range m.Wrapper.Generate(ctx, r) {
		if err != nil {
			return err
		}
		if answer := delta.Answer; answer != nil {
			if err := m.checkNonEmpty(answer); err != nil {
				return err
			}
			answer.Usage = m.usage(r, answer)
			m.redact(answer)
			a.done = true
		}
		a.emitted = a.emitted || delta.Answer == nil
		if !a.yield(m.redactDelta(delta), nil) {
			a.done = true
		}
		if a.done {
			return nil
		}
	}
	return model.Transient(errcode.LLMCallFailed, nil, "model %q ended without an answer", m.config.Name)
}

// usage gives what an answer used and cost. What a provider does not count is
// estimated: it costs all the same.
func (m *Model) usage(r model.Request, a *model.Answer) model.Usage {
	u := a.Usage.Clamp()
	if u.Input == 0 {
		u = model.Usage{Input: chat.Length(r), Output: u.Output, Estimated: true}
	}
	if u.Output == 0 {
		u.Output, u.Estimated = chat.Tokens(model.Item{Answer: a}), true
	}
	u.Cost = m.config.Prices.Cost(u)
	return u
}

// checkNonEmpty refuses an answer that says nothing: it would end the turn.
func (m *Model) checkNonEmpty(a *model.Answer) error {
	if a.Finish != model.FinishEnd || a.Text != "" || a.Value != nil {
		return nil
	}
	if a.Stop == model.Length {
		return model.Permanent(errcode.LLMCallFailed, nil, "model %q used up the length of its answer before it said anything; raise its maxTokens", m.config.Name)
	}
	return model.Transient(errcode.LLMCallFailed, nil, "model %q gave an empty answer", m.config.Name)
}

// retryDelay reports whether to retry after a failure, and after which delay: the
// next of delays in addition to what the provider asked for.
func (m *Model) retryDelay(ctx context.Context, try int, err error, delays *backoff.Backoff) (time.Duration, bool) {
	t, ok := errors.AsType[*model.Error](err)
	if !ok || !t.Retryable || try >= m.config.MaxAttempts || ctx.Err() != nil || t.RetryAfter > m.config.MaxBackoff {
		return 0, false
	}
	return t.RetryAfter + delays.Next(), true
}

// retryNote words why and when a model is asked again.
func retryNote(err error, wait time.Duration) string {
	return errcode.Message(err) + "; it is asked again in " + wait.Round(100*time.Millisecond).String()
}

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

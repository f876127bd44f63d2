package app

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model"
)

// keyModel is a model whose API key is read from a file or from a command. If the
// provider does not accept the key, it is read again. If it has changed, the request is
// repeated once. If a key whose time is over cannot be read again, it is used for a grace
// time. Safe for concurrent use.
type keyModel struct {
	name   string
	config keyConfig

	reads   singleflight.Group // one read at a time, whose result all waiting requests share
	ctx     context.Context    // of reads; ended by Close
	cancel  context.CancelFunc
	running sync.WaitGroup // of reads

	mu       sync.Mutex // guards the fields below
	key      yamldoc.Secret
	client   model.Model // uses key
	until    time.Time   // when key is to be read again; zero if it is kept until it is rejected
	failure  error       // of the last read; nil if it brought a key that is not rejected
	failedAt time.Time
}

// maxKeyGrace limits how long a key is used after its time when it cannot be read again.
const maxKeyGrace = 10 * time.Minute

// errSameKey is the failure of a read after a rejection.
var errSameKey = errors.New("the provider does not accept its key, and no other key was read")

// keyConfig is what a keyModel needs.
type keyConfig struct {
	read    func(context.Context) (yamldoc.Secret, error) // reads the key; ends in a limited time
	refresh time.Duration                                 // how long a key is used; 0 until it is rejected
	retry   time.Duration                                 // how long a failure to read a key is remembered
	build   func(key yamldoc.Secret) model.Model          // constructs the client
	hide    func(key yamldoc.Secret)                      // registers a new key as a secret, before it is used
	log     *slog.Logger
}

// newKeyModel returns a model that begins with key, or reads a key at the first request if
// key is empty.
func newKeyModel(name string, key yamldoc.Secret, config keyConfig) *keyModel {
	m := &keyModel{name: name, config: config, key: key, client: config.build(key)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Close stops a read in progress and waits for its end.
func (m *keyModel) Close() error {
	m.mu.Lock()
	m.cancel()
	m.mu.Unlock()
	m.running.Wait()
	return nil
}

// Window implements model.LanguageModel.
func (m *keyModel) Window() int {
	client, _ := m.current()
	tokens, _ := model.WindowOf(client)
	return tokens
}

// Generate implements model.Model.
func (m *keyModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		client, key, err := m.acquire(ctx)
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		emitted := false
		for delta, err := range client.Generate(ctx, r) {
			if next, changed := m.renewAfter(ctx, err, key); changed {
				if !emitted || yield(model.AnswerDelta{Restart: true}, nil) {
					next.Generate(ctx, r)(yield)
				}
				return
			}
			emitted = emitted || err == nil && delta.Answer == nil
			if !yield(delta, err) {
				return
			}
		}
	}
}

// current returns the client and its key, which may be empty.
func (m *keyModel) current() (model.Model, yamldoc.Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client, m.key
}

// acquire returns a client and its key. It reads the key if there is no key yet or its time is
// over. Its error is the cause of ctx or a *model.Error.
func (m *keyModel) acquire(ctx context.Context) (model.Model, yamldoc.Secret, error) {
	if client, key := m.current(); key != "" && m.isUsable(0) {
		return client, key, nil
	}
	client, key, err := m.read(ctx)
	switch {
	case err == nil:
		return client, key, nil
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case key != "" && m.isUsable(min(m.config.refresh, maxKeyGrace)):
		return client, key, nil
	}
	return nil, "", model.OperatorError(errcode.LLMCallFailed, nil, "model %q has no API key: %v", m.name, err)
}

// isUsable reports whether the time of the key, and grace, are not over.
func (m *keyModel) isUsable(grace time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.until.IsZero() || time.Now().Before(m.until.Add(grace))
}

// renewAfter returns a client with another key, if err is that the provider does not
// accept the key used. It reports false if there is no other key.
func (m *keyModel) renewAfter(ctx context.Context, err error, used yamldoc.Secret) (model.Model, bool) {
	if t, ok := errors.AsType[*model.Error](err); !ok || !t.KeyInvalid {
		return nil, false
	}
	if client, key := m.current(); key != used { // another request has read it
		return client, true
	}
	client, key, err := m.read(ctx)
	if err != nil {
		return nil, false
	}
	if key == used {
		m.setFailure(errSameKey)
	}
	return client, key != used
}

// read reads the key and returns the client that uses it. Concurrent callers share one
// read. If the key cannot be read, it also returns the client and the key of before. If ctx
// ends or m is closed, it returns none.
func (m *keyModel) read(ctx context.Context) (model.Model, yamldoc.Secret, error) {
	result := make(chan error, 1)
	if !m.start(func() { result <- m.readShared() }) {
		return nil, "", errors.New("the model is closed")
	}
	select {
	case err := <-result:
		client, key := m.current()
		return client, key, err
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
}

// start runs work in a goroutine for which Close waits. It reports false if m is closed.
func (m *keyModel) start(work func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return false
	}
	m.running.Go(work)
	return true
}

// readShared reads the key, or waits for a read in progress. Soon after a failure it
// returns that failure.
func (m *keyModel) readShared() error {
	_, err, _ := m.reads.Do("", func() (any, error) {
		if err := m.recentFailure(); err != nil {
			return nil, err
		}
		key, err := m.config.read(m.ctx)
		if err != nil {
			m.setFailure(err)
			m.config.log.Warn("the key of a model cannot be read", "model", m.name, "error", operatorText(err))
			return nil, err
		}
		m.setKey(key)
		return nil, nil
	})
	return err
}

// recentFailure returns the failure of the last read while it is remembered, else nil.
func (m *keyModel) recentFailure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.failedAt) < m.config.retry {
		return m.failure
	}
	return nil
}

// setFailure remembers why a read brought no key that can be used.
func (m *keyModel) setFailure(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure, m.failedAt = err, time.Now()
}

// setKey replaces the client if the key has changed.
func (m *keyModel) setKey(key yamldoc.Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = nil
	if m.config.refresh > 0 {
		m.until = time.Now().Add(m.config.refresh)
	}
	if key != m.key {
		m.config.hide(key)
		m.key, m.client = key, m.config.build(key)
		m.config.log.Info("the key of a model was read", "model", m.name)
	}
}

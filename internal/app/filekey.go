package app

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model"
)

// fileKeyModel is a model whose API key is in a file. If the provider does not accept the
// key, it reads the file again. If the key has changed, it repeats the request once.
type fileKeyModel struct {
	name   string
	config fileKeyConfig

	mu     sync.Mutex // guards the fields below
	key    yamldoc.Secret
	client model.Model // uses key
}

// fileKeyConfig is what a fileKeyModel needs.
type fileKeyConfig struct {
	read  func() (yamldoc.Secret, error)       // reads the file
	build func(key yamldoc.Secret) model.Model // constructs the client
	hide  func(key yamldoc.Secret)             // registers a new key as a secret, before it is used
	log   *slog.Logger
}

func newFileKeyModel(name string, key yamldoc.Secret, config fileKeyConfig) *fileKeyModel {
	return &fileKeyModel{name: name, config: config, key: key, client: config.build(key)}
}

// Window implements model.LanguageModel.
func (m *fileKeyModel) Window() int {
	client, _ := m.current()
	tokens, _ := model.WindowOf(client)
	return tokens
}

// Generate implements model.Model.
func (m *fileKeyModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		client, key := m.current()
		emitted := false
		for delta, err := range client.Generate(ctx, r) {
			if next, changed := m.renewAfter(err, key); changed {
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

// current returns the client and its key.
func (m *fileKeyModel) current() (model.Model, yamldoc.Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client, m.key
}

// renewAfter returns a client with the key that is in the file now, if err is that the
// provider does not accept the key used. It reports false if there is no other key.
func (m *fileKeyModel) renewAfter(err error, used yamldoc.Secret) (model.Model, bool) {
	if t, ok := errors.AsType[*model.Error](err); !ok || !t.KeyInvalid {
		return nil, false
	}
	key, err := m.config.read()
	if err != nil {
		m.config.log.Warn("the key of a model cannot be read again", "model", m.name, "error", err)
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if key != m.key {
		m.config.hide(key)
		m.key, m.client = key, m.config.build(key)
		m.config.log.Info("the key of a model was read again", "model", m.name)
	}
	return m.client, key != used
}

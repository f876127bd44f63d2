package app

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// missingKeys says which of the models in use have no key. It is no mistake: for
// some another model answers, and of others nobody may ever ask.
func (r *modelSet) missingKeys(cfg *config.Config) (notes []string) {
	for _, d := range cfg.Used() {
		if d.KeyFrom == "" || d.Key != "" {
			continue
		}
		who := modelUsers(cfg, d.Name)
		if _, replaced := r.byName[d.Name]; replaced || len(who) == 0 {
			notes = append(notes, fmt.Sprintf("model %q is not used: %s is not set", d.Name, d.KeyFrom))
			continue
		}
		for _, one := range who {
			notes = append(notes, fmt.Sprintf("%s thinks with %s: %s is not set", one, d.Name, d.KeyFrom))
		}
	}
	return notes
}

// modelUsers names who asks a model first.
func modelUsers(cfg *config.Config, name string) (who []string) {
	if cfg.Organization.Model == name {
		who = append(who, "the organization")
	}
	for _, r := range cfg.Roles {
		if r.Model == name {
			who = append(who, "role "+r.Name)
		}
	}
	return who
}

// partialFallback is a model that says, when it fails, which others could not be asked.
type partialFallback struct {
	model.Wrapper
	note string
}

// Generate implements model.Model.
func (l partialFallback) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for delta, err := range l.Model.Generate(ctx, r) {
			if !yield(delta, l.tell(err)) {
				return
			}
		}
	}
}

func (l partialFallback) tell(err error) error {
	t, ok := errors.AsType[*model.Error](err)
	if !ok || t.Err.Code == errcode.ContextExceeded {
		return err
	}
	said := *t.Err
	said.Message += "; " + l.note
	return &model.Error{Retryable: t.Retryable, RetryAfter: t.RetryAfter, Err: &said}
}

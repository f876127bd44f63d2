package app

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/model"
)

// missingKeys returns a note for each model in use that has no API key. A missing key
// is not an error: a fallback may answer, or the model may never be called.
func (m *modelSet) missingKeys(cfg *config.Config) (notes []string) {
	for _, d := range cfg.UsedModels() {
		if d.HasKey() {
			continue
		}
		users := modelUsers(cfg, d.Name)
		if _, replaced := m.byName[d.Name]; replaced || len(users) == 0 {
			notes = append(notes, fmt.Sprintf("model %q is not used: %s is not set", d.Name, d.KeyFrom))
			continue
		}
		for _, user := range users {
			notes = append(notes, fmt.Sprintf("%s uses model %s: %s is not set", user, d.Name, d.KeyFrom))
		}
	}
	return notes
}

// modelUsers lists the organization and the roles that use the model, fallbacks apart.
func modelUsers(cfg *config.Config, name string) (users []string) {
	uses := func(named string) bool {
		chosen, ok := cfg.ChooseModel(named)
		return ok && chosen.Name == name
	}
	if uses(cfg.Organization.Model) {
		users = append(users, "the organization")
	}
	for _, r := range cfg.Roles {
		if uses(r.Model) {
			users = append(users, "role "+r.Name)
		}
	}
	return users
}

// partialFallback adds to a model's errors which of the model and its fallbacks have no API key.
type partialFallback struct {
	model.WindowWrapper
	note string
}

// Generate implements model.Model.
func (p partialFallback) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		for delta, err := range p.Model.Generate(ctx, r) {
			if !yield(delta, p.addNote(err)) {
				return
			}
		}
	}
}

// addNote appends the note to a model error, and returns other errors unchanged. A
// request that is too long is not passed on to fallbacks, so its error gets no note.
func (p partialFallback) addNote(err error) error {
	t, ok := errors.AsType[*model.Error](err)
	if !ok || t.Err.Code == errcode.ContextExceeded {
		return err
	}
	noted, failure := *t.Err, *t
	noted.Message += "; " + p.note
	failure.Err = &noted
	return &failure
}

package retry

import (
	"context"
	"fmt"
	"iter"
	"log/slog"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Named is a model of a Fallback.
type Named struct {
	Name  string // for messages and the log
	Model model.Model
}

// Fallback is a model.Model that asks the first of its models, and the next one if
// that fails. Its context window is the smallest window of its models, so that a conversation
// fits all of them.
// Safe for concurrent use.
type Fallback struct {
	models []Named
	log    *slog.Logger
}

// NewFallback returns a Fallback that asks first, then others in order. log may be nil.
func NewFallback(log *slog.Logger, first Named, others ...Named) *Fallback {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Fallback{append([]Named{first}, others...), log}
}

// Window implements model.LanguageModel. It returns 0 if no model has a window.
func (f *Fallback) Window() int {
	least := 0
	for _, l := range f.models {
		if tokens, ok := model.WindowOf(l.Model); ok && (least == 0 || tokens < least) {
			least = tokens
		}
	}
	return least
}

// Generate implements model.Model. The next model is not asked if the conversation
// is too long, since the runtime compresses it then. Before each further model it
// yields an AnswerDelta with a Note. The AnswerDelta has Restart if the failed model had
// yielded one without an Answer.
func (f *Fallback) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		for i, l := range f.models {
			shown, failure := false, error(nil)
			for delta, err := range l.Model.Generate(ctx, r) {
				if failure = err; err != nil {
					break
				}
				shown = shown || delta.Answer == nil
				if !yield(delta, nil) {
					return
				}
			}
			if failure == nil {
				return
			}
			if i == len(f.models)-1 || ctx.Err() != nil || errcode.CodeOf(failure) == errcode.ContextExceeded {
				yield(model.AnswerDelta{}, failure)
				return
			}
			next := f.models[i+1].Name
			f.log.Warn("trying the next model", "agent", r.Self.ID, "next", next, "error", failure)
			if !yield(model.AnswerDelta{Restart: shown, Note: fmt.Sprintf("%s; trying model %q", errcode.Message(failure), next)}, nil) {
				return
			}
		}
	}
}

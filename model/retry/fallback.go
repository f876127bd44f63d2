package retry

import (
	"context"
	"fmt"
	"iter"
	"log/slog"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Named is a model of a Chain.
type Named struct {
	Name  string // for messages
	Model model.Model
}

// Fallback is a model.Model that asks the first of its models, and the next when
// one fails for good. It has the smallest window of them, so that what fits
// one fits all.
type Fallback struct {
	models []Named
	log   *slog.Logger
}

// NewChain makes a Chain; log may be nil.
func NewChain(log *slog.Logger, first Named, others ...Named) *Fallback {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Fallback{append([]Named{first}, others...), log}
}

// Window implements model.LanguageModel.
func (c *Fallback) Window() int {
	least := 0
	for _, l := range c.models {
		if tokens, ok := model.Window(l.Model); ok && (least == 0 || tokens < least) {
			least = tokens
		}
	}
	return least
}

// Generate implements model.Model. A conversation that is too long for one
// model is not tried with the next: it is to be compressed.
func (c *Fallback) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for i, l := range c.models {
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
			if i == len(c.models)-1 || ctx.Err() != nil || errcode.Of(failure) == errcode.ContextExceeded {
				yield(model.Delta{}, failure)
				return
			}
			next := c.models[i+1].Name
			c.log.Warn("the next model is asked", "agent", r.Self.ID, "next", next, "error", failure)
			if !yield(model.Delta{Restart: shown, Note: fmt.Sprintf("%s; model %q is asked", errcode.Message(failure), next)}, nil) {
				return
			}
		}
	}
}

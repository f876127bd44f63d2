package retry

import (
	"slices"

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model"
)

// redact removes the provider's secrets from an answer: a server that echoes requests
// must not bring them into the journal. The runtime joins the answer with its beginning.
func (m *Model) redact(a *model.Answer, beginning string) {
	r := m.secret
	text := r.ContinueStream(beginning)
	a.Text, a.Value, a.Reasoning = text.RedactPart(a.Text)+text.Flush(), r.RedactJSON(a.Value), r.RedactJSON(a.Reasoning)
	for i := range a.Calls {
		c := &a.Calls[i]
		c.Name, c.Provider, c.Args = r.RedactText(c.Name), r.RedactText(c.Provider), r.RedactJSON(c.Args)
	}
}

// deltaRedactor removes the provider's secrets from the deltas of one attempt, also where
// several deltas have a part of it.
type deltaRedactor struct {
	redactor   *redact.Redactor
	text, args *redact.TextStream
}

// newDeltaRedactor returns a deltaRedactor for an answer that continues a beginning.
func newDeltaRedactor(r *redact.Redactor, beginning string) deltaRedactor {
	return deltaRedactor{r, r.ContinueStream(beginning), r.NewStream()}
}

// beginning returns the text of the answer that the next one continues, "" if there is none.
func beginning(items []model.Item) string {
	for _, item := range slices.Backward(items) {
		if a := item.Answer; a != nil {
			if a.Repair == model.RepairContinue {
				return a.Text
			}
			return ""
		}
	}
	return ""
}

// redact returns what can be shown after d. What was held back of arguments comes before
// the next call, and everything that was held back before the answer.
func (p deltaRedactor) redact(d model.AnswerDelta) (list []model.AnswerDelta) {
	if d.Tool != "" || d.Answer != nil {
		list = appendDelta(list, model.AnswerDelta{Args: p.args.Flush()})
	}
	if d.Answer != nil {
		list = appendDelta(list, model.AnswerDelta{Text: p.text.Flush()})
	}
	d.Text, d.Tool, d.Args = p.text.RedactPart(d.Text), p.redactor.RedactText(d.Tool), p.args.RedactPart(d.Args)
	return appendDelta(list, d)
}

// appendDelta appends a delta that is not empty.
func appendDelta(list []model.AnswerDelta, d model.AnswerDelta) []model.AnswerDelta {
	if d == (model.AnswerDelta{}) {
		return list
	}
	return append(list, d)
}

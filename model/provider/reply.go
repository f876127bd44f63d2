package provider

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// Decoder takes in one answer of a provider. What it does not know it passes
// over. Not safe for concurrent use.
type Decoder interface {
	// Document takes in an answer that comes whole, a JSON object.
	Document(doc gjson.Result) error

	// Event takes in a piece of one, a JSON object too.
	Event(doc gjson.Result) error

	// Answer gives what came as an answer, when nothing more does.
	Answer() (*model.Answer, error)
}

// ResponseReader is an answer as it comes: what every Decoder keeps of one, and the
// words it has for what goes wrong.
type ResponseReader struct {
	Draft chat.AnswerBuilder
	Tools *chat.Tools // nil when none is offered
	Ended bool        // the provider said that this was all; nothing more is read

	model   *Model
	items   []model.Item // that are answered
	yield   func(model.Delta, error) bool
	stopped bool // nobody listens any more
}

// Emit passes on a piece to who listens, when pieces are asked for. The name
// of a tool is the one it is offered by.
func (r *ResponseReader) Emit(d model.Delta) {
	d.Tool = r.Tools.OriginalName(d.Tool)
	if d != (model.Delta{}) && r.model.config.Stream && !r.stopped {
		d.Text, d.Tool, d.Args = strings.Clone(d.Text), strings.Clone(d.Tool), strings.Clone(d.Args) // of the event, which they would keep
		r.stopped = !r.yield(d, nil)
	}
}

// Refusal ends an answer that the model refused, or the provider's filter: kind
// and why are their words, or "".
func (r *ResponseReader) Refusal(kind, why string) {
	said := "The model refused to answer"
	if r.Draft.HasText() {
		said = "\n\nThe model refused to go on"
	}
	if kind != "" {
		said += " (" + kind + ")"
	}
	r.Draft.Stop = model.Refusal
	r.Draft.AppendText(strings.TrimRight(said+". "+why, " \n"))
}

// Answer gives the draft as an answer.
func (r *ResponseReader) Answer() *model.Answer {
	return r.Draft.Answer(r.model.protocol.ProviderID, r.Tools, r.items)
}

// Truncated is the trouble of an answer that ended before its end.
func (r *ResponseReader) Truncated() error {
	return r.Transient("broke off in the middle of an answer")
}

// Transient is a trouble of the model that may pass.
func (r *ResponseReader) Transient(format string, args ...any) error {
	return model.Transient(errcode.LLMCallFailed, nil, "model %q "+format, append([]any{r.model.config.Name}, args...)...)
}

// Permanent is a trouble of the model that asking again does not mend.
func (r *ResponseReader) Permanent(code errcode.Code, format string, args ...any) error {
	return model.Permanent(code, nil, "model %q "+format, append([]any{r.model.config.Name}, args...)...)
}

// ErrorFrom words an error that came with a good status, because the answer
// had begun or the server is like that: as transport.Endpoint.ErrorFrom.
func (r *ResponseReader) ErrorFrom(status int, after time.Duration, doc gjson.Result) error {
	return r.model.endpoint.ErrorFrom(status, after, []byte(doc.Raw))
}

// Count reads a number of tokens that others may be added to: providers send
// anything. model.Usage.Clamp does the rest.
func Count(n gjson.Result) int {
	const most = 1 << 30
	return int(max(0, min(n.Num, most)))
}

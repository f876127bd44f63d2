package provider

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// Decoder decodes one answer of a provider. It ignores fields and events it does not
// know. Not safe for concurrent use.
type Decoder interface {
	// DecodeDocument decodes an answer that is one JSON object.
	DecodeDocument(doc gjson.Result) error

	// DecodeEvent decodes one event of a streamed answer, a JSON object.
	DecodeEvent(doc gjson.Result) error

	// FinalAnswer returns the answer. It is called once, after the last event.
	FinalAnswer() (*model.Answer, error)
}

// ResponseReader has what the Decoders of all providers share: they embed it. It reads one answer.
type ResponseReader struct {
	Draft chat.AnswerBuilder
	Tools *chat.ToolList // nil if none are offered
	Ended bool           // set by the Decoder when the provider has marked the end of the answer; nothing more is read

	model   *Model
	items   []model.Item // the conversation that is answered
	yield   func(model.AnswerDelta, error) bool
	stopped bool // the caller stopped reading deltas
	visible chat.ThinkingFilter
}

// EmitDelta yields d to the caller of Model.Generate if the answer is streamed. It takes thinking
// out of the text. d.Tool is the name that the provider was given for the tool; the caller gets the
// tool's own name.
func (r *ResponseReader) EmitDelta(d model.AnswerDelta) {
	d.Text = r.visible.Show(d.Text)
	d.Tool = r.Tools.OriginalName(d.Tool)
	if d != (model.AnswerDelta{}) && r.model.config.Stream && !r.stopped {
		d.Text, d.Tool, d.Args = strings.Clone(d.Text), strings.Clone(d.Tool), strings.Clone(d.Args) // do not keep the memory of the event
		r.stopped = !r.yield(d, nil)
	}
}

// RecordRefusal records in Draft that the model or the provider's filter refused to answer. stop
// is model.Refusal for the model and model.ContentFilter for the filter. It appends a sentence
// about the refusal to the text. kind and reason are the provider's explanation, or "".
func (r *ResponseReader) RecordRefusal(stop model.StopReason, kind, reason string) {
	text := "The model refused to answer"
	if r.Draft.HasText() {
		text = "\n\nThe model refused to go on"
	}
	if kind != "" {
		text += " (" + kind + ")"
	}
	r.Draft.Stop = stop
	r.Draft.AppendText(strings.TrimRight(text+". "+reason, " \n"))
}

// Answer returns the answer in Draft.
func (r *ResponseReader) Answer() *model.Answer {
	return r.Draft.BuildAnswer(r.model.protocol.ProviderID, r.Tools, r.items)
}

// TruncatedError returns the error for an answer that ended too early.
func (r *ResponseReader) TruncatedError() error {
	return r.TransientError("stopped in the middle of its answer")
}

// TransientError returns a retryable model.Error that names the model.
func (r *ResponseReader) TransientError(format string, args ...any) error {
	return model.TransientError(errcode.LLMCallFailed, nil, "model %q "+format, append([]any{r.model.config.Name}, args...)...)
}

// PermanentError returns a model.Error that names the model and that retrying cannot fix.
func (r *ResponseReader) PermanentError(code errcode.Code, format string, args ...any) error {
	return model.PermanentError(code, nil, "model %q "+format, append([]any{r.model.config.Name}, args...)...)
}

// ErrorFrom returns the model.Error for an error that came with HTTP status 200, such
// as one in the middle of a stream. See endpoint.Endpoint.ErrorFrom.
func (r *ResponseReader) ErrorFrom(status int, after time.Duration, doc gjson.Result) error {
	return r.model.endpoint.ErrorFrom(status, after, []byte(doc.Raw))
}

// TokenCount returns a number of tokens, limited so that sums of a few do not overflow.
// model.TokenUsage.Clamp limits the sums.
func TokenCount(n gjson.Result) int {
	const maxCount = 1 << 30
	return int(max(0, min(n.Num, maxCount)))
}

package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
)

// The kinds of op, as prelude.js names them.
const (
	opReceive = "receive"
	opCalls   = "calls"
	opSay     = "say"
	opEnd     = "end"
)

// op is what a script yielded, or its end.
type op struct {
	Op    string     `json:"op"`
	Calls []toolCall `json:"calls"`
	List  bool       `json:"list"`  // the calls were yielded as a list, and so are their results
	Text  string     `json:"text"`  // of a say
	Value string     `json:"value"` // of an end: the returned value as JSON
	Log   []string   `json:"log"`   // the console lines before the op
}

// parseOp returns the op in the text of a worker. It rejects what the prelude does not write.
func parseOp(text []byte) (o op, err error) {
	if err := json.Unmarshal(text, &o); err != nil {
		return op{}, errNoOp
	}
	switch o.Op {
	case opReceive, opSay:
		return o, nil
	case opEnd:
		if json.Valid([]byte(o.Value)) {
			return o, nil
		}
	case opCalls:
		if len(o.Calls) > 0 && (o.List || len(o.Calls) == 1) && !slices.ContainsFunc(o.Calls, toolCall.isInvalid) {
			return o, nil
		}
	}
	return op{}, errNoOp
}

// errNoOp is the error for a worker that answers what the prelude does not write.
var errNoOp = errors.New("what its worker answered is not a step of a script; the worker was ended")

// toolCall is one yielded call. Args is a JSON object.
type toolCall struct {
	Name string `json:"name"`
	Args string `json:"args"`
}

// isInvalid reports whether the arguments are not a JSON object.
func (c toolCall) isInvalid() bool {
	return !strings.HasPrefix(c.Args, "{") || !json.Valid([]byte(c.Args))
}

// answer returns the Answer that asks the runtime for the op.
func (o op) answer() *model.Answer {
	switch o.Op {
	case opCalls:
		return &model.Answer{Finish: model.FinishToolCalls, Calls: o.calls()}
	case opSay:
		return &model.Answer{Finish: model.FinishContinue, Text: o.Text}
	case opEnd:
		a := &model.Answer{Finish: model.FinishResult, Value: json.RawMessage(o.Value)}
		_ = json.Unmarshal(a.Value, &a.Text) // a string is the text as well; other values have none
		return a
	}
	return &model.Answer{Finish: model.FinishWait}
}

func (o op) calls() []model.Call {
	calls := make([]model.Call, 0, len(o.Calls))
	for _, c := range o.Calls {
		calls = append(calls, model.Call{Name: c.Name, Args: json.RawMessage(c.Args)})
	}
	return calls
}

// resultValue returns the call results as the script expects them: a list for a yielded
// list, else a single value.
func (o op) resultValue(results []json.RawMessage) any {
	if o.List {
		return results
	}
	return results[0]
}

// matches reports whether a recorded answer is the answer to this op. The order of keys in
// arguments does not matter.
func (o op) matches(recorded *model.Answer) bool {
	now := o.answer()
	if now.Finish != recorded.Finish || now.Text != recorded.Text || len(now.Calls) != len(recorded.Calls) {
		return false
	}
	for i, c := range now.Calls {
		if c.Name != recorded.Calls[i].Name || canonicalJSON(c.Args) != canonicalJSON(recorded.Calls[i].Args) {
			return false
		}
	}
	return true
}

// canonicalJSON returns equal texts for equal JSON values.
func canonicalJSON(args json.RawMessage) string {
	var value any
	if json.Unmarshal(args, &value) != nil {
		return string(args)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the text is shown in errors
	_ = encoder.Encode(value)    // a decoded value always encodes
	return strings.TrimSuffix(text.String(), "\n")
}

// String returns the op as the author of the script would write it.
func (o op) String() string { return formatOp(o.answer()) }

// formatOp returns the op whose answer is a, as the author of a script would write it.
func formatOp(a *model.Answer) string {
	switch a.Finish {
	case model.FinishToolCalls:
		return formatCalls(a.Calls)
	case model.FinishContinue:
		return fmt.Sprintf("say(%s)", truncate(fmt.Sprintf("%q", a.Text)))
	case model.FinishWait:
		return "receive()"
	}
	return "return " + truncate(string(a.Value))
}

func formatCalls(calls []model.Call) string {
	list := make([]string, 0, len(calls))
	for _, c := range calls {
		list = append(list, fmt.Sprintf("call(%q, %s)", c.Name, truncate(canonicalJSON(c.Args))))
	}
	if len(list) == 1 {
		return list[0]
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// truncate keeps an error readable.
func truncate(text string) string { return textutil.TruncateWidth(text, 200) }

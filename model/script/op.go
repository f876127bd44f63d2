package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// The kinds of wish, as brain.js names them.
const (
	opReceive = "receive"
	opCalls   = "calls"
	opSay     = "say"
	opEnd     = "end"
)

// op is what a brain yielded or returned.
type op struct {
	Op    string     `json:"op"`
	Calls []toolCall `json:"calls"`
	List  bool       `json:"list"`  // the calls were yielded as a list, and so are their results
	Text  string     `json:"text"`  // of a say
	Value string     `json:"value"` // of an end: JSON
	Log   []string   `json:"log"`
}

// toolCall is one wished call; Args is the JSON of an object.
type toolCall struct {
	Name string `json:"name"`
	Args string `json:"args"`
}

// answer gives the wish as an Answer.
func (w op) answer() *model.Answer {
	switch w.Op {
	case opCalls:
		return &model.Answer{Finish: model.FinishToolCalls, Calls: w.calls()}
	case opSay:
		return &model.Answer{Finish: model.FinishContinue, Text: w.Text}
	case opEnd:
		a := &model.Answer{Finish: model.FinishEnd, Value: json.RawMessage(w.Value)}
		_ = json.Unmarshal(a.Value, &a.Text) // only a string is text as well
		return a
	}
	return &model.Answer{Finish: model.FinishWait}
}

func (w op) calls() []model.Call {
	calls := make([]model.Call, 0, len(w.Calls))
	for _, c := range w.Calls {
		calls = append(calls, model.Call{Name: c.Name, Args: json.RawMessage(c.Args)})
	}
	return calls
}

// resultValue gives the results of the wish's calls the form they were asked in.
func (w op) resultValue(results []json.RawMessage) any {
	if w.List {
		return results
	}
	return results[0]
}

// matches reports whether a recorded answer is what the wish would be answered
// with today.
func (w op) matches(recorded *model.Answer) bool {
	now := w.answer()
	if now.Finish != recorded.Finish || now.Text != recorded.Text || len(now.Calls) != len(recorded.Calls) {
		return false
	}
	for i, c := range now.Calls {
		if c.Name != recorded.Calls[i].Name || canonical(c.Args) != canonical(recorded.Calls[i].Args) {
			return false
		}
	}
	return true
}

// canonical gives one text for all ways to write the same JSON.
func canonical(args json.RawMessage) string {
	var value any
	if json.Unmarshal(args, &value) != nil {
		return string(args)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read it
	_ = encoder.Encode(value)    // it was JSON a moment ago
	return strings.TrimSuffix(text.String(), "\n")
}

// String gives the wish as its author would write it.
func (w op) String() string { return formatOp(w.answer()) }

// formatOp gives an answer as the author of a brain would write it.
func formatOp(a *model.Answer) string {
	switch a.Finish {
	case model.FinishToolCalls:
		return writtenCalls(a.Calls)
	case model.FinishContinue:
		return fmt.Sprintf("say(%s)", shorten(fmt.Sprintf("%q", a.Text)))
	case model.FinishWait:
		return "receive()"
	}
	return fmt.Sprintf("return %s", shorten(string(a.Value)))
}

func writtenCalls(calls []model.Call) string {
	list := make([]string, 0, len(calls))
	for _, c := range calls {
		list = append(list, fmt.Sprintf("call(%q, %s)", c.Name, shorten(canonical(c.Args))))
	}
	if len(list) == 1 {
		return list[0]
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// shorten keeps an error readable.
func shorten(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

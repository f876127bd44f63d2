package providertest

import (
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// agentRun is a random conversation: a list of choices.
type agentRun struct {
	choices   []uint8
	reasoning []string
}

func (l *agentRun) pick(n int) int {
	if len(l.choices) == 0 {
		return 0
	}
	choice := int(l.choices[0]) % n
	l.choices = l.choices[1:]
	return choice
}

func (l *agentRun) request() model.Request {
	r := model.Request{System: []string{"", "You are root."}[l.pick(2)]}
	if l.pick(2) == 1 {
		r.ToolJSON = []byte(`[{"type":"function","function":{"name":"f","description":"","parameters":{}}}]`)
	}
	cut := l.pick(12)
	for len(l.choices) > 0 {
		l.live(&r)
	}
	if cut <= len(r.Items) && l.pick(2) == 0 {
		r.Compact = &model.Summary{Text: "It was long.", Items: cut}
	}
	return r
}

// live adds what happens next: a message, or an answer with what came of it.
func (l *agentRun) live(r *model.Request) {
	if l.pick(3) == 0 {
		r.Items = append(r.Items, Said([]string{"Go", "", " ", "Ünï"}[l.pick(4)]))
		return
	}
	a := model.Answer{Text: []string{"", "Well.", " \n", "a\x00b"}[l.pick(4)], Provider: []string{"", "anthropic", "gemini", "openai"}[l.pick(4)]}
	if l.pick(3) == 0 {
		a.Reasoning = json.RawMessage(l.reasoning[l.pick(len(l.reasoning))])
	}
	for range l.pick(4) {
		a.Calls = append(a.Calls, l.call(len(r.Items), len(a.Calls)))
	}
	r.Items = append(r.Items, Answered(a))
	if l.pick(6) == 0 { // the process ended here
		return
	}
	for _, c := range a.Calls {
		if l.pick(8) > 0 {
			r.Items = append(r.Items, ResultItem(c.ID, c.Name, []string{`{"ok":1}`, `""`, `"x"`}[l.pick(3)]))
		}
	}
}

func (l *agentRun) call(answer, place int) model.Call {
	return model.Call{
		ID:       identity.CallID(fmt.Sprintf("own-%d-%d", answer, place)),
		Provider: []string{"", "toolu_1", "call.0/ü", "functions.f:0"}[l.pick(4)],
		Name:     []string{"f", "mail/send"}[l.pick(2)],
		Args:     json.RawMessage([]string{`{}`, `{"a":[1]}`, `"{oops"`, `""`, `[]`, ``}[l.pick(6)]),
	}
}

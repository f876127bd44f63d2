package providertest

import (
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/catalog"
)

// randomRun builds a conversation from a list of random choices.
type randomRun struct {
	choices   []uint8
	reasoning []string
}

// pick returns the next choice, a number below n.
func (r *randomRun) pick(n int) int {
	if len(r.choices) == 0 {
		return 0
	}
	choice := int(r.choices[0]) % n
	r.choices = r.choices[1:]
	return choice
}

// request returns a request with all choices used up.
func (r *randomRun) request() model.Request {
	q := model.Request{System: []string{"", "You are root."}[r.pick(2)]}
	if r.pick(2) == 1 {
		q.ToolJSON = []byte(`[{"type":"function","function":{"name":"f","description":"","parameters":{}}}]`)
	}
	cut := r.pick(12)
	for len(r.choices) > 0 {
		r.step(&q)
	}
	if cut <= len(q.Items) && r.pick(2) == 0 {
		q.Compact = &model.ContextSummary{Text: "It was long.", Items: cut}
	}
	return q
}

// providers are values of Answer.Provider: none, and the type of each provider.
var providers = func() []string {
	list := []string{""}
	for _, p := range catalog.ListProviders() {
		list = append(list, p.Type)
	}
	return list
}()

// step adds a message, or an answer with the results of its calls.
func (r *randomRun) step(q *model.Request) {
	if r.pick(3) == 0 {
		q.Items = append(q.Items, UserMessage([]string{"Go", "", " ", "Ünï"}[r.pick(4)]))
		return
	}
	a := model.Answer{Text: []string{"", "Well.", " \n", "a\x00b"}[r.pick(4)], Provider: providers[r.pick(len(providers))]}
	if len(r.reasoning) > 0 && r.pick(3) == 0 {
		a.Reasoning = json.RawMessage(r.reasoning[r.pick(len(r.reasoning))])
	}
	for range r.pick(4) {
		a.Calls = append(a.Calls, r.call(len(q.Items), len(a.Calls)))
	}
	q.Items = append(q.Items, AnswerItem(a))
	if r.pick(6) == 0 { // the process ended before the results
		return
	}
	for _, c := range a.Calls {
		if r.pick(8) > 0 {
			q.Items = append(q.Items, ResultItem(c.ID, c.Name, []string{`{"ok":1}`, `""`, `"x"`}[r.pick(3)]))
		}
	}
}

func (r *randomRun) call(answer, place int) model.Call {
	return model.Call{
		ID:       identity.CallID(fmt.Sprintf("own-%d-%d", answer, place)),
		Provider: []string{"", "toolu_1", "call.0/ü", "functions.f:0"}[r.pick(4)],
		Name:     []string{"f", "mail/send"}[r.pick(2)],
		Args:     json.RawMessage([]string{`{}`, `{"a":[1]}`, `"{oops"`, `""`, `[]`, ``}[r.pick(6)]),
	}
}

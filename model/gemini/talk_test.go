package gemini_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/provider"
)

// Whatever an agent lived through, its conversation is one that the provider
// takes: also after compression, after turns that failed, with answers of
// other providers and calls whose outcome nobody knows.
func TestPropertyConversations(t *testing.T) {
	seed := time.Now().UnixNano()
	p := gopter.DefaultTestParametersWithSeed(seed)
	p.MinSuccessfulTests, p.MaxSize = 400, 80
	var sent string
	m := gemini.New(provider.Config{Model: name, Client: record(&sent)})
	result := prop.ForAll(func(choices []uint8) string {
		life := life(choices)
		if _, _, err := gather(t, m, life.request()); err != nil {
			return err.Error()
		}
		return fault(sent)
	}, gen.SliceOf(gen.UInt8())).Check(p)
	if !result.Passed() {
		t.Errorf("seed %d: %v %v\nthe case: %v\nsent: %s", seed, result.Labels, result.Error, result.Args, sent)
	}
}

// fault says what is wrong with a conversation; "" when nothing is.
func fault(body string) string {
	if !gjson.Valid(body) {
		return "no JSON"
	}
	contents := gjson.Get(body, "contents").Array()
	open := []string(nil) // calls that wait for their results
	seen := map[string]bool{}
	for i, c := range contents {
		if want := []string{"user", "model"}[i%2]; c.Get("role").Str != want {
			return fmt.Sprintf("content %d is of the %s, not the %s", i, c.Get("role").Str, want)
		}
		var calls, results []string
		parts := c.Get("parts").Array()
		if len(parts) == 0 {
			return "a content of nothing"
		}
		for at, p := range parts {
			call, result := p.Get("functionCall"), p.Get("functionResponse")
			switch {
			case call.Exists():
				id := call.Get("id").Str
				if seen[id] || id == "" || !call.Get("args").IsObject() {
					return "the call is none: " + p.Raw
				}
				if len(calls) == 0 && p.Get("thoughtSignature").Str == "" {
					return "a first call without a signature"
				}
				seen[id] = true
				calls = append(calls, id+call.Get("name").Str)
			case result.Exists():
				if results = append(results, result.Get("id").Str+result.Get("name").Str); at != len(results)-1 || !result.Get("response").IsObject() {
					return "the result is none: " + p.Raw
				}
			case p.Get("text").Str == "" && !p.Get("thoughtSignature").Exists():
				return "a part of nothing"
			}
		}
		if got, want := fmt.Sprintf("%q", results), fmt.Sprintf("%q", open); got != want {
			return fmt.Sprintf("content %d has results %s to calls %s", i, got, want)
		}
		open = calls
	}
	if len(contents)%2 == 0 {
		return "the user's word is not the last"
	}
	return ""
}

// life is a random conversation: a list of choices.
type life []uint8

func (l *life) pick(n int) int {
	if len(*l) == 0 {
		return 0
	}
	choice := int((*l)[0]) % n
	*l = (*l)[1:]
	return choice
}

func (l *life) request() model.Request {
	r := model.Request{System: []string{"", "You are root."}[l.pick(2)]}
	if l.pick(2) == 1 {
		r.ToolJSON = []byte(`[{"type":"function","function":{"name":"f","description":"","parameters":{}}}]`)
	}
	cut := l.pick(12)
	for len(*l) > 0 {
		l.live(&r)
	}
	if cut <= len(r.Items) && l.pick(2) == 0 {
		r.Compact = &model.Compact{Summary: "It was long.", Items: cut}
	}
	return r
}

// live adds what happens next: a message, or an answer with what came of it.
func (l *life) live(r *model.Request) {
	if l.pick(3) == 0 {
		r.Items = append(r.Items, said([]string{"Go", "", " ", "Ünï"}[l.pick(4)]))
		return
	}
	a := model.Answer{Text: []string{"", "Well.", " \n", "a\x00b"}[l.pick(4)], Provider: []string{"", "anthropic", "gemini"}[l.pick(3)]}
	if l.pick(3) == 0 {
		a.Reasoning = json.RawMessage([]string{
			`{"model":"` + name + `","parts":[{"kind":"raw","raw":{"text":"x","thought":true,"thoughtSignature":"y"}}]}`,
			`{"model":"` + name + `","parts":[{"kind":"call","sign":"z"},{"kind":"text","bytes":5,"sign":"y"}]}`,
			`[]`, `{`,
		}[l.pick(4)])
	}
	for range l.pick(4) {
		a.Calls = append(a.Calls, l.call(len(r.Items), len(a.Calls)))
	}
	r.Items = append(r.Items, answered(a))
	if l.pick(6) == 0 { // the process ended here
		return
	}
	for _, c := range a.Calls {
		if l.pick(8) > 0 {
			r.Items = append(r.Items, came(string(c.ID), c.Name, []string{`{"ok":1}`, `""`, `"x"`}[l.pick(3)]))
		}
	}
}

func (l *life) call(answer, place int) model.Call {
	return model.Call{
		ID:       callID(fmt.Sprintf("own-%d-%d", answer, place)),
		Provider: []string{"", "toolu_1", "call.0/ü", "functions.f:0"}[l.pick(4)],
		Name:     []string{"f", "mail/send"}[l.pick(2)],
		Args:     json.RawMessage([]string{`{}`, `{"a":[1]}`, `"{oops"`, `""`, `[]`, ``}[l.pick(6)]),
	}
}

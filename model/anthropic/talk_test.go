package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/anthropic"
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
	m := anthropic.New(provider.Config{Model: name, Client: record(&sent)})
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
	messages := gjson.Get(body, "messages").Array()
	open := []string(nil) // calls that wait for their results
	seen := map[string]bool{}
	for i, m := range messages {
		if want := []string{"user", "assistant"}[i%2]; m.Get("role").Str != want {
			return fmt.Sprintf("message %d is of the %s, not the %s", i, m.Get("role").Str, want)
		}
		var calls, results []string
		blocks := m.Get("content").Array()
		if len(blocks) == 0 {
			return "a message of nothing"
		}
		for at, b := range blocks {
			switch b.Get("type").Str {
			case "text":
				if strings.TrimSpace(b.Get("text").Str) == "" {
					return "a blank text"
				}
			case "tool_use":
				id := b.Get("id").Str
				if calls = append(calls, id); seen[id] || !idPattern(id) || !b.Get("input").IsObject() {
					return "the call is none: " + b.Raw
				}
				seen[id] = true
			case "tool_result":
				if results = append(results, b.Get("tool_use_id").Str); at != len(results)-1 {
					return "a result behind something else"
				}
			}
		}
		if got, want := fmt.Sprintf("%q", results), fmt.Sprintf("%q", open); got != want {
			return fmt.Sprintf("message %d has results %s to calls %s", i, got, want)
		}
		open = calls
	}
	if len(messages)%2 == 0 {
		return "the user's word is not the last"
	}
	if n := strings.Count(body, `"cache_control"`); n < 1 || n > 4 {
		return strconv.Itoa(n) + " blocks to be kept"
	}
	if len(seen) > 0 && !gjson.Get(body, "tools.0").Exists() {
		return "calls without tools"
	}
	return ""
}

func idPattern(id string) bool {
	return id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
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
			`{"model":"` + name + `","blocks":[{"type":"thinking","thinking":"x","signature":"y"}]}`,
			`{"model":"` + name + `","blocks":[{"type":"tool_use"},{"type":"thinking","thinking":"x"},{"type":"text","bytes":5}]}`,
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

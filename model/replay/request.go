package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// request is a model.Request in the form that it has in every run: without secrets, and
// with placeholders for ids and times. It depends on the Request alone.
type request struct {
	head
	step  int               // the number of the answer that is asked for, from 1
	items []json.RawMessage // one JSON document for each item of the conversation
	chain []digest          // chain[n] is the digest of the first n items
	ids   *idTable
}

// head is what a model is sent in addition to the conversation, with fields of model.Request.
type head struct {
	Role    string   `json:"role"`
	State   string   `json:"state,omitempty"`
	System  string   `json:"system"`
	Opening string   `json:"opening,omitempty"`
	Note    string   `json:"note,omitempty"`
	Tools   []string `json:"tools"` // those that may be called
	Compact *summary `json:"compact,omitempty"`
}

// summary is a model.ContextSummary.
type summary struct {
	Text  string `json:"text"`
	Items int    `json:"items"`
}

// newRequest numbers the ids of the conversation before the ids of the head. So a change of the
// head does not renumber the conversation.
func newRequest(r model.Request, hide *redact.Redactor) *request {
	q := &request{step: 1, chain: []digest{{}}, ids: newIDTable(r.Self)}
	text := func(s string) string { return q.ids.substituteAll(hide.RedactText(s)) }
	for _, it := range sortResults(r.Items) {
		if it == (model.Item{}) { // no runtime sends one
			continue
		}
		if it.Answer != nil {
			q.step++
		}
		if it.Result != nil {
			q.ids.addHiredName(it.Result)
		}
		doc := rewrite(marshal(newItem(it)), hide, text)
		q.items, q.chain = append(q.items, doc), append(q.chain, q.conversation().extend(doc))
	}
	q.ids.startHead()
	q.head = newHead(r, func(s string) string { return text(chat.CleanText(s)) })
	return q
}

func newHead(r model.Request, text func(string) string) head {
	h := head{
		Role: text(r.Self.Role), State: text(r.Self.State), System: text(r.System), Tools: []string{},
		Opening: text(r.Opening), Note: text(r.Note),
	}
	if !r.NoCalls {
		for _, name := range r.Tools {
			h.Tools = append(h.Tools, text(name))
		}
	}
	if c := r.Compact; c != nil {
		h.Compact = &summary{text(c.Text), c.Items}
	}
	return h
}

// conversation returns the digest of the whole conversation.
func (q *request) conversation() digest { return q.chain[len(q.chain)-1] }

// key identifies a request: equal requests have equal keys in every run.
func (q *request) key() string { return q.head.key(q.conversation()) }

// key returns the key of a request with this head.
func (h head) key(conversation digest) string {
	key := conversation.extend(marshal(h))
	return hex.EncodeToString(key[:])
}

// earlyKey is the key for recordings of the earlier form. Their system prompts contained the
// opening and the note in another wording, so this key ignores all three.
func (h head) earlyKey(conversation digest) string {
	return "early " + h.withoutPrompts().key(conversation)
}

// withoutPrompts returns h without System, Opening and Note.
func (h head) withoutPrompts() head {
	h.System, h.Opening, h.Note = "", "", ""
	return h
}

// digest identifies a conversation. An empty conversation has the zero digest.
type digest [sha256.Size]byte

// extend returns the digest of a conversation with one more item.
func (d digest) extend(item []byte) digest {
	h := sha256.New()
	h.Write(d[:])
	h.Write(item)
	return digest(h.Sum(nil))
}

// sortResults puts the results of concurrent calls into the order of the calls, because the
// order in which they end varies.
func sortResults(items []model.Item) []model.Item {
	items = slices.Clone(items)
	var calls []model.Call
	index := func(id identity.CallID) int {
		return slices.IndexFunc(calls, func(c model.Call) bool { return c.ID == id })
	}
	for start := 0; start < len(items); start++ {
		if a := items[start].Answer; a != nil {
			calls = a.Calls
		}
		end := start
		for end < len(items) && items[end].Result != nil {
			end++
		}
		slices.SortStableFunc(items[start:end], func(a, b model.Item) int {
			return index(a.Result.Call) - index(b.Result.Call)
		})
		start = max(start, end-1)
	}
	return items
}

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

// request is a model.Request in the form it has in every run: without secrets,
// and with marks for ids and times. It depends on the Request alone.
type request struct {
	head
	step  int               // answers before, and 1
	items []json.RawMessage // of item
	chain []digest          // over the items: chain[n] is that of the first n
	ids   *ids
}

// head is what a model is sent beside the conversation.
type head struct {
	Role    string   `json:"role"`
	State   string   `json:"state,omitempty"`
	System  string   `json:"system"`
	Tools   []string `json:"tools"`
	Compact *summary `json:"compact,omitempty"`
}

// summary is a model.Summary.
type summary struct {
	Text  string `json:"text"`
	Items int    `json:"items"`
}

// newRequest brings a Request into its form.
func newRequest(r model.Request, hide *redact.Redactor) *request {
	q := &request{step: 1, chain: []digest{{}}, ids: newIDs(r.Self)}
	for _, entry := range inOrder(r.Items) {
		if entry == (model.Item{}) { // says nothing
			continue
		}
		if entry.Answer != nil {
			q.step++
		}
		q.add(rewrite(compact(newItem(entry)), hide, func(text string) string { return q.ids.item(hide.Redact(text)) }))
	}
	q.ids = q.ids.nested()
	q.head = newHead(r, func(text string) string { return q.ids.item(hide.Redact(chat.Clean(text))) })
	return q
}

func newHead(r model.Request, text func(string) string) head {
	h := head{Role: text(r.Self.Role), State: text(r.Self.State), System: text(r.System), Tools: []string{}}
	for _, name := range r.Tools {
		h.Tools = append(h.Tools, text(name))
	}
	if c := r.Compact; c != nil {
		h.Compact = &summary{text(c.Text), c.Items}
	}
	return h
}

func (q *request) add(item json.RawMessage) {
	q.items = append(q.items, item)
	q.chain = append(q.chain, q.last().and(item))
}

func (q *request) last() digest { return q.chain[len(q.chain)-1] }

// key is what an answer is found by.
func (q *request) key() string { return q.head.key(q.last()) }

func (h head) key(chain digest) string {
	key := chain.and(compact(h))
	return hex.EncodeToString(key[:])
}

// digest is that of a conversation.
type digest [sha256.Size]byte

// and gives the digest of a conversation that goes on.
func (d digest) and(item []byte) digest {
	h := sha256.New()
	h.Write(d[:])
	h.Write(item)
	return digest(h.Sum(nil))
}

// inOrder puts the results of calls that ran beside each other in the order of
// the calls: which of them ends first is not the same in every run.
func inOrder(items []model.Item) []model.Item {
	items = slices.Clone(items)
	var calls []model.Call
	for start := 0; start < len(items); start++ {
		if a := items[start].Answer; a != nil {
			calls = a.Calls
		}
		end := start
		for end < len(items) && items[end].Result != nil {
			end++
		}
		if end-start > 1 {
			slices.SortStableFunc(items[start:end], func(a, b model.Item) int {
				return place(calls, a.Result.Call) - place(calls, b.Result.Call)
			})
			start = end - 1
		}
	}
	return items
}

func place(calls []model.Call, id identity.CallID) int {
	return slices.IndexFunc(calls, func(c model.Call) bool { return c.ID == id })
}

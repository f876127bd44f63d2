package replay

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// In a recorded text ⟨ begins a mark: ⟨id 3⟩ and ⟨id p1⟩ stand for ids, ⟨time⟩
// for a time, and ⟨⟨ for ⟨ itself, so that no text can pass for a mark.
const (
	open            = "⟨"
	shut            = "⟩"
	timePlaceholder = open + "time" + shut
)

// ids numbers ids in the order of their first appearance.
type ids struct {
	kind   string // begins the number in a mark
	below  *ids   // whose numbers come first; may be nil
	names  []string
	number map[string]int // in names, from 1
}

// newIDs begins a conversation: the first three numbers are the agent itself,
// its parent and its task, whether they are ids or not.
func newIDs(self model.AgentInfo) *ids {
	t := &ids{number: map[string]int{}}
	for n, id := range [...]string{string(self.ID), string(self.Parent), string(self.Task)} {
		t.names = append(t.names, id)
		if t.number[id] == 0 {
			t.number[id] = n + 1
		}
	}
	return t
}

// nested begins a table for what is no item. Its ids count by themselves, so
// that a system prompt reads the same however many ids the conversation has.
func (t *ids) nested() *ids { return &ids{kind: "p", below: t, number: map[string]int{}} }

// add gives the mark of an id, a new one if it has none.
func (t *ids) add(id string) string {
	if mark, ok := t.find(id); ok {
		return mark
	}
	t.names = append(t.names, id)
	t.number[id] = len(t.names)
	return t.mark(len(t.names))
}

// lookup gives the mark of an id, and an id without one as it is.
func (t *ids) lookup(id string) string {
	if mark, ok := t.find(id); ok {
		return mark
	}
	return id
}

func (t *ids) find(id string) (string, bool) {
	if t.below != nil {
		if mark, ok := t.below.find(id); ok {
			return mark, true
		}
	}
	n, ok := t.number[id]
	return t.mark(n), ok
}

func (t *ids) mark(n int) string { return open + "id " + t.kind + strconv.Itoa(n) + shut }

// resolve gives the id a mark stands for; the mark comes without its brackets.
func (t *ids) resolve(mark string) (string, error) {
	digits, ok := strings.CutPrefix(mark, "id "+t.kind)
	n, err := strconv.Atoi(digits)
	switch {
	case ok && err == nil && n >= 1 && n <= len(t.names) && t.names[n-1] != "":
		return t.names[n-1], nil
	case t.below != nil:
		return t.below.resolve(mark)
	}
	return "", fmt.Errorf("the answer names %q, which this conversation does not have", mark)
}

// item gives a text of the conversation with its ids and times as marks.
func (t *ids) item(text string) string {
	return insertPlaceholders(text, t.add, func(string) string { return timePlaceholder })
}

// answer gives a text of an answer that is to be given again: what it knows of
// the conversation becomes marks, what it invented stays.
func (t *ids) answer(text string) string {
	return insertPlaceholders(text, t.lookup, func(at string) string { return at })
}

// expandPlaceholders turns the marks of a recorded answer back.
func expandPlaceholders(text string, name func(mark string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, open)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if rest, ok := strings.CutPrefix(after, open); ok {
			b.WriteString(open)
			text = rest
			continue
		}
		mark, rest, found := strings.Cut(after, shut)
		if !found {
			return "", fmt.Errorf("%s begins a mark that does not end", open)
		}
		id, err := name(mark)
		if err != nil {
			return "", err
		}
		b.WriteString(id)
		text = rest
	}
}

// checkPlaceholder says whether a text is a mark of an id, of whatever conversation.
func checkPlaceholder(mark string) (string, error) {
	digits, ok := strings.CutPrefix(mark, "id ")
	if _, err := strconv.ParseUint(strings.TrimPrefix(digits, "p"), 10, 31); !ok || err != nil {
		return "", fmt.Errorf("%q is no mark of an id", open+mark+shut)
	}
	return "", nil
}

package replay

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// timePlaceholder stands for a time. ⟨id 3⟩ and ⟨id p1⟩ stand for ids. ⟨⟨ stands for ⟨ itself, so
// that no recorded text can be mistaken for a placeholder.
const timePlaceholder = "⟨time⟩"

var (
	uuid      = textutil.LazyPattern(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	timestamp = textutil.LazyPattern(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?([Zz]|[+-][0-9]{2}:[0-9]{2})`)

	placeholder   = textutil.LazyPattern(`⟨⟨|⟨[^⟩]*⟩?`)
	idPlaceholder = textutil.LazyPattern(`^⟨id p?[0-9]{1,9}⟩$`)
)

// findVariable returns the first id, time or ⟨ in a text, or two zeros. It looks around
// each hyphen: to search the whole text with a regular expression takes five times as long.
func findVariable(text string) (start, end int) {
	for i := range len(text) {
		switch {
		case text[i] == "⟨"[0] && strings.HasPrefix(text[i:], "⟨"):
			return i, i + len("⟨")
		case text[i] != '-':
		case i >= 8 && uuid().MatchString(text[i-8:min(i+28, len(text))]):
			return i - 8, i + 28
		case i >= 4:
			if at := timestamp().FindStringIndex(text[i-4:]); at != nil {
				return i - 4, i - 4 + at[1]
			}
		}
	}
	return 0, 0
}

// idTable numbers the ids of one conversation in the order in which they appear.
type idTable struct {
	prefix       string // of the numbers
	count        int    // ids numbered with this prefix
	placeholders map[string]string
	named        map[string]string // ids of hired agents, by name
	ids          map[string]string // by placeholder
}

// newIDTable returns the table of an agent's conversation. The numbers 1 to 3 are the
// agent, its parent and its task, even where they are no UUIDs.
func newIDTable(self model.AgentInfo) *idTable {
	t := &idTable{placeholders: map[string]string{}, ids: map[string]string{}, named: map[string]string{}}
	for _, id := range [...]string{string(self.ID), string(self.Parent), string(self.Task)} {
		t.add(id)
	}
	return t
}

// startHead numbers the ids that follow separately, as ⟨id p1⟩ and so on. So a system prompt reads
// the same however many ids the conversation has.
func (t *idTable) startHead() { t.prefix, t.count = "p", 0 }

// add numbers an id and returns its placeholder: the first one, if it has several.
func (t *idTable) add(id string) string {
	t.count++
	p := fmt.Sprintf("⟨id %s%d⟩", t.prefix, t.count)
	t.ids[p] = id
	if t.placeholders[id] == "" {
		t.placeholders[id] = p
	}
	return t.placeholders[id]
}

// addHiredName notes the name of an agent that a call hired. From here on, a text that is only
// this name stands for the agent's id. The numbers of names differ between runs, as ids do,
// if several agents hire at the same time.
func (t *idTable) addHiredName(r *model.CallResult) {
	if hired, ok := chat.HiredBy(r); ok && uuid().MatchString(hired.ID) {
		t.named[hired.Name] = hired.ID
	}
}

// substituteKnown returns a text of an answer with placeholders for the ids of the conversation.
// Other ids and times stay, as the model made them up.
func (t *idTable) substituteKnown(text string) string {
	return t.substitute(text, t.knownPlaceholder)
}

// substituteAll returns a text that the model reads with placeholders for all ids and times. It
// numbers the ids that are new.
func (t *idTable) substituteAll(text string) string {
	return t.substitute(text, t.placeholder)
}

// substitute replaces each id, time and ⟨ in a text.
func (t *idTable) substitute(text string, replace func(found string) string) string {
	if id, ok := t.named[text]; ok {
		return replace(id)
	}
	var b strings.Builder
	for {
		start, end := findVariable(text)
		if end == 0 {
			return b.String() + text
		}
		b.WriteString(text[:start])
		b.WriteString(replace(text[start:end]))
		text = text[end:]
	}
}

// knownPlaceholder returns what replaces an id, a time or ⟨ in an answer: see substituteKnown.
func (t *idTable) knownPlaceholder(found string) string {
	if found == "⟨" {
		return "⟨⟨"
	}
	return cmp.Or(t.placeholders[found], found)
}

// placeholder returns what replaces an id, a time or ⟨ in a text that the model reads.
func (t *idTable) placeholder(found string) string {
	switch known := t.knownPlaceholder(found); {
	case known != found:
		return known
	case found[8] != '-': // not a UUID
		return timePlaceholder
	}
	return t.add(found)
}

// resolve returns the id that a placeholder stands for in this conversation.
func (t *idTable) resolve(p string) (string, error) {
	if id := t.ids[p]; id != "" {
		return id, nil
	}
	return "", fmt.Errorf("the answer contains %s, but this conversation has no such id", p)
}

// checkPlaceholder is a resolve for a recording whose conversation is not known yet: it
// rejects what stands for an id in no conversation.
func checkPlaceholder(p string) (string, error) {
	if !idPlaceholder().MatchString(p) {
		return "", fmt.Errorf("%q is not a placeholder of an id", p)
	}
	return "", nil
}

// expand replaces the placeholders in a recorded text by the ids that resolve returns.
func expand(text string, resolve func(placeholder string) (string, error)) (string, error) {
	var failed error
	text = placeholder().ReplaceAllStringFunc(text, func(found string) string {
		if found == "⟨⟨" {
			return "⟨"
		}
		id, err := resolve(found)
		failed = errors.Join(failed, err)
		return id
	})
	return text, failed
}

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/redact"
)

// diffRequest says in words what is the first difference between a request and the
// recorded conversation that is nearest to it.
func diffRequest(entries []*entry, q *request) string {
	near := nearest(entries, q)
	if near == nil {
		return "the recording has nobody of this role"
	}
	n := near.common(q)
	switch {
	case n == len(q.items) && n == near.count():
		return near.head.diff(q.head)
	case n == len(q.items):
		return q.tooEarly(near, n)
	case n == near.count():
		return q.tooLate(n)
	}
	return diffItems(near.item(n), q.items[n])
}

// nearest finds the line that has most of a conversation; among those, one of
// the same step before one that goes on, and that before one that ends.
func nearest(entries []*entry, q *request) (near *entry) {
	best := -1
	for _, e := range entries {
		if e.Role != q.Role {
			continue
		}
		score := 4 * e.common(q)
		if e.line.Step == q.step {
			score += 2
		}
		if e.count() > e.common(q) {
			score++
		}
		if score > best {
			near, best = e, score
		}
	}
	return near
}

// common counts the items that begin both conversations.
func (e *entry) common(q *request) int {
	for ; e != nil; e = e.before {
		for n := len(e.chain) - 1; n > 0; n-- {
			if at := e.first + n; at < len(q.chain) && q.chain[at] == e.chain[n] {
				return at
			}
		}
	}
	return 0
}

// tooEarly says why a request is not answered that a recorded conversation goes
// on from.
func (q *request) tooEarly(near *entry, n int) string {
	next := describe(near.item(n))
	if next.kind == "answer" {
		return "the recording has no answer to this: the model failed there, or was asked something else"
	}
	return fmt.Sprintf("recorded next is %s, now the model is asked already", next.one())
}

// tooLate says why a request is not answered that goes on from a recorded
// conversation.
func (q *request) tooLate(n int) string {
	next := describe(q.items[n])
	if next.kind == "answer" {
		return "the conversation goes on where the recording ends"
	}
	return fmt.Sprintf("now there is also %s", next.one())
}

// diff compares what was sent beside the conversation.
func (h head) diff(now head) string {
	switch {
	case h.State != now.State:
		return "workflow state differs: " + recorded(h.State, now.State)
	case !slices.Equal(h.Tools, now.Tools):
		return "tools differ: " + diffTools(h.Tools, now.Tools)
	case h.System != now.System:
		return diffLines("system prompt", h.System, now.System)
	case h.Compact == nil:
		return fmt.Sprintf("the first %d items are now sent as a summary", now.Compact.Items)
	case now.Compact == nil:
		return fmt.Sprintf("the first %d items are no longer sent as a summary", h.Compact.Items)
	case h.Compact.Items != now.Compact.Items:
		return fmt.Sprintf("the summary stands for other items: recorded the first %d, now the first %d", h.Compact.Items, now.Compact.Items)
	}
	return diffLines("summary", h.Compact.Text, now.Compact.Text)
}

func diffTools(was, is []string) string {
	var parts []string
	for _, p := range []struct {
		word       string
		here, gone []string
	}{{"now also ", is, was}, {"no longer ", was, is}} {
		names := slices.DeleteFunc(slices.Clone(p.here), func(name string) bool { return slices.Contains(p.gone, name) })
		if len(names) > 0 {
			parts = append(parts, p.word+quoteName(strings.Join(names, ", ")))
		}
	}
	if len(parts) == 0 {
		return "they stand in another order"
	}
	return strings.Join(parts, ", ")
}

func diffLines(title, was, is string) string {
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	n := 0
	for n < len(before) && n < len(after) && before[n] == after[n] {
		n++
	}
	switch {
	case n == len(before):
		return fmt.Sprintf("%s differs: it goes on after line %d", title, n)
	case n == len(after):
		return fmt.Sprintf("%s differs: it ends after line %d", title, n)
	}
	return fmt.Sprintf("%s differs in line %d: %s", title, n+1, recorded(before[n], after[n]))
}

// description is an item in words.
type description struct {
	kind  string // message, answer or result
	title string
	body  string // the field that is most of it, and goes without saying
}

func (d description) one() string {
	if d.kind == "answer" {
		return "an answer"
	}
	return "a " + d.title
}

func describe(text []byte) description {
	var it item
	_ = json.Unmarshal(text, &it) // what cannot be read has no names
	switch {
	case it.Message != nil:
		return description{"message", "message from " + quoteName(it.Message.From), "payload"}
	case it.Result != nil:
		return description{"result", "result of " + quoteName(it.Result.Tool), "content"}
	}
	return description{"answer", "answer", ""}
}

func diffItems(was, is []byte) string {
	before, now := describe(was), describe(is)
	if before.kind != now.kind {
		return fmt.Sprintf("recorded next is %s, now %s", before.one(), now.one())
	}
	d, ok := diffValues(value(was), value(is))
	if !ok {
		return before.title + " differs in the order of its fields"
	}
	path := strings.TrimPrefix(d.path, "."+before.kind)
	if rest, ok := strings.CutPrefix(path, "."+before.body); ok && before.body != "" {
		path = rest
	}
	if path = strings.TrimPrefix(path, "."); path != "" {
		path = fmt.Sprintf(" at %q", short(path))
	}
	return fmt.Sprintf("%s differs%s: %s", before.title, path, recorded(d.was, d.is))
}

// difference is where two values differ first, and what stands there.
type difference struct {
	path    string
	was, is any
}

// missing stands where a value has nothing.
type missing struct{}

// diffValues finds the first difference of two values, if there is one.
func diffValues(was, is any) (difference, bool) {
	switch a := was.(type) {
	case map[string]any:
		if b, ok := is.(map[string]any); ok {
			return diffObjects(a, b)
		}
	case []any:
		if b, ok := is.([]any); ok {
			return diffLists(a, b)
		}
	default:
		switch is.(type) {
		case map[string]any, []any:
		default:
			return difference{"", was, is}, was != is
		}
	}
	return difference{"", was, is}, true
}

func diffObjects(a, b map[string]any) (difference, bool) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if d, ok := diffValues(member(a, key), member(b, key)); ok {
			return d.within("." + key), true
		}
	}
	return difference{}, false
}

func member(object map[string]any, key string) any {
	if v, ok := object[key]; ok {
		return v
	}
	return missing{}
}

func diffLists(a, b []any) (difference, bool) {
	for n := range max(len(a), len(b)) {
		if d, ok := diffValues(element(a, n), element(b, n)); ok {
			return d.within(fmt.Sprintf("[%d]", n)), true
		}
	}
	return difference{}, false
}

func element(list []any, n int) any {
	if n < len(list) {
		return list[n]
	}
	return missing{}
}

func (d difference) within(place string) difference {
	d.path = place + d.path
	return d
}

// value reads a document with its numbers as they are.
func value(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v) // what cannot be read is null
	return v
}

// recorded shows two values that differ, texts from where they do. Where a
// secret was hidden, what stands there now may be one and is not shown.
func recorded(was, is any) string {
	hidden := bytes.Contains(compact(was), []byte(redact.Mask))
	a, text := was.(string)
	b, both := is.(string)
	if text && both {
		n := commonPrefix(a, b)
		was, is = cut(a, n), cut(b, n)
	}
	if hidden {
		return fmt.Sprintf("recorded %s, now something else; it is not shown because a secret stood here", shown(was))
	}
	return fmt.Sprintf("recorded %s, now %s", shown(was), shown(is))
}

func shown(v any) string {
	if _, none := v.(missing); none {
		return "nothing"
	}
	return short(string(compact(v)))
}

// What is shown of a text, in bytes.
const (
	maxShown = 80
	lead     = 16 // of what is the same before a difference
)

// commonPrefix gives how many bytes two texts begin with that are the same.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// cut gives the part of a text around a place.
func cut(text string, at int) string {
	start := max(0, at-lead)
	for start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	if start > 0 {
		return "…" + text[start:]
	}
	return text
}

func short(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// quoteName shows a name, quoted when it is none.
func quoteName(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(short(name))
	}
	return short(name)
}

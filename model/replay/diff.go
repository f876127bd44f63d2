package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Bounds of the text that describes a difference.
const (
	maxDifferences = 3
	maxShown       = 80 // bytes of a path or a value
	lead           = 16 // bytes of equal text shown before a difference
)

// diffRequest describes how q differs from the recorded request that is nearest to it. Of
// the conversation it compares the first item that differs: it may displace the others.
func diffRequest(entries []*entry, q *request) string {
	near, same := nearest(entries, q)
	if near == nil {
		return "the recording has no request of this role"
	}
	items := near.items()
	recorded, now := near.head, q.head
	if near.early {
		recorded, now = recorded.withoutPrompts(), now.withoutPrompts()
	}
	list := appendDifferences(nil, "", recorded.value(items, same), now.value(q.items, same))
	if len(list) == 0 {
		return fmt.Sprintf("the request differs from line %d in the order of an object's fields", near.number)
	}
	// Where the recording hides a secret, the request may have one, and in another place.
	hide := bytes.Contains(marshal([]any{near.head, items}), []byte(redact.Mask))
	var texts []string
	for _, d := range list[:min(len(list), maxDifferences)] {
		texts = append(texts, d.format(hide))
	}
	return textutil.Sanitize(fmt.Sprintf("the request differs from line %d: %s", near.number, strings.Join(texts, "; ")))
}

// nearest returns the recorded request of q's role that has most of q's conversation. It prefers a
// request of the same step. It also returns the number of items that both begin with.
func nearest(entries []*entry, q *request) (near *entry, same int) {
	best := -1
	for _, e := range entries {
		if e.Role != q.Role {
			continue
		}
		items, n := e.items(), 0
		for n < min(len(items), len(q.items)) && bytes.Equal(items[n], q.items[n]) {
			n++
		}
		score := 2 * n
		if e.line.Step == q.step {
			score++
		}
		if score > best {
			near, same, best = e, n, score
		}
	}
	return near, same
}

// value returns what was sent to a model as decoded JSON, with item n alone.
func (h head) value(items []json.RawMessage, n int) any {
	v := decode(marshal(h)).(map[string]any)
	if n < len(items) {
		v[fmt.Sprintf("items[%d]", n)] = decode(items[n])
	}
	return v
}

// decode decodes a valid document and keeps every digit of its numbers.
func decode(doc []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	_ = d.Decode(&v)
	return v
}

// difference is a place where two values differ.
type difference struct {
	path      string
	parent    string // the path of the object or array that the place is in
	want, got string // JSON, or nothing
}

const nothing = "nothing"

// appendDifferences appends the differences between two decoded JSON values to list.
func appendDifferences(list []difference, path string, want, got any) []difference {
	a, b := children(want), children(got)
	if a == nil || b == nil || len(a)+len(b) == 0 {
		if was, is := string(marshal(want)), string(marshal(got)); was != is {
			list = append(list, difference{path, path, was, is})
		}
		return list
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(keys, func(x, y string) int { return cmp.Or(len(x)-len(y), strings.Compare(x, y)) }) // [2] before [10]
	for _, key := range slices.Compact(keys) {
		was, recorded := a[key]
		is, present := b[key]
		switch {
		case !recorded:
			list = append(list, difference{path + key, path, nothing, string(marshal(is))})
		case !present:
			list = append(list, difference{path + key, path, string(marshal(was)), nothing})
		default:
			list = appendDifferences(list, path+key, was, is)
		}
	}
	return list
}

// children returns the fields or elements of a value, by what they add to its path. It
// returns nil for a value that cannot have any.
func children(v any) map[string]any {
	list := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			list["."+key] = field
		}
	case []any:
		for i, element := range v {
			list[fmt.Sprintf("[%d]", i)] = element
		}
	default:
		return nil
	}
	return list
}

// format describes the difference, with both values from where they begin to differ. hide
// leaves out what is in the request.
func (d difference) format(hide bool) string {
	at := 0
	for at < min(len(d.want), len(d.got)) && d.want[at] == d.got[at] {
		at++
	}
	got := excerpt(d.got, at)
	if hide && d.got != nothing {
		got = "a value that may be a secret"
	}
	if hide && d.want == nothing { // the name of a new field may be the secret
		d.path = d.parent
	}
	path := textutil.Truncate(strings.TrimPrefix(d.path, "."), maxShown)
	return fmt.Sprintf("%s: recorded %s, now %s", path, excerpt(d.want, at), got)
}

// excerpt returns text from shortly before a byte.
func excerpt(text string, at int) string {
	if at > lead {
		text = "…" + strings.ToValidUTF8(text[at-lead:], "")
	}
	return textutil.Truncate(text, maxShown)
}

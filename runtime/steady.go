package runtime

import (
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// Two results are the same if they differ in ids and times only. Left out are:
//
//   - UUIDs, ULIDs and hexadecimal ids of 16, 24 or 32 digits in texts;
//   - dates, times of day, durations with a unit and Unix times, in texts and as numbers;
//   - texts and numbers in fields whose name says id, time or duration (volatileField).
//
// Everything else is compared: a count that grows or a state that changes makes a result new.

// Limits of what is compared by its parts. Larger or deeper texts are compared as they are, and
// so is what follows when maxMatches is reached.
const (
	maxSteadyText  = 64 << 10 // bytes
	maxSteadyDepth = 32
	maxMatches     = 500 // regular expressions that are matched for one document, 1 to 3 µs each
	maxVolatile    = 80  // bytes of an id or a time in a text
)

// volatileField matches names of fields that hold an id, a time or a duration.
var volatileField = textutil.LazyPattern(`^(?i:id|ids|uuid|guid|ulid|etag|nonce|time|timestamp|date|now|due|took|uptime|age|ts)$` +
	`|^(?i:duration|elapsed|latency|created|updated|modified|expires)` +
	`|[a-z0-9](Id|ID|Ids|IDs|UUID|At|Time|Timestamp|Date|Duration|Ms|Millis|Seconds|Secs|Ns|Nanos)$` +
	`|(?i:[_-](id|ids|uuid|at|time|timestamp|date|duration|ms|millis|seconds|secs|ns|nanos))$`)

// volatileText matches an id or a time at the begin of a text. Each begins with a word, whose
// first byte is a hexadecimal digit.
var volatileText = textutil.LazyPattern(`^(?:` + strings.Join([]string{
	`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`,
	`\b\d{4}-\d{2}-\d{2}([Tt ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?( ?([Zz]|[+-]\d{2}:?\d{2}))?)?`,
	`\b\d{1,2}:\d{2}:\d{2}([.,]\d+)?\b`,
	`\b(\d+h)?(\d+m)?\d+(\.\d+)?(s|ms|us|µs|ns)\b`,
	`\b\d+(\.\d+)? (ms|secs?|seconds?|minutes?|hours?)\b`,
	`\b(1[4-9]|2[01])\d{8}(\d{3}|\d{6}|\d{9})?(\.\d+)?\b`,
	`\b([0-9a-fA-F]{32}|[0-9a-fA-F]{24}|[0-9a-fA-F]{16})\b`,
	`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`,
}, "|") + ")")

// volatileNumber matches numbers that are Unix times, in seconds to nanoseconds.
var volatileNumber = textutil.LazyPattern(`^(1[4-9]|2[01])\d{8}(\d{3}|\d{6}|\d{9})?(\.\d+)?$`)

var hashSeed = maphash.MakeSeed()

// contentHasher writes values into a hash. Its steady form leaves out ids and times.
type contentHasher struct {
	maphash.Hash
	steady  bool
	matches int             // that are left of maxMatches
	fields  map[string]bool // names of fields, and whether they match volatileField
}

func newHasher() *contentHasher {
	h := &contentHasher{matches: maxMatches, fields: map[string]bool{}}
	h.SetSeed(hashSeed)
	return h
}

func newSteadyHasher() *contentHasher {
	h := newHasher()
	h.steady = true
	return h
}

// hash returns the hash, which is never 0.
func (h *contentHasher) hash() uint64 { return max(1, h.Sum64()) }

// callsHash returns the hash of what an answer does: its calls, or else its text.
func callsHash(a *model.Answer) uint64 {
	h := newHasher()
	if len(a.Calls) == 0 {
		h.text(a.Text)
	}
	for _, c := range a.Calls {
		h.text(c.Name)
		h.document(string(c.Args))
	}
	return h.hash()
}

// resultsHash returns the steady hash of results. Their order does not count: it is the order in
// which concurrent calls end.
func resultsHash(items []model.Item) (sum uint64) {
	for _, item := range items {
		if item.Result != nil {
			content := item.Result.Content
			if hired, ok := chat.HiredBy(item.Result); ok {
				content = hired.Rest
			}
			sum += steadyHash(item.Result.Tool, string(content))
		}
	}
	return max(1, sum)
}

// exactHash returns the hash of a name and a document.
func exactHash(name, document string) uint64 { return newHasher().sumOf(name, document) }

// steadyHash returns the hash of a name and a document without its ids and times.
func steadyHash(name, document string) uint64 { return newSteadyHasher().sumOf(name, document) }

func (h *contentHasher) sumOf(name, document string) uint64 {
	h.text(name)
	h.document(document)
	return h.hash()
}

// document adds a JSON document, in which neither white space nor the order of fields counts.
func (h *contentHasher) document(text string) {
	if len(text) > maxSteadyText || !gjson.Valid(text) {
		h.text(text)
		return
	}
	h.value(gjson.Parse(text), maxSteadyDepth)
}

// value adds a value that may be depth levels deep.
func (h *contentHasher) value(v gjson.Result, depth int) {
	switch {
	case depth == 0:
		h.text(v.Raw)
	case v.IsArray():
		h.text("[")
		v.ForEach(func(_, element gjson.Result) bool {
			h.value(element, depth-1)
			return true
		})
		h.text("]")
	case v.IsObject():
		h.object(v, depth)
	case v.Type == gjson.String && h.steady:
		h.text(`"` + h.steadyText(v.Str))
	case v.Type == gjson.String:
		h.text(`"` + v.Str)
	case v.Type == gjson.Number && h.steady && len(v.Raw) >= len("1712345678") && h.match(volatileNumber(), v.Raw) > 0:
		h.text("…")
	default:
		h.text(v.Raw)
	}
}

// object adds an object with its fields sorted.
func (h *contentHasher) object(v gjson.Result, depth int) {
	type field struct {
		name  string
		value gjson.Result
	}
	var fields []field
	v.ForEach(func(name, value gjson.Result) bool {
		fields = append(fields, field{name.Str, value})
		return true
	})
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	h.text("{")
	for _, f := range fields {
		h.text(f.name)
		if h.steady && f.value.Type != gjson.JSON && h.isVolatile(f.name) {
			continue
		}
		h.value(f.value, depth-1)
	}
	h.text("}")
}

// text adds a text and where it ends.
func (h *contentHasher) text(s string) {
	h.WriteString(strconv.Itoa(len(s)))
	h.WriteString(":")
	h.WriteString(s)
}

// isVolatile reports whether the name of a field says id, time or duration.
func (h *contentHasher) isVolatile(field string) bool {
	volatile, known := h.fields[field]
	if !known && h.matches > 0 {
		volatile = h.match(volatileField(), field) > 0
		h.fields[field] = volatile
	}
	return volatile
}

// match returns the end of the match of a regular expression in text. It returns 0 if nothing
// matches or no matches are left.
func (h *contentHasher) match(pattern *regexp.Regexp, text string) (end int) {
	if h.matches == 0 {
		return 0
	}
	h.matches--
	if at := pattern.FindStringIndex(text); at != nil {
		return at[1]
	}
	return 0
}

// steadyText returns text with its ids and times replaced.
func (h *contentHasher) steadyText(text string) string {
	var out strings.Builder
	copied := 0 // bytes of text that are in out
	for i := 0; i < len(text) && h.matches > 0; {
		if n := h.volatileLen(text[i:]); n > 0 {
			out.WriteString(text[copied:i] + "…")
			i += n
			copied = i
		}
		i = nextWord(text, i)
	}
	return out.String() + text[copied:]
}

// volatileLen returns the length of the id or the time at the begin of a text. The text must start
// at the begin of a word. volatileLen returns 0 if there is no id and no time.
func (h *contentHasher) volatileLen(text string) int {
	if text[0] < '0' || text[0] > '9' {
		digits := 0
		for digits < min(len(text), 33) && isHexDigit(text[digits]) {
			digits++
		}
		if digits != 8 && digits != 16 && digits != 24 && digits != 32 { // no id
			return 0
		}
	}
	return h.match(volatileText(), text[:min(len(text), maxVolatile)])
}

// nextWord returns where the next word of text begins after the one at index i, if one is there.
func nextWord(text string, i int) int {
	for i < len(text) && isWordByte(text[i]) {
		i++
	}
	for i < len(text) && !isWordByte(text[i]) {
		i++
	}
	return i
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// isWordByte reports whether \b in a regular expression takes c for a part of a word.
func isWordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

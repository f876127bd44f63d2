package runtime

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Ids and times are found where the regular expression finds them in the whole text.
func TestSteadyText_FindsAsTheRegularExpression(t *testing.T) {
	pattern := regexp.MustCompile(strings.TrimPrefix(volatileText().String(), "^"))
	parts := []string{
		"2026-07-02", "2026-07-021", "T10:11:12.5", "Z", "+02:00", " ", "  ", ", ", ".", ":", "-", "_", "ä", "µs", "a", "z", "7", "12", "10:11:12", "1h2m3.5s",
		"15ms", "2 minutes", "1712345678", "1712345678901.25", "0123456789abcdef", "abcdefabcdefabcdefabcdef", strings.Repeat("a1", 16),
		"01ARZ3NDEKTSV4RRFFQ69G5FAV", "123e4567-e89b-12d3-a456-426614174000", "abcdefab-cdef-abcd-efab-cdefabcdefab", "abcdefab", "hello",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var text strings.Builder
		for range 1 + random.IntN(6) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		if got, want := newSteadyHasher().steadyText(text.String()), pattern.ReplaceAllString(text.String(), "…"); got != want {
			t.Fatalf("%q: got %q, want %q", text.String(), got, want)
		}
	}
}

// A document whose ids and times change has the same sum, however large it is. A hostile one
// costs a bounded number of matches.
func TestSteadySum_OfLargeDocuments(t *testing.T) {
	for name, doc := range steadyDocuments() {
		if len(doc) > maxSteadyText {
			t.Fatalf("%s has %d bytes", name, len(doc))
		}
		h := newSteadyHasher()
		h.document(doc)
		if h.matches < 0 {
			t.Errorf("%s: %d matches too many", name, -h.matches)
		}
	}
	result := func(at, last string) uint64 {
		text, _ := json.Marshal(strings.Repeat("some words of a long text, ", 2000) + "read at " + at + last)
		return steadyHash("search", `{"at":"`+at+`","id":"`+at+`","text":`+string(text)+`}`)
	}
	if result("10:11:12", "") != result("11:12:13", "") {
		t.Error("another time makes a result new")
	}
	if result("10:11:12", " 1 of 2") == result("10:11:12", " 2 of 2") {
		t.Error("a result that differs in substance is the same")
	}
}

// steadyDocuments are documents of nearly 64 KiB. The last are hostile: almost every byte may
// begin an id or a time.
func steadyDocuments() map[string]string {
	text := func(part string) string {
		doc, _ := json.Marshal(map[string]string{"text": strings.Repeat(part, 60<<10/len(part))})
		return string(doc)
	}
	var records []any
	for i := range 350 {
		records = append(records, map[string]any{
			"id": fmt.Sprintf("%032x", i), "createdAt": "2026-07-02T10:11:12Z", "size": i, "tookMs": i, "name": fmt.Sprintf("file-%d.txt", i), "summary": "a file of the second quarter, changed by ann",
		})
	}
	list, _ := json.Marshal(records)
	fields := map[string]int{}
	for i := range 4500 {
		fields[fmt.Sprintf("f%dx", i)] = i
	}
	many, _ := json.Marshal(fields)
	return map[string]string{
		"prose":         text("The quick brown fox jumps over a lazy dog, because every day begins before dawn. "),
		"source":        text("func add(a, b int) int { return a + b*16 } // see line 210\n"),
		"log":           text("2026-07-02 10:11:12 GET /a/7f3c 200 in 1.52ms\n"),
		"records":       string(list),
		"numbers":       "[" + strings.Repeat("1712345678,", 5800) + "1]",
		"names":         string(many),
		"hex words":     text("abcdefab "),
		"digits":        text("1 "),
		"digits, dates": text("1-1:"),
		"one number":    text("123456789"),
		"one hex word":  text("abcdef0123456789"),
	}
}

func BenchmarkSteadySum(b *testing.B) {
	for name, doc := range steadyDocuments() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				steadyHash("lead", doc)
			}
		})
	}
}

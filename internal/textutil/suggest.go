package textutil

import (
	"slices"
	"strconv"
	"strings"
)

// SuggestName returns `did you mean "x"?` for the most similar word of known, or "" if
// none is similar. It is the hint for an unknown name.
func SuggestName(word string, known []string) string {
	best, least := "", maxWord
	for _, k := range slices.Sorted(slices.Values(known)) {
		a, b := strings.ToLower(word), strings.ToLower(k)
		if d := editDistance(a, b); d < least && isSimilar(a, b, d) {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + strconv.Quote(best) + "?"
}

// isSimilar reports whether a person who wrote a may have meant b. One letter in three may
// differ, and one more if the words begin or end alike.
func isSimilar(a, b string, distance int) bool {
	most := max(1, len(a)/3)
	if len(a) >= 3 && (strings.HasPrefix(b, a[:2]) || strings.HasSuffix(b, a[len(a)-3:])) {
		most = len(a)/3 + 1
	}
	return distance <= most && distance < len(b)
}

// AddHint adds a hint to the text of an error: as a sentence after a question, else after a
// semicolon. It must begin with a letter or a sign of ASCII; an empty hint adds nothing.
func AddHint(text, hint string) string {
	switch {
	case hint == "":
		return text
	case strings.HasSuffix(text, "?"):
		return text + " " + strings.ToUpper(hint[:1]) + hint[1:]
	}
	return text + "; " + hint
}

// maxWord is the length of the longest word that editDistance compares.
const maxWord = 64

// editDistance returns the number of letters to insert, delete, replace or swap
// with their neighbor to turn word into other (optimal string alignment). It returns a
// large number for words longer than maxWord.
func editDistance(word, other string) int {
	if len(word) > maxWord || len(other) > maxWord {
		return 2 * maxWord
	}
	a, b := []rune(word), []rune(other)
	var rows distanceMatrix
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			rows[i][j] = rows.step(a, b, i, j)
		}
	}
	return rows[len(a)][len(b)]
}

// distanceMatrix holds the distance of every pair of prefixes of two words.
type distanceMatrix [maxWord + 1][maxWord + 1]int

// step returns the distance of a[:i] and b[:j] from the distances of shorter prefixes.
func (m *distanceMatrix) step(a, b []rune, i, j int) int {
	if i == 0 || j == 0 {
		return i + j
	}
	change := 1
	if a[i-1] == b[j-1] {
		change = 0
	}
	least := min(m[i-1][j]+1, m[i][j-1]+1, m[i-1][j-1]+change)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		least = min(least, m[i-2][j-2]+1)
	}
	return least
}

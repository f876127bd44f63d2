package textutil

import (
	"slices"
	"strconv"
	"strings"
)

// SuggestName returns `did you mean "x"?` for the most similar word of known, or "" if
// none is similar. It is the hint for an unknown name.
func SuggestName(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d <= least && d < len(k) {
			if best == "" || d < least {
				best, least = k, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + strconv.Quote(best) + "?"
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
// with their neighbor to turn a into b (optimal string alignment). It returns a
// large number for words longer than maxWord.
func editDistance(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return 2 * maxWord
	}
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

// step returns the distance of a[:i] and b[:j] from those of shorter prefixes.
func (m *distanceMatrix) step(a, b string, i, j int) int {
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

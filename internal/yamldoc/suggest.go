package yamldoc

import (
	"slices"
	"strings"
)

// ListHint returns intro and the sorted words, or "" if there are none or too many.
func ListHint(intro string, words []string) string {
	const most = 20
	if len(words) == 0 || len(words) > most {
		return ""
	}
	return intro + strings.Join(slices.Sorted(slices.Values(words)), ", ")
}

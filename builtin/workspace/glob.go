package workspace

import (
	"path"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// Glob is a file name pattern, split at its slashes. ParseGlob creates it; nil
// matches every name. In the pattern * is any text, ? any character, [a-z] one of
// a range, and the element ** any number of folders, also none.
type Glob []string

// ParseGlob parses a pattern. The result for "" is nil. The error is
// invalid_arguments for a malformed pattern.
func ParseGlob(pattern string) (Glob, error) {
	if pattern == "" {
		return nil, nil
	}
	g := Glob(strings.Split(path.Clean(pattern), "/"))
	for _, part := range g {
		if _, err := path.Match(part, ""); err != nil {
			return nil, opError(errcode.InvalidArguments,
				"invalid pattern %q: use * for any text, ? for any character, [a-z] for one of a range, ** for any folders, and \\ before a literal character", pattern)
		}
	}
	// Adjacent ** are redundant and only cost time.
	return slices.CompactFunc(g, func(a, b string) bool { return a == "**" && b == "**" }), nil
}

// spansFolders reports whether the pattern can match names in subfolders.
func (g Glob) spansFolders() bool { return len(g) > 1 || slices.Contains(g, "**") }

// matches reports whether the pattern matches a path: its last element if the
// pattern has no slash, otherwise the whole path.
func (g Glob) matches(name string) bool {
	switch {
	case g == nil:
		return true
	case !g.spansFolders():
		return matchPart(g[0], path.Base(name))
	}
	return g.matchesPath(strings.Split(name, "/"))
}

// matchesPath matches the elements of a path. Like an NFA, it tracks after each
// name all positions in the pattern that can have been reached. So its time is
// at most the product of both lengths.
func (g Glob) matchesPath(names []string) bool {
	reached := make([]bool, len(g)+1)
	reached[0] = true
	g.skipStars(reached)
	for _, name := range names {
		next := make([]bool, len(g)+1)
		for i, part := range g {
			switch {
			case !reached[i]:
			case part == "**":
				next[i] = true
			case matchPart(part, name):
				next[i+1] = true
			}
		}
		g.skipStars(next)
		reached = next
	}
	return reached[len(g)]
}

// skipStars adds the positions after each ** that was reached, since ** also
// matches no folder.
func (g Glob) skipStars(reached []bool) {
	for i, part := range g {
		if part == "**" && reached[i] {
			reached[i+1] = true
		}
	}
}

// matchPart matches one name against one element of a pattern.
func matchPart(part, name string) bool {
	ok, err := path.Match(part, name)
	return ok && err == nil
}

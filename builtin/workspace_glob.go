package builtin

import (
	"path"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// glob is a pattern of names, cut at its slashes.
type glob []string

// parseGlob reads a pattern; "" is nil, which takes every name.
func parseGlob(pattern string) (glob, error) {
	if pattern == "" {
		return nil, nil
	}
	g := glob(strings.Split(path.Clean(pattern), "/"))
	for _, part := range g {
		if _, err := path.Match(part, ""); err != nil {
			return nil, refused(errcode.InvalidArguments,
				"pattern %q cannot be read: it has * for any text, ? for any character, [a-z] for one of a range, ** for any folders, and \\ before a character meant as it is", pattern)
		}
	}
	// Neighbours that say the same would only cost time.
	return slices.CompactFunc(g, func(a, b string) bool { return a == "**" && b == "**" }), nil
}

// deep says whether names in folders inside folders are asked for.
func (g glob) deep() bool { return len(g) > 1 || slices.Contains(g, "**") }

// matches holds the pattern against a path: against its last name when the
// pattern has no slash, else against all of it.
func (g glob) matches(name string) bool {
	switch {
	case g == nil:
		return true
	case !g.deep():
		return fits(g[0], path.Base(name))
	}
	return g.matchesAll(strings.Split(name, "/"))
}

// matchesAll keeps, name by name, how much of the pattern may have been read:
// its time is the product of both lengths, whatever stands in them.
func (g glob) matchesAll(names []string) bool {
	read := make([]bool, len(g)+1)
	read[0] = true
	g.skip(read)
	for _, name := range names {
		next := make([]bool, len(g)+1)
		for i, part := range g {
			switch {
			case !read[i]:
			case part == "**":
				next[i] = true
			case fits(part, name):
				next[i+1] = true
			}
		}
		g.skip(next)
		read = next
	}
	return read[len(g)]
}

// skip lets ** stand for no folder at all.
func (g glob) skip(read []bool) {
	for i, part := range g {
		if part == "**" && read[i] {
			read[i+1] = true
		}
	}
}

func fits(part, name string) bool {
	ok, err := path.Match(part, name)
	return ok && err == nil
}

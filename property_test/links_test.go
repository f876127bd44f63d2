package property_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Every relative link in a document leads to a file, and to a heading of it.
func TestDocument_LinksLeadSomewhere(t *testing.T) {
	code, link := regexp.MustCompile("(?s)```.*?```"), regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range listPages(t) {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(readPage(t, page), ""), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, ":") || page == "THIRD_PARTY_NOTICES.md" {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			} else if anchor != "" && !slices.Contains(anchors(readPage(t, path)), anchor) {
				t.Errorf("%s links to %s: there is no such heading", page, match[1])
			}
		}
	}
}

// listPages returns the documents of the tree, without those of installed packages.
func listPages(t *testing.T) (pages []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(name, ".md") {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	return pages
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors returns the anchors of the headings of a page, as web sites make them.
func anchors(page string) (list []string) {
	for line := range strings.Lines(page) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			list = append(list, anchor(strings.TrimSpace(heading)))
		}
	}
	return list
}

func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// README.md is one screen of short sentences.
func TestReadme_IsOneScreen(t *testing.T) {
	readme := readPage(t, "README.md")
	if n := strings.Count(readme, "\n"); n > 50 {
		t.Errorf("README.md has %d lines, want at most 50", n)
	}
	prose := regexp.MustCompile("(?s)```.*?```|`[^`]*`").ReplaceAllString(readme, "code")
	prose = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(prose, "]")
	for _, sentence := range regexp.MustCompile(`[.:;!?]\**\s|\n\n|\n- | · |<br>`).Split(prose, -1) {
		if n := len(strings.Fields(sentence)); n > 25 {
			t.Errorf("a sentence of %d words: %s", n, sentence)
		}
	}
}

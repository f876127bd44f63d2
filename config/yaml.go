package config

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Limits of what is given to the YAML parser. It needs some 800 bytes and 4 µs
// for a value, so ten megabytes of "[a,a,a…" would take 22 s and gigabytes.
const (
	maxDepth  = 64
	maxValues = 1 << 18
)

// documents parses the file and yields the document nodes that are not empty.
// It ends after the first error: where the next document begins is unknown then.
func (s *source) documents() iter.Seq2[*yaml.Node, *Error] {
	return func(yield func(*yaml.Node, *Error) bool) {
		if fault := s.checkText(); fault != nil {
			yield(nil, fault)
			return
		}
		loader, err := yaml.NewLoader(strings.NewReader(s.text), limits())
		for err == nil {
			var doc yaml.Node
			if err = loader.Load(&doc); err == nil && !isEmpty(&doc) && !yield(&doc, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(nil, s.syntaxError(err))
		}
	}
}

func limits() yaml.Option {
	return yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))
}

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Tag == "!!null"
}

// checkText finds what the parser should not see, or reports without a place.
func (s *source) checkText() *Error {
	file := Pos{File: s.path}
	if len(s.text) > maxFile {
		return s.errorAt(file, "", errTooLarge.Error(), "")
	}
	if values := countValues(s.text); values > maxValues {
		return s.errorAt(file, "", fmt.Sprintf("may hold %d values; at most %d are read", values, maxValues), "split the file")
	}
	for i, r := range s.text {
		if r == '\n' || ' ' <= r && r <= '~' { // most are
			continue
		}
		if problem := unreadable(s.text[i:], r); problem != "" {
			return s.errorAt(s.posAt(i), "", problem, "a document is UTF-8 text")
		}
	}
	return nil
}

// countValues bounds from above how many values the text holds: before each
// stands at least one of these characters.
func countValues(text string) int {
	n := 1
	for i := range len(text) {
		switch text[i] {
		case '\n', '\r', ',', '[', '{', ':':
			n++
		}
	}
	return n
}

func unreadable(text string, r rune) string {
	if r == utf8.RuneError {
		if _, size := utf8.DecodeRuneInString(text); size == 1 {
			return fmt.Sprintf("byte %#x is not UTF-8", text[0])
		}
	}
	if unicode.IsControl(r) && !strings.ContainsRune("\t"+lineBreaks, r) {
		return fmt.Sprintf("control character %U", r)
	}
	return ""
}

// syntaxError puts the parser's words into ours.
func (s *source) syntaxError(err error) *Error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return s.errorAt(Pos{File: s.path}, "kind", "is not YAML: "+err.Error(), "")
	}
	at := Pos{s.path, e.Mark.Line, e.Mark.Column}
	begin := Pos{s.path, e.ContextMark.Line, e.ContextMark.Column}
	message := "is not YAML: " + e.Message
	if e.ContextMsg != "" {
		message += " " + e.ContextMsg
	}
	switch {
	case begin.Line == 0 || begin.Line == at.Line:
	case s.excerpt(at) == "": // the end of the file shows nothing; what is open there does
		at = begin
	default:
		message += fmt.Sprintf(" that begins at line %d", begin.Line)
	}
	hint := ""
	if at.Line > 0 && strings.Contains(s.line(at.Line), "${") {
		hint = `within { } and [ ] write "${NAME}" with quotes`
	}
	return s.errorAt(at, s.keyAt(at.Line), message, hint)
}

var rootKey = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]{0,63}):(?:\s|$)`)

// keyAt names the field of the document's root that a line belongs to, as far as
// that can be said of what is no YAML; kind, with which documents begin, if there
// is none.
func (s *source) keyAt(n int) string {
	for ; n > 0 && !strings.HasPrefix(s.line(n), "---"); n-- {
		if key := rootKey.FindStringSubmatch(s.line(n)); key != nil {
			return key[1]
		}
	}
	return "kind"
}

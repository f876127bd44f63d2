package yamldoc

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Limits of the text that is given to the YAML parser. The parser needs about 800
// bytes and 4 µs for a value: ten megabytes of "[a,a,a…" would take 22 s and
// gigabytes of memory.
const (
	maxDepth  = 64
	maxValues = 1 << 18
)

// ParseDocuments parses the file and yields the document nodes that are not empty. It
// stops after the first error, because the beginning of the next document is then
// unknown.
func (f *FileText) ParseDocuments() iter.Seq2[*yaml.Node, *Error] {
	return func(yield func(*yaml.Node, *Error) bool) {
		if e := f.checkText(); e != nil {
			yield(nil, e)
			return
		}
		loader, err := yaml.NewLoader(strings.NewReader(f.Text), parserLimits())
		for err == nil {
			var doc yaml.Node
			if err = loader.Load(&doc); err == nil && !isEmpty(&doc) && !yield(&doc, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(nil, f.syntaxError(err))
		}
	}
}

// parserLimits bounds the nesting of values.
func parserLimits() yaml.Option {
	return yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))
}

// isEmpty reports whether a document has no content.
func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Tag == "!!null"
}

// checkText rejects text that the parser must not get because it would cost too
// much, or that the parser would report without a position.
func (f *FileText) checkText() *Error {
	file := Pos{File: f.Path}
	if len(f.Text) > MaxFileSize {
		return f.ErrorAt(file, "", ErrTooLarge.Error(), "")
	}
	if values := countValues(f.Text); values > maxValues {
		return f.ErrorAt(file, "", fmt.Sprintf("may have %d values; the limit is %d", values, maxValues), "split the file")
	}
	for i, r := range f.Text {
		if r == '\n' || ' ' <= r && r <= '~' { // most are
			continue
		}
		if problem := unreadable(f.Text[i:], r); problem != "" {
			return f.ErrorAt(f.posAt(i), "", problem, "a document is UTF-8 text")
		}
	}
	return nil
}

// countValues returns an upper bound of the number of values in text: at least one
// of these characters precedes each value.
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

// unreadable returns why r, the first character of text, cannot be in a document,
// or "".
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

// syntaxError converts an error of the parser.
func (f *FileText) syntaxError(err error) *Error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return f.ErrorAt(Pos{File: f.Path}, "kind", "is not YAML: "+err.Error(), "")
	}
	at := Pos{f.Path, e.Mark.Line, e.Mark.Column}
	begin := Pos{f.Path, e.ContextMark.Line, e.ContextMark.Column}
	message := "is not YAML: " + e.Message
	if e.ContextMsg != "" {
		message += " " + e.ContextMsg
	}
	switch {
	case begin.Line == 0 || begin.Line == at.Line:
	case f.excerpt(at) == "": // the end of the file has no excerpt; show where the open construct begins
		at = begin
	default:
		message += fmt.Sprintf(" that begins at line %d", begin.Line)
	}
	hint := ""
	if at.Line > 0 && strings.Contains(f.LineText(at.Line), "${") {
		hint = `within { } and [ ] write "${NAME}" with quotes`
	}
	return f.ErrorAt(at, f.keyAt(at.Line), message, hint)
}

var rootKey = textutil.LazyPattern(`^([A-Za-z][A-Za-z0-9_-]{0,63}):(?:\s|$)`)

// keyAt returns the top-level field that a line belongs to. The text is not valid
// YAML, so this is a guess. Without such a field it returns kind, which documents
// begin with.
func (f *FileText) keyAt(n int) string {
	for ; n > 0 && !strings.HasPrefix(f.LineText(n), "---"); n-- {
		if key := rootKey().FindStringSubmatch(f.LineText(n)); key != nil {
			return key[1]
		}
	}
	return "kind"
}

package parameter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Limits of one run of a Template.
const (
	MaxText      = 1 << 20 // bytes of the text
	maxSteps     = 1 << 16 // one for each range iteration and printed value, and one more for each bytesPerStep bytes of it
	bytesPerStep = 64
)

// Template is a text with places for values, such as a statement or the body of a
// request. It is immutable and safe for concurrent use.
type Template struct {
	set    *Set
	format Format
	names  []string
	text   string             // the text itself if parsed is nil
	parsed *template.Template // cloned for each renderer; never executed itself
	idle   sync.Pool          // of *renderer
}

// StatementTemplate parses a statement as a template of the named parameters, of the
// template parameters if none is named: see ParseTemplate.
func (s *Set) StatementTemplate(text string, names ...string) (*Template, error) {
	if len(names) == 0 {
		names = s.TemplateNames()
	}
	return s.ParseTemplate(FormatStatement, text, names...)
}

// MessageTemplate parses a message as a template of all parameters: see
// ParseTemplate. The text is a template even if there are no parameters.
func (s *Set) MessageTemplate(text string) (*Template, error) {
	t := &Template{set: s, format: FormatMessage, names: append(s.OrdinaryNames(), s.TemplateNames()...), text: text}
	return t, t.parse()
}

// ParseTemplate parses text as a template of Go's text/template that sees the
// named parameters. Without names text is not a template, and {{ has no meaning.
//
// From FormatPath on, values are escaped for the format. The formats before it have no escapes.
// In addition to Go's functions, {{array .names}} joins an array of strings with ", ", and
// {{json .name}} returns any value as JSON. In a FormatPath, pathEscape and queryEscape are accepted. They do not change how
// a text or a number is printed, as values are percent-encoded there anyway. But queryEscape
// accepts a missing or an empty value in a query. Printing a missing value with anything else but
// json is an error of the call; {{if .name}} and {{or .name "x"}} avoid it. In a FormatMessage it
// prints as <no value>.
//
// The error says what does not parse, is not declared or has reserved characters. Nested templates (define,
// block, template) are not supported.
func (s *Set) ParseTemplate(f Format, text string, names ...string) (*Template, error) {
	t := &Template{set: s, format: f, names: slices.Clone(names), text: text}
	for _, name := range names {
		if _, ok := s.indexes[name]; !ok {
			return nil, fmt.Errorf("the template names the parameter %q, which does not exist", textutil.Truncate(name, maxQuote))
		}
	}
	if f == FormatJSON && strings.ContainsAny(text, allMarks) {
		return nil, errors.New("the characters U+E000 to U+E003 are reserved in a template of JSON")
	}
	if len(names) == 0 {
		return t, nil
	}
	return t, t.parse()
}

// CheckPlainText returns an error if a text without parameters uses them as a template would,
// as it would be sent unchanged. It returns nil if text uses none, or {{ means something else in
// it, as in PostgreSQL arrays.
func CheckPlainText(text string) error {
	if !strings.Contains(text, "{{") {
		return nil
	}
	t := &Template{text: text, format: FormatPath} // which has all functions
	if err := t.parseText(); err != nil || t.parsed.Tree == nil {
		return nil
	}
	return t.rewrite()
}

func (t *Template) parse() error {
	if err := t.parseText(); err != nil {
		return fmt.Errorf("template does not parse: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, other := range t.parsed.Templates() {
		if other.Name() != t.parsed.Name() {
			return fmt.Errorf("template: define and block are not supported: remove %q", textutil.Truncate(other.Name(), maxQuote))
		}
	}
	return t.rewrite()
}

func (t *Template) parseText() (err error) {
	t.parsed, err = template.New(t.format.String()).Funcs((&renderer{}).functions()).Parse(t.text)
	return err
}

func (t *Template) rewrite() error {
	r := rewriter{names: t.names, format: t.format}
	r.list(t.parsed.Root, dotIsParameters)
	return r.err
}

// RenderText returns the text for the values of a call, which must be of the same Set.
// It fails with invalid_arguments if the template prints a missing value, except in a FormatMessage,
// or if a value may not stand in its place. It also does if the text or the run exceeds its limit, or if a function
// rejects its argument. Values of another Set are an internal error.
func (t *Template) RenderText(v Values) (text string, err error) {
	if v.set != t.set && t.parsed != nil {
		return "", errcode.New(errcode.Internal, "the values and the template belong to different parameter sets")
	}
	if text = t.text; t.parsed != nil {
		text, err = t.execute(v)
	}
	if err == nil && t.format == FormatJSON {
		text, err = removeMarks(text)
	}
	if err != nil {
		return "", errcode.New(errcode.InvalidArguments, "fill the template of the %s: %v", t.format, err)
	}
	return text, nil
}

func (t *Template) execute(v Values) (string, error) {
	r, err := t.acquire()
	if err != nil {
		return "", err
	}
	defer t.release(r)
	data := make(map[string]any, len(t.names))
	for _, name := range t.names {
		data[name] = r.value(v.list[t.set.indexes[name]])
	}
	switch err := r.template.Execute(r, data); {
	case r.err != nil:
		return "", r.err
	case err != nil:
		return "", t.reason(err)
	}
	return r.out.String(), nil
}

// acquire returns a renderer that no other caller has. Renderers are reused, because cloning a
// template costs more than executing it.
func (t *Template) acquire() (*renderer, error) {
	if r, ok := t.idle.Get().(*renderer); ok {
		return r, nil
	}
	clone, err := t.parsed.Clone()
	if err != nil {
		return nil, err
	}
	r := &renderer{format: t.format}
	r.template = clone.Funcs(r.functions())
	return r, nil
}

// release resets a renderer, so that nothing of this call remains, and keeps it for the next one.
func (t *Template) release(r *renderer) {
	r.out, r.query, r.steps, r.err, r.objects = strings.Builder{}, false, 0, nil, nil
	t.idle.Put(r)
}

// reason returns an error of text/template without what the library adds to it.
func (t *Template) reason(err error) error {
	_, message, ok := strings.Cut(err.Error(), fmt.Sprintf("executing %q at ", t.format.String()))
	if !ok {
		return err
	}
	if place, _, missing := strings.Cut(message, ": nil pointer evaluating"); missing {
		return fmt.Errorf("%s %w", place, errMissing)
	}
	return errors.New(message)
}

package parameter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/rolecall/rolecall/errcode"
)

// What one execution of a Template may take.
const (
	MaxText  = 1 << 20 // bytes of what it gives
	maxSteps = 1 << 16 // passes through ranges, values, and stepSize bytes of either
	stepSize = 64
)

// Template is the text of a statement with places for values. It never
// changes; its method is safe for concurrent use.
type Template struct {
	set       *Set
	names     []string
	text      string             // as it is, if parsed is nil
	plainText bool               // not of a statement
	parsed    *template.Template // never executed itself, but copied
	idle      sync.Pool          // of *execution
}

// Template reads text as a template of Go's text/template that sees the named
// parameters; without names, those of the template. If there are none text is
// no template, and {{ has no meaning.
//
// Besides what Go has, {{array .names}} joins an array of strings with ", "
// and {{json .name}} gives any value as JSON. Everything that prints a missing
// value, but json, ends the call; {{if .name}} and {{or .name "x"}} are the
// ways around. The error names what does not parse, or is not declared;
// templates in templates are not supported.
func (s *Set) Template(text string, names ...string) (*Template, error) {
	if len(names) == 0 {
		names = s.Templates()
	}
	t := &Template{set: s, names: slices.Clone(names), text: text}
	for _, name := range names {
		if _, ok := s.places[name]; !ok {
			return nil, fmt.Errorf("there is no parameter %q for the template", brief(name))
		}
	}
	if len(names) == 0 {
		return t, nil
	}
	return t, t.parse()
}

// TextTemplate reads text as a template of all parameters, always, whose text is for
// people and models to read: what is missing prints as <no value>, and maps as
// Go prints them. Else it is as Template.
func (s *Set) TextTemplate(text string) (*Template, error) {
	t := &Template{set: s, names: append(s.Ordinary(), s.Templates()...), text: text, plainText: true}
	return t, t.parse()
}

// LooksLikeTemplate tells of a text that is no template, for want of parameters, and takes
// one all the same: it would be sent as it stands. nil if it takes none, or {{
// means something else in it, as in the arrays of PostgreSQL.
func LooksLikeTemplate(text string) error {
	if !strings.Contains(text, "{{") {
		return nil
	}
	parsed, err := template.New("statement").Funcs((&templateRun{}).functions()).Parse(text)
	if err != nil || parsed.Tree == nil {
		return nil
	}
	var r rewriter
	r.list(parsed.Root, true)
	return r.err
}

func (t *Template) parse() (err error) {
	t.parsed, err = template.New(t.what()).Funcs((&templateRun{}).functions()).Parse(t.text)
	if err != nil {
		return fmt.Errorf("template does not parse: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, other := range t.parsed.Templates() {
		if other.Name() != t.parsed.Name() {
			return fmt.Errorf("template: define and block are not supported: a %s is one template, without %q", t.what(), brief(other.Name()))
		}
	}
	r := rewriter{names: t.names}
	r.list(t.parsed.Root, true)
	return r.err
}

// Text gives the statement for the values of a call, which are of the same
// Set. The error has the code invalid_arguments: something missing is
// printed, the text grows beyond MaxText, ranges go on for too long, or a
// function does not take what it is given.
func (t *Template) Text(v Values) (string, error) {
	if t.parsed == nil {
		return t.text, nil
	}
	if v.set != t.set {
		return "", errcode.New(errcode.Internal, "the values are of another set of parameters than the template")
	}
	text, err := t.execute(v)
	if err != nil {
		return "", errcode.New(errcode.InvalidArguments, "%s cannot be made of the %s: %v", t.what(), t.of(), err)
	}
	return text, nil
}

// what the text is, in words.
func (t *Template) what() string {
	if t.plainText {
		return "message"
	}
	return "statement"
}

// of gives what the values are called that the text is made of.
func (t *Template) of() string {
	if t.plainText {
		return "arguments"
	}
	return "template parameters"
}

func (t *Template) execute(v Values) (string, error) {
	data := make(map[string]any, len(t.names))
	for _, name := range t.names {
		data[name] = templateValue(v.list[t.set.places[name]])
	}
	e, err := t.acquire()
	if err != nil {
		return "", err
	}
	defer t.release(e)
	switch err := e.template.Execute(e, data); {
	case e.err != nil:
		return "", e.err
	case err != nil:
		return "", reason(t.what(), err)
	}
	return e.text.String(), nil
}

// acquire gives one that nobody else has. To copy a template costs more
// than to execute it.
func (t *Template) acquire() (*templateRun, error) {
	if e, ok := t.idle.Get().(*templateRun); ok {
		return e, nil
	}
	copied, err := t.parsed.Clone()
	if err != nil {
		return nil, err
	}
	e := &templateRun{prose: t.plainText}
	e.template = copied.Funcs(e.functions())
	return e, nil
}

// release keeps an execution for another time, and nothing of this one in it.
func (t *Template) release(e *templateRun) {
	e.text, e.steps, e.err = strings.Builder{}, 0, nil
	t.idle.Put(e)
}

// reason gives the error without what the library says around it.
func reason(what string, err error) error {
	_, words, ok := strings.Cut(err.Error(), `executing "`+what+`" at `)
	if !ok {
		return err
	}
	if place, _, missing := strings.Cut(words, ": nil pointer evaluating"); missing {
		return fmt.Errorf("%s %w", place, errMissing)
	}
	return errors.New(words)
}

// templateValue gives a value as templates have it: an object is a map.
func templateValue(value any) any {
	switch value := value.(type) {
	case object:
		m := make(map[string]any, len(value))
		for _, member := range value {
			m[member.key] = templateValue(member.value)
		}
		return m
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = templateValue(element)
		}
		return list
	case json.Number:
		return number(value)
	}
	return value
}

// number gives a number of no stated type as one that templates compare.
func number(n json.Number) any {
	if i, ok := integer(string(n)); ok {
		return i
	}
	f, _ := float(string(n))
	return f
}

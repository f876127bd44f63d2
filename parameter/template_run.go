package parameter

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"
)

// The functions that a rewritten template calls by itself; no text may.
const (
	emitName = "_emit"
	stepName = "_step"
)

// templateRun is one run of a template, and where its text goes.
type templateRun struct {
	template *template.Template // calls the functions of this execution
	text     strings.Builder
	steps    int
	err      error // what ended it, if it was the execution itself
	prose    bool  // the text is no statement
}

// Write implements io.Writer.
func (e *templateRun) Write(text []byte) (int, error) {
	if e.err == nil && e.text.Len()+len(text) > MaxText {
		e.err = fmt.Errorf("the text is longer than %d bytes", MaxText)
	}
	if e.err != nil {
		return 0, e.err
	}
	return e.text.Write(text)
}

// functions are those of templates. Those of Go that print do not print what
// is missing, and none makes texts without end.
func (e *templateRun) functions() template.FuncMap {
	return template.FuncMap{
		emitName:   e.print,
		stepName:   e.step,
		"array":    func(value any) (string, error) { return e.count(array(value)) },
		"json":     func(value any) (string, error) { return e.count(jsonText(value)) },
		"print":    e.limitArgs(fmt.Sprint),
		"println":  e.limitArgs(fmt.Sprintln),
		"html":     e.limitArgs(template.HTMLEscaper),
		"js":       e.limitArgs(template.JSEscaper),
		"urlquery": e.limitArgs(template.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			return e.limitArgs(func(args ...any) string { return fmt.Sprintf(format, args...) })(args...)
		},
	}
}

// step is called in each pass through a range.
func (e *templateRun) step() (string, error) { return e.count("", nil) }

// count takes the steps of making a text.
func (e *templateRun) count(text string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if e.steps += 1 + len(text)/stepSize; e.steps > maxSteps && e.err == nil {
		e.err = fmt.Errorf("the template takes more than %d steps", maxSteps)
	}
	return text, e.err
}

// print gives the text of a value that an action of the template prints.
func (e *templateRun) print(source string, value any) (string, error) {
	if e.prose {
		return e.count(sprintLenient(value), e.err)
	}
	text, err := sprintStrict(value)
	if err == nil && strings.ContainsRune(text, 0) { // from within a map; others were checked
		err = errNUL
	}
	if err == nil && negative(text) && strings.HasSuffix(e.text.String(), "-") {
		err = errWouldComment
	}
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("%s %w", brief(source), err)
	}
	return e.count(text, e.err)
}

// sprintLenient gives the text of a value as Go's templates print it.
func sprintLenient(value any) string {
	if value == nil {
		return "<no value>"
	}
	return fmt.Sprint(value)
}

// negative says whether a text begins as a number under zero, whichever function
// wrote it.
func negative(text string) bool {
	digits, minus := strings.CutPrefix(text, "-")
	return minus && isDigit(digits)
}

// limitArgs makes a function that refuses arguments without a text, or with
// much of it.
func (e *templateRun) limitArgs(print func(args ...any) string) func(args ...any) (string, error) {
	return func(args ...any) (string, error) {
		size := 0
		for _, arg := range args {
			text, err := sprintStrict(arg)
			if err != nil {
				return "", fmt.Errorf("an argument %w", err)
			}
			if size += len(text); size > MaxText {
				return "", fmt.Errorf("the arguments are longer than %d bytes", MaxText)
			}
		}
		return e.count(print(args...), nil)
	}
}

var errWouldComment = errors.New("is negative and stands after a minus: both begin a comment; write it in parentheses")

var errMissing = errors.New("has no value: give one, or guard it in the statement with {{if}}")

// sprintStrict gives the text of a value, as Go prints it.
func sprintStrict(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", errMissing
	case string:
		return v, nil
	case []any:
		return printedList(v)
	}
	switch reflect.TypeOf(value).Kind() {
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Float64:
		return fmt.Sprint(value), nil
	}
	return "", fmt.Errorf("is a %T, which has no text; json gives one", value)
}

func printedList(list []any) (string, error) {
	texts := make([]string, len(list))
	var err error
	for i, element := range list {
		if texts[i], err = sprintStrict(element); err != nil {
			return "", fmt.Errorf("has an element that %w", err)
		}
	}
	return "[" + strings.Join(texts, " ") + "]", nil
}

// array joins strings.
func array(value any) (string, error) {
	list, ok := value.([]any)
	switch {
	case value == nil:
		return "", fmt.Errorf("its argument %w", errMissing)
	case !ok:
		return "", errors.New("its argument is no array")
	}
	texts := make([]string, len(list))
	for i, element := range list {
		if texts[i], ok = element.(string); !ok {
			return "", fmt.Errorf("element #%d is no string", i)
		}
	}
	return strings.Join(texts, ", "), nil
}

// jsonText gives any value as JSON; null for a missing one.
func jsonText(value any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return strings.TrimSuffix(b.String(), "\n"), err
}

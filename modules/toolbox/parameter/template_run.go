package parameter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Functions that rewriter inserts calls of. A template cannot name them itself.
const (
	emitName = "_emit"
	stepName = "_step"
)

// renderer makes the text of a Template, for one call at a time.
type renderer struct {
	template *template.Template // its functions are bound to this renderer
	format   Format
	out      strings.Builder
	query    bool // the text so far contains the question mark before a query
	steps    int
	err      error              // why the run itself stopped, if it did
	objects  map[uintptr]object // the source of each map, by its pointer; nil without maps
}

// Write implements io.Writer.
func (r *renderer) Write(text []byte) (int, error) {
	if r.err == nil && r.out.Len()+len(text) > MaxText {
		r.err = fmt.Errorf("the text is longer than %d bytes", MaxText)
	}
	if r.err != nil {
		return 0, r.err
	}
	r.query = r.query || bytes.IndexByte(text, '?') >= 0
	return r.out.Write(text)
}

// functions returns the functions of templates. Those that replace Go's print no
// missing value, escape their arguments, and limit what they make of them.
func (r *renderer) functions() template.FuncMap {
	return template.FuncMap{
		emitName: r.emit,
		stepName: r.step,
		"array":  r.array,
		"json":   r.json,

		pathEscapeName:  r.pathEscape,
		queryEscapeName: r.queryEscape,

		"print":    r.limitArgs(fmt.Sprint),
		"println":  r.limitArgs(fmt.Sprintln),
		"html":     r.limitArgs(template.HTMLEscaper),
		"js":       r.limitArgs(template.JSEscaper),
		"urlquery": r.limitArgs(template.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			return r.limitArgs(func(args ...any) string { return fmt.Sprintf(format, args...) })(args...)
		},
	}
}

// count adds the steps of making a text. It returns the error that ends the run.
func (r *renderer) count(length int) error {
	if r.steps += 1 + length/bytesPerStep; r.steps > maxSteps && r.err == nil {
		r.err = fmt.Errorf("the template takes more than %d steps", maxSteps)
	}
	return r.err
}

// step counts one iteration of a range. It returns the key, if there is one, as a
// value: the keys of a map come from the caller.
func (r *renderer) step(key ...any) (any, error) {
	if len(key) == 0 {
		return "", r.count(0)
	}
	return r.value(key[0]), r.count(0)
}

// emit returns the text of a value that an action of the template prints. source
// is the action.
func (r *renderer) emit(source string, value any) (string, error) {
	if r.format == FormatMessage {
		printed := printLenient(value)
		return printed, r.count(len(printed))
	}
	printable, err := r.printable(value)
	printed := fmt.Sprint(printable)
	if err == nil && r.format == FormatStatement {
		err = checkInStatement(printed, r.out.String())
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s %w", textutil.Truncate(source, maxQuote), err)
	}
	return printed, r.count(len(printed))
}

// printLenient returns the text of a value as Go's templates print it.
func printLenient(value any) string {
	if value == nil {
		return "<no value>"
	}
	return fmt.Sprint(value)
}

var errWouldComment = errors.New("is negative and follows a minus: both begin a comment; write it in parentheses")

// checkInStatement rejects a text that ends the statement, or begins a comment with
// the statement before it.
func checkInStatement(printed, before string) error {
	if strings.ContainsRune(printed, 0) { // from within a map; other values were checked
		return errNUL
	}
	if digits, minus := strings.CutPrefix(printed, "-"); minus && startsWithDigit(digits) && strings.HasSuffix(before, "-") {
		return errWouldComment
	}
	return nil
}

// limitArgs wraps a function that prints its arguments. Each is escaped, none may
// be missing, and together they are at most MaxText bytes.
func (r *renderer) limitArgs(print func(args ...any) string) func(args ...any) (string, error) {
	return func(args ...any) (string, error) {
		size := 0
		for i, arg := range args {
			printable, err := r.printable(arg)
			if err != nil {
				return "", fmt.Errorf("an argument %w", err)
			}
			if size += len(fmt.Sprint(printable)); size > MaxText {
				return "", fmt.Errorf("the arguments are longer than %d bytes", MaxText)
			}
			args[i] = printable
		}
		printed := print(args...)
		return printed, r.count(len(printed))
	}
}

var errMissing = errors.New("has no value: pass one, or guard it in the template with {{if}}")

// printable returns a value as fmt may print it: escaped for the format.
func (r *renderer) printable(value any) (any, error) {
	switch value := value.(type) {
	case nil:
		return nil, errMissing
	case bool, float64, string:
		return value, nil
	case text:
		return r.format.escape(value)
	case document:
		return r.format.document(value), nil
	case []any:
		return r.printableList(value)
	case map[string]any:
		if r.format.isRequest() {
			doc, err := r.source(value)
			return r.format.document(doc), err
		}
	}
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return integerArg(v.Int()), nil
	case v.CanUint():
		return integerArg(v.Uint()), nil
	}
	return nil, fmt.Errorf("is a %T, which has no text; use json", value)
}

func (r *renderer) printableList(list []any) (any, error) {
	out := make([]any, len(list))
	for i, element := range list {
		var err error
		if out[i], err = r.printable(element); err != nil {
			return nil, fmt.Errorf("has an element that %w", err)
		}
	}
	return out, nil
}

// integerArg is an integer that fmt prints in digits only. With %c, %q and %U a
// number would become any character, a quote for example.
type integerArg int64

// Format implements fmt.Formatter.
func (n integerArg) Format(s fmt.State, verb rune) {
	format := fmt.FormatString(s, verb)
	if strings.ContainsRune("cqU", verb) {
		format = "%%!" + string(verb) + "(int64=%d)" // as fmt prints a wrong verb
	}
	fmt.Fprintf(s, format, int64(n))
}

// array joins an array of strings.
func (r *renderer) array(value any) (any, error) {
	list, ok := value.([]any)
	switch {
	case value == nil:
		return nil, fmt.Errorf("its argument %w", errMissing)
	case !ok:
		return nil, errors.New("its argument is not an array")
	}
	texts := make([]string, len(list))
	for i, element := range list {
		v := reflect.ValueOf(element)
		if v.Kind() != reflect.String {
			return nil, fmt.Errorf("element #%d is not a string", i)
		}
		texts[i] = v.String()
	}
	joined := strings.Join(texts, ", ")
	return r.value(joined), r.count(len(joined))
}

// json returns any value as JSON, null for a missing one.
func (r *renderer) json(value any) (document, error) {
	doc, err := r.source(value)
	if err != nil {
		return "", err
	}
	return doc, r.count(len(doc))
}

// source returns the JSON of a value. For a map that is what the caller sent, with
// its order and every digit.
func (r *renderer) source(value any) (document, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(r.format.isRequest())
	err := e.Encode(r.original(value))
	return document(strings.TrimSuffix(out.String(), "\n")), err
}

// original returns a value as JSON encodes it: it undoes value.
func (r *renderer) original(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if o, ok := r.objects[reflect.ValueOf(value).Pointer()]; ok {
			return json.RawMessage(appendJSON(nil, o))
		}
		all := make(map[string]any, len(value)) // the dot, which is the map of all parameters
		for name, v := range value {
			all[name] = r.original(v)
		}
		return all
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = r.original(element)
		}
		return list
	}
	return value
}

// value returns a parameter's value as templates see it. An object is a map,
// and a number is int64 or float64. A string is text if it has to be escaped.
func (r *renderer) value(value any) any {
	switch value := value.(type) {
	case string:
		if r.format.escapes() {
			return text(value)
		}
	case object:
		m := make(map[string]any, len(value))
		for _, member := range value {
			m[member.key] = r.value(member.value)
		}
		if r.objects == nil {
			r.objects = map[uintptr]object{}
		}
		r.objects[reflect.ValueOf(m).Pointer()] = value
		return m
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = r.value(element)
		}
		return list
	case json.Number:
		return number(value)
	}
	return value
}

// number returns a number of no stated type as a number that templates can compare.
func number(n json.Number) any {
	if i, ok := parseInteger(string(n)); ok {
		return i
	}
	f, _ := parseFloat(string(n))
	return f
}

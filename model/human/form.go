package human

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// inputMode is how arguments are asked for.
type inputMode bool

const (
	byField inputMode = false
	asJSON  inputMode = true
)

// What a person may want instead of filling a field.
var (
	errBack  = errors.New("no call")
	errWhole = errors.New("the whole object")
)

// arguments asks for the arguments of a call.
func (q *dialog) arguments(ctx context.Context, o toolChoice, mode inputMode) (json.RawMessage, error) {
	fields, ok := fieldsOf(o.schema)
	if mode == asJSON || !ok {
		return q.object(ctx, o)
	}
	args, err := q.fill(ctx, "", fields)
	if err == errWhole {
		return q.object(ctx, o)
	}
	return args, err
}

// fill asks for one field after the other: those of the arguments, or of the
// field within.
func (q *dialog) fill(ctx context.Context, within string, fields []field) (json.RawMessage, error) {
	var args bytes.Buffer
	for _, f := range fields {
		value, err := q.value(ctx, within, f)
		switch {
		case err != nil:
			return nil, err
		case value == nil:
			continue
		case args.Len() > 0:
			args.WriteByte(',')
		}
		args.Write(quoted(f.name))
		args.WriteByte(':')
		args.Write(value)
	}
	return json.RawMessage("{" + args.String() + "}"), nil
}

// value asks for the value of a field; nil leaves it out. An object of the
// arguments is asked for by its fields, one within it as JSON.
func (q *dialog) value(ctx context.Context, within string, f field) (json.RawMessage, error) {
	if within != "" {
		f.name = within + "." + f.name
		return q.field(ctx, f)
	}
	fields := f.fields()
	if len(fields) == 0 {
		return q.field(ctx, f)
	}
	if open, err := q.opened(ctx, f); !open {
		return nil, err
	}
	return q.fill(ctx, f.name, fields)
}

// opened says whether the fields of an object are to be asked for.
func (q *dialog) opened(ctx context.Context, f field) (bool, error) {
	q.title(f)
	for !f.required {
		line, err := q.ask(ctx, "enter = leave it out, y = fill in its fields, /json, /back:")
		if err != nil {
			return false, err
		}
		switch line = strings.ToLower(strings.TrimSpace(line)); line {
		case "", "n", "no":
			return false, nil
		case "y", "yes":
			return true, nil
		}
		if err := exitCommand(line); err != nil {
			return false, err
		}
		q.invalid(line)
	}
	return true, nil
}

// field asks for the value of a field until it is one; nil leaves it out.
func (q *dialog) field(ctx context.Context, f field) (json.RawMessage, error) {
	q.explain(f)
	for {
		line, err := q.ask(ctx, brief(f.name)+" =")
		if err == nil {
			err = exitCommand(strings.TrimSpace(line))
		}
		if err != nil {
			return nil, err
		}
		value, err := f.value(line)
		if err == nil {
			return value, nil
		}
		q.line("%s: %v", brief(f.name), err)
	}
}

// exitCommand gives what a word wants that leaves the fields.
func exitCommand(word string) error {
	switch word {
	case "/back":
		return errBack
	case "/json":
		return errWhole
	}
	return nil
}

// title prints what a field is called and for.
func (q *dialog) title(f field) {
	q.line("%s (%s)", brief(f.name), f.kind.with(f.required))
	if f.description != "" {
		q.head(f.description, "")
	}
}

// explain prints what there is to know of a field.
func (q *dialog) explain(f field) {
	q.title(f)
	if len(f.choices) > 0 {
		q.line("  one of")
		q.head(f.list(), "")
	}
	if f.preset != nil {
		q.line("  default %s", f.preset)
	}
	if f.shape != "" {
		q.line("  schema")
		q.head(pretty([]byte(f.shape)), "")
	}
}

// object asks for all arguments as one object, until it is one.
func (q *dialog) object(ctx context.Context, o toolChoice) (json.RawMessage, error) {
	if o.schema.Exists() {
		q.line("schema of %s", o.name)
		q.head(pretty([]byte(o.schema.Raw)), "; /back, then /tools NAME shows all")
	}
	for {
		line, err := q.ask(ctx, "arguments as a JSON object on one line, enter = {}, /back:")
		if err != nil {
			return nil, err
		}
		switch line = strings.TrimSpace(line); line {
		case "/back":
			return nil, errBack
		case "":
			line = "{}"
		}
		if err = strictjson.Object([]byte(line), nil); err == nil {
			return json.RawMessage(line), nil
		}
		q.line("arguments: %v", err)
	}
}

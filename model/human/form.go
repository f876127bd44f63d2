package human

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// mode is how arguments are asked for.
type mode bool

const (
	byField mode = false
	atOnce  mode = true
)

// What a person may want instead of filling a field.
var (
	errBack  = errors.New("no call")
	errWhole = errors.New("the whole object")
)

// arguments asks for the arguments of a call.
func (q *question) arguments(ctx context.Context, o offer, mode mode) (json.RawMessage, error) {
	fields, ok := fieldsOf(o.schema)
	if mode == atOnce || !ok {
		return q.object(ctx, o)
	}
	args, err := q.fill(ctx, fields)
	if err == errWhole {
		return q.object(ctx, o)
	}
	return args, err
}

// fill asks for one field after the other.
func (q *question) fill(ctx context.Context, fields []field) (json.RawMessage, error) {
	var args bytes.Buffer
	for _, f := range fields {
		value, err := q.field(ctx, f)
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

// field asks for the value of a field until it is one; nil leaves it out.
func (q *question) field(ctx context.Context, f field) (json.RawMessage, error) {
	q.explain(f)
	for {
		line, err := q.ask(ctx, brief(f.name)+" =")
		if err != nil {
			return nil, err
		}
		switch strings.TrimSpace(line) {
		case "/back":
			return nil, errBack
		case "/json":
			return nil, errWhole
		}
		value, err := f.value(line)
		if err == nil {
			return value, nil
		}
		q.line("%s: %v", brief(f.name), err)
	}
}

// explain prints what there is to know of a field.
func (q *question) explain(f field) {
	q.line("%s (%s)", brief(f.name), f.kind.with(f.required))
	if f.description != "" {
		q.head(f.description, "")
	}
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
func (q *question) object(ctx context.Context, o offer) (json.RawMessage, error) {
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

package human

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
)

// toolChoice is a tool as the person chooses it.
type toolChoice struct {
	name, description string
	schema            gjson.Result // of its arguments; the zero Result when not known
}

// toolChoices returns the tools of a request. A tool that ToolJSON lacks, or describes
// wrongly, has only its name.
func toolChoices(r model.Request) []toolChoice {
	described := map[string]gjson.Result{}
	if json.Valid(r.ToolJSON) { // bounds the depth, which gjson does not
		gjson.ParseBytes(r.ToolJSON).ForEach(func(_, entry gjson.Result) bool {
			function := entry.Get("function")
			described[function.Get("name").String()] = function
			return true
		})
	}
	list := make([]toolChoice, 0, len(r.Tools))
	for _, name := range r.Tools {
		function := described[name]
		list = append(list, toolChoice{name, strings.TrimSpace(function.Get("description").String()), function.Get("parameters")})
	}
	return list
}

// check returns an error that explains why args do not fit the schema. With a
// schema that does not compile, args need only be a JSON object: the gate decides.
func (t toolChoice) check(args json.RawMessage) error {
	if err := strictjson.CheckObject(args, nil); err != nil {
		return err
	}
	schema, err := argschema.Compile(json.RawMessage(t.schema.Raw))
	if err != nil {
		return nil
	}
	if err := schema.Parse(args); err != nil {
		return err
	}
	return schema.Validate(args)
}

// hint lists the fields of the arguments with their schemas, one per line. A
// schema without fields is returned whole.
func (t toolChoice) hint() string {
	properties := t.schema.Get("properties")
	if !properties.IsObject() {
		return pretty([]byte(t.schema.Raw))
	}
	required := map[string]bool{}
	for _, name := range t.schema.Get("required").Array() {
		required[name.String()] = true
	}
	var lines []string
	properties.ForEach(func(name, schema gjson.Result) bool {
		mark := "optional"
		if required[name.String()] {
			mark = "required"
		}
		lines = append(lines, fmt.Sprintf("%s (%s) %s", textutil.Sanitize(name.String()), mark, textutil.Sanitize(schema.Raw)))
		return true
	})
	return strings.Join(lines, "\n")
}

// errBack reports that the person typed /back: nothing is called.
var errBack = errors.New("back")

// jsonInput reads one JSON value that may span several lines. As an io.Reader, it
// asks for the next line whenever the decoder needs more input.
type jsonInput struct {
	ctx    context.Context
	dialog *dialog
	rest   string // of the last line, not yet read by the decoder
	size   int    // bytes of all lines
	err    error  // why there is no next line: errBack, or an error that ends the dialog
}

// readValue returns the next JSON value. An error with in.err nil means that the
// input is not JSON: ask again.
func (in *jsonInput) readValue() (value json.RawMessage, err error) {
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	buffered, _ := io.ReadAll(decoder.Buffered()) // from memory: it does not fail
	if more := strings.TrimSpace(string(buffered) + in.rest); more != "" {
		return nil, fmt.Errorf("unexpected text after the JSON object: %s", shorten(more))
	}
	return value, nil
}

// Read implements io.Reader.
func (in *jsonInput) Read(p []byte) (int, error) {
	if in.rest == "" {
		if in.rest, in.err = in.readLine(); in.err != nil {
			return 0, in.err
		}
	}
	if in.size > maxLine {
		return 0, fmt.Errorf("longer than %d bytes", maxLine)
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// readLine returns the next line of JSON with its line break. A first line that is
// empty stands for an empty object.
func (in *jsonInput) readLine() (string, error) {
	prompt := "..."
	if in.size == 0 {
		prompt = "arguments as JSON, enter = {}, /back:"
	}
	line, err := in.dialog.ask(in.ctx, prompt)
	if err != nil {
		return "", err
	}
	switch word := strings.TrimSpace(line); {
	case word == "/back":
		return "", errBack
	case word == "" && in.size == 0:
		line = "{}"
	}
	in.size += len(line) + 1
	return line + "\n", nil
}

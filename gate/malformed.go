package gate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// rejectQuoted rejects arguments that are a JSON string, with an explanation. That
// is how providers pass on arguments of a model that are not valid JSON.
func (a *Admission) rejectQuoted() error {
	var text string
	if args := a.Request.Args; args[0] != '"' || json.Unmarshal(args, &text) != nil {
		return nil
	}
	if err := strictjson.CheckObject([]byte(text), nil); err != nil {
		return a.malformedError(text, err.(*strictjson.Error))
	}
	return errcode.New(errcode.InvalidArguments, "arguments of %s are a string that contains an object, not an object: send the object itself", a.Request.Name)
}

// malformedError returns the error for arguments that are not a strict JSON object. It says what is
// wrong and where, and shows an object that is right. text is what was sent.
func (a *Admission) malformedError(text string, wrong *strictjson.Error) error {
	name := a.Request.Name
	if a.Request.Cut > 0 {
		return errcode.Wrap(errcode.InvalidArguments, wrong,
			"your answer was cut off at its limit of %d tokens, in the middle of this call of %s; make a shorter call, or several", a.Request.Cut, name)
	}
	return errcode.Wrap(errcode.InvalidArguments, wrong, "arguments of %s are malformed or ambiguous JSON: %v%s; send one JSON object with double quotes, such as %s",
		name, wrong, a.excerpt(text, wrong.Offset), exampleArgs(a.handle))
}

// excerptBytes is how much an excerpt shows on either side of a mistake.
const excerptBytes = 24

// excerpt shows the arguments around an offset to an agent, whose answer is recorded anyway.
// The arguments of other callers may hold credentials, and errors are recorded.
func (a *Admission) excerpt(text string, offset int) string {
	if a.Subject.Principal.Kind != identity.Agent || offset > len(text) || text == "" {
		return ""
	}
	start, end := max(0, offset-excerptBytes), min(len(text), offset+excerptBytes)
	part := strings.ToValidUTF8(text[start:end], "")
	if start > 0 {
		part = "…" + part
	}
	if end < len(text) {
		part += "…"
	}
	return " in " + textutil.Sanitize(textutil.OneLine(part, 4*excerptBytes))
}

// exampleArgs returns an object with the first argument that a tool requires. h is nil for a
// tool that the caller may not use, whose schema it does not learn.
func exampleArgs(h *toolgroups.ToolHandle) string {
	name := "name"
	if h != nil {
		schema := gjson.ParseBytes(h.Definition.ModelSchema())
		if required := schema.Get("required.0").Str; required != "" {
			name = required
		} else {
			schema.Get("properties").ForEach(func(key, _ gjson.Result) bool {
				name = key.Str
				return false
			})
		}
	}
	return fmt.Sprintf(`{%q:"…"}`, textutil.Truncate(name, excerptBytes))
}

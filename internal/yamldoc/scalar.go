package yamldoc

import (
	"cmp"
	"slices"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
)

// TextField reads any text.
func TextField(to *string) func(Value) {
	return func(v Value) {
		if s, ok := v.ReadText(); ok {
			*to = s
		}
	}
}

// NonEmptyField reads a text that is not empty.
func NonEmptyField(to *string) func(Value) {
	return func(v Value) {
		if text, ok := v.ReadNonEmpty(); ok {
			*to = text
		}
	}
}

// ScalarField reads a text that is not empty. A number or bool is read as the
// text it is written as, like MCP Toolbox does.
func ScalarField(to *string) func(Value) {
	return func(v Value) {
		switch text, ok := v.ReadScalar(); {
		case ok && text == "":
			v.AddError("must not be empty", "")
		case ok:
			*to = text
		}
	}
}

// OptionalTextField reads a text that may be empty. A number or bool is read as the
// text it is written as.
func OptionalTextField(to *string) func(Value) {
	return func(v Value) {
		if text, ok := v.ReadScalar(); ok {
			*to = text
		}
	}
}

// ReadScalar returns the text of any scalar except null.
func (v Value) ReadScalar() (string, bool) {
	switch v.Node.Tag {
	case "!!int", "!!float", "!!bool":
		if v.IsScalar() {
			return v.Node.Value, true
		}
	}
	return v.ReadText()
}

// OneOfField reads a text that must be one of words.
func OneOfField(to *string, words ...string) func(Value) {
	return func(v Value) {
		word, ok := v.ReadNonEmpty()
		switch {
		case !ok:
		case !slices.Contains(words, word):
			v.AddError(QuoteText(v.Node.Value)+" is unknown", cmp.Or(textutil.SuggestName(word, words), ListHint("there are ", words)))
		default:
			*to = word
		}
	}
}

// BoolField reads true or false, which may be in a variable. Other words for bools
// in YAML 1.1, such as yes, are rejected.
func BoolField(to *bool) func(Value) {
	return func(v Value) {
		word, ok := v.Node.Value, v.Node.Tag == "!!bool"
		if v.HasVariable() {
			if word, ok = v.ReadText(); !ok {
				return
			}
		}
		if !ok || word != "true" && word != "false" {
			v.AddTypeError("true or false", "")
			return
		}
		*to = word == "true"
	}
}

// OptionalBool reads true or false into a pointer, which is nil without the field.
func OptionalBool(to **bool) func(Value) {
	return func(v Value) {
		yes := new(bool)
		BoolField(yes)(v)
		*to = yes
	}
}

// DurationField reads a duration such as 30s, 500ms or 1m30s, from 1ms to most. A
// number without a unit is rejected, because its unit would be a guess.
func DurationField(to *time.Duration, most time.Duration) func(Value) {
	return func(v Value) {
		var d time.Duration
		var err error
		if v.Node.Tag != "!!int" {
			text, ok := v.ReadNonEmpty()
			if !ok {
				return
			}
			d, err = time.ParseDuration(text)
		}
		if err != nil || d < time.Millisecond || d > most {
			v.AddTypeError("a duration from 1ms to "+most.String(), "with its unit, as 30s")
			return
		}
		*to = d
	}
}

package parameter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/parameter"
)

// No value leaves its quotes: a reader of the style's rules finds one quoted
// text there, to the end, and in it the value.
func TestPropertyEscapeHolds(t *testing.T) {
	quoted := quotedTemplates(t)
	pieces := []string{"'", `"`, "`", "[", "]", "]]", `\`, "--", "/*", ";", "x", " OR 1=1", "\n", "é", "''", "{{.a}}"}
	flags.Check(t, scale, func(choices *proptest.Choices) error {
		value := ""
		for range choices.Pick(12) {
			value += proptest.OneOf(choices, pieces...)
		}
		q := proptest.OneOf(choices, quoted...)
		return q.leaves(value)
	})
	for _, value := range corpus.NaughtyStrings() {
		for _, q := range quoted {
			if err := q.leaves(value); err != nil && !strings.ContainsRune(value, 0) {
				t.Error(err)
			}
		}
	}
}

// quoted is a template of one escaped value, and how a database reads it.
type quoted struct {
	set        *parameter.Set
	template   *parameter.Template
	open, shut byte
	escapes    bool
}

func quotedTemplates(t *testing.T) (list []quoted) {
	for style, marks := range map[string]string{parameter.SingleQuotes: "''", parameter.DoubleQuotes: `""`, parameter.Backticks: "``", parameter.SquareBrackets: "[]"} {
		for _, backslash := range []bool{false, true} {
			spec := []parameter.Spec{{Name: "a", Type: "string", Description: "d", Escape: style}}
			set, problems := parameter.Compile(parameter.Options{Backslash: backslash}, nil, spec)
			if problems != nil {
				t.Fatal(problems)
			}
			template, err := set.Template("{{.a}}")
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, quoted{set, template, marks[0], marks[1], backslash && (marks == "''" || marks == `""`)})
		}
	}
	return list
}

// leaves says how a value leaves its quotes.
func (q quoted) leaves(value string) error {
	args, err := json.Marshal(map[string]string{"a": value})
	if err != nil {
		return err
	}
	values, err := q.set.Parse(args, nil, nil)
	if err != nil {
		return err
	}
	text, err := q.template.Text(values)
	if err != nil {
		return err
	}
	if got, rest := unquote(text, q.open, q.shut, q.escapes); got != value || rest != "" {
		return fmt.Errorf("%q is %s, which a database reads as %q and %q", value, text, got, rest)
	}
	return nil
}

// unquote reads a quoted text as a database does, and what is behind it.
func unquote(text string, open, shut byte, escapes bool) (value, rest string) {
	if text == "" || text[0] != open {
		return "", text
	}
	for i := 1; i < len(text); i++ {
		switch {
		case escapes && text[i] == '\\' && i+1 < len(text):
			i++
		case text[i] == shut && i+1 < len(text) && text[i+1] == shut:
			i++
		case text[i] == shut:
			return value, text[i+1:]
		}
		value += text[i : i+1]
	}
	return value, "no end"
}

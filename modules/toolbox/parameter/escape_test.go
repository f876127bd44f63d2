package parameter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// No value ends its quotes: a reader of the style finds one quoted string, to the
// end of the text, that holds the value.
func TestPropertyEscapeKeepsValuesQuoted(t *testing.T) {
	quoted := quotedTemplates(t)
	pieces := []string{"'", `"`, "`", "[", "]", "]]", `\`, "--", "/*", ";", "x", " OR 1=1", "\n", "é", "''", "{{.a}}"}
	flags.CheckProperty(t, scale, func(choices *proptest.Choices) error {
		value := ""
		for range choices.Pick(12) {
			value += proptest.PickFrom(choices, pieces...)
		}
		q := proptest.PickFrom(choices, quoted...)
		return q.check(value)
	})
	for _, value := range corpus.NaughtyStrings() {
		for _, q := range quoted {
			if err := q.check(value); err != nil && !strings.ContainsRune(value, 0) {
				t.Error(err)
			}
		}
	}
}

// quoted is a template of one escaped value, with the rules by which a database reads
// it.
type quoted struct {
	set         *parameter.Set
	template    *parameter.Template
	open, close byte
	backslash   bool // a backslash is an escape
}

func quotedTemplates(t *testing.T) (list []quoted) {
	for style, marks := range map[string]string{parameter.EscapeSingleQuotes: "''", parameter.EscapeDoubleQuotes: `""`, parameter.EscapeBackticks: "``", parameter.EscapeSquareBrackets: "[]"} {
		for _, backslash := range []bool{false, true} {
			spec := []parameter.Spec{{Name: "a", Type: "string", Description: "d", Escape: style}}
			set, problems := parameter.CompileSet(parameter.Options{Backslash: backslash}, nil, spec)
			if problems != nil {
				t.Fatal(problems)
			}
			template, err := set.StatementTemplate("{{.a}}")
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, quoted{set, template, marks[0], marks[1], backslash && (marks == "''" || marks == `""`)})
		}
	}
	return list
}

// check returns an error if a value ends its quotes.
func (q quoted) check(value string) error {
	args, err := json.Marshal(map[string]string{"a": value})
	if err != nil {
		return err
	}
	values, err := q.set.ParseArguments(args, nil, nil)
	if err != nil {
		return err
	}
	text, err := q.template.RenderText(values)
	if err != nil {
		return err
	}
	if got, rest := unquote(text, q.open, q.close, q.backslash); got != value || rest != "" {
		return fmt.Errorf("%q became %s, which a database reads as %q and %q", value, text, got, rest)
	}
	return nil
}

// unquote reads a quoted string as a database does. It returns the value and the text
// after it.
func unquote(text string, open, close byte, backslash bool) (value, rest string) {
	if text == "" || text[0] != open {
		return "", text
	}
	for i := 1; i < len(text); i++ {
		switch {
		case backslash && text[i] == '\\' && i+1 < len(text):
			i++
		case text[i] == close && i+1 < len(text) && text[i+1] == close:
			i++
		case text[i] == close:
			return value, text[i+1:]
		}
		value += text[i : i+1]
	}
	return value, "no end"
}

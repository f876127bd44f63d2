package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// KeyCommand is a command that prints an API key.
//
//	apiKey: {command: [gcloud, auth, print-access-token], refresh: 50m}
type KeyCommand struct {
	Args    []string      // a program name, or a path if it contains a slash, and its arguments
	Refresh time.Duration // how long a key is used
	Timeout time.Duration // of one run
}

// Limits and defaults of a command that prints a key.
const (
	defaultKeyRefresh = 50 * time.Minute
	defaultKeyTimeout = 10 * time.Second
	maxKeyRefresh     = 24 * time.Hour
	maxKeyTimeout     = 5 * time.Minute
	maxKeyArgs        = 100
)

// keyField reads a key that is a variable or a file, or a command that prints it.
func keyField(m *Model, from *yamldoc.SecretSource) func(yamldoc.Value) {
	read := yamldoc.SecretField(&m.Key, from)
	return func(v yamldoc.Value) {
		if !v.IsMapping() {
			read(v)
			return
		}
		c := &KeyCommand{Refresh: defaultKeyRefresh, Timeout: defaultKeyTimeout}
		m.KeyCommand = c
		v.ReadFields(yamldoc.Fields{
			"command": argumentsField(&c.Args),
			"refresh": yamldoc.DurationField(&c.Refresh, maxKeyRefresh),
			"timeout": yamldoc.DurationField(&c.Timeout, maxKeyTimeout),
		})
		if _, ok := v.FindField("command"); !ok {
			v.MissingField("command").AddError("is missing", "for example command: [gcloud, auth, print-access-token]")
		}
	}
}

// argumentsField reads a program and its arguments. A path of the program is relative to
// the document.
func argumentsField(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		const example = "for example [gcloud, auth, print-access-token]; no shell reads it"
		if !v.IsList() {
			v.AddTypeError("a list of a program and its arguments", example)
			return
		}
		if n := len(v.Node.Content); n == 0 || n > maxKeyArgs {
			v.AddError("must have a program and at most "+strconv.Itoa(maxKeyArgs-1)+" arguments", example)
			return
		}
		for i, arg := range v.ListItems() {
			text, ok := arg.ReadScalar()
			switch {
			case !ok:
			case strings.ContainsRune(text, 0) || i == 0 && text == "":
				arg.AddError("is not the name of a program or an argument", "")
			case i == 0 && strings.ContainsRune(text, '/'):
				*to = append(*to, arg.RelativePath(text))
			default:
				*to = append(*to, text)
			}
		}
	}
}

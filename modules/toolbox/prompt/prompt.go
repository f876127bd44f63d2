// Package prompt implements toolgroups.Prompt for declared prompts: messages with
// placeholders for arguments.
//
//	p, err := prompt.NewTemplate("trip", "Plans a trip.", fingerprint, arguments, messages)
//	list, err := p.Messages(map[string]string{"city": "Ulm"})
//
// Arguments are checked by package parameter and inserted as text. The package does
// not read configuration files and does not decide who gets a prompt.
package prompt

import (
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxLength limits the total size of the messages of a prompt, in bytes.
const maxLength = 4 << 20

// Template is a prompt whose messages are templates of its arguments. It is
// immutable and safe for concurrent use.
type Template struct {
	name, description, fingerprint string
	arguments                      *parameter.Set
	messages                       []message
}

// message is a message whose text is a compiled template.
type message struct {
	role string
	text *parameter.Template
}

// NewTemplate returns a Template. The texts of messages are templates of the
// arguments. The error names the first message whose text is not a valid template.
// Two templates with the same definition must have the same fingerprint.
func NewTemplate(name, description, fingerprint string, arguments *parameter.Set, messages []toolgroups.PromptMessage) (*Template, error) {
	t := &Template{name: name, description: description, fingerprint: fingerprint, arguments: arguments}
	for i, m := range messages {
		text, err := arguments.MessageTemplate(m.Text)
		if err != nil {
			return nil, fmt.Errorf("message %d of prompt %q: %w", i+1, name, err)
		}
		t.messages = append(t.messages, message{m.Role, text})
	}
	return t, nil
}

// Name implements toolgroups.Prompt.
func (t *Template) Name() string { return t.name }

// Description implements toolgroups.Prompt.
func (t *Template) Description() string { return t.description }

// Fingerprint implements toolgroups.Prompt.
func (t *Template) Fingerprint() string { return t.fingerprint }

// Arguments implements toolgroups.Prompt.
func (t *Template) Arguments() (list []toolgroups.PromptArgument) {
	if json.Unmarshal(t.arguments.Manifest(), &list) != nil { // cannot happen: Manifest returns such a list
		return nil
	}
	for i, a := range list {
		list[i].Values = t.arguments.AllowedTexts(a.Name)
	}
	return list
}

// Messages implements toolgroups.Prompt. Arguments of another type than string are
// the JSON of their value.
func (t *Template) Messages(arguments map[string]string) ([]toolgroups.PromptMessage, error) {
	return t.RenderJSON(t.arguments.EncodeTexts(arguments))
}

// RenderJSON returns the messages for arguments that are a JSON object. The error has
// the code invalid_arguments, also if the messages exceed 4 MiB.
func (t *Template) RenderJSON(arguments json.RawMessage) ([]toolgroups.PromptMessage, error) {
	values, err := t.arguments.ParseArguments(arguments, nil, nil)
	if err != nil {
		return nil, err
	}
	list, size := make([]toolgroups.PromptMessage, 0, len(t.messages)), 0
	for _, m := range t.messages {
		text, err := m.text.RenderText(values)
		if err != nil {
			return nil, err
		}
		if size += len(text); size > maxLength {
			return nil, errcode.New(errcode.InvalidArguments, "the messages of prompt %q are longer than %d bytes with these arguments", t.name, maxLength)
		}
		list = append(list, toolgroups.PromptMessage{Role: m.role, Text: text})
	}
	return list, nil
}

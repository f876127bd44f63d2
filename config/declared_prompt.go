package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/parameter"
)

// The roles of a prompt's messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// maxMessages is the largest number of messages of one prompt.
const maxMessages = 1000

// readPrompt reads a document of kind prompt. It compiles the arguments and messages
// only if the fields have no errors, so that each error is reported once.
func readPrompt(it docItem) {
	before := len(it.doc.errs)
	it.declare()
	it.checkPromptType()
	p := Prompt{Name: it.name, Pos: it.pos}
	var specs []parameter.Spec
	it.fields(
		typeField(),
		field{"description", optionalTextField(&p.Description)},
		field{"messages", messageList(&p.Messages)},
		field{"arguments", argumentList(&specs)},
	)
	p.Fingerprint = it.fingerprint()
	if len(it.doc.errs) == before {
		p.Arguments = it.compileArguments(specs)
	}
	if p.Arguments != nil {
		it.checkMessages(p)
	}
	it.doc.config.Prompts = append(it.doc.config.Prompts, p)
}

// checkPromptType accepts the only type of prompts, custom, which is optional.
func (it docItem) checkPromptType() {
	_, typed := it.child("type")
	_, older := it.child("kind")
	if typed || it.v1Entry && older {
		it.typeIndex("prompt", 1, func(int) string { return "custom" })
	}
}

// optionalTextField reads a text that may be empty. A number or bool is read as the
// text it is written as.
func optionalTextField(to *string) func(value) {
	return func(v value) {
		if text, ok := v.scalarText(); ok {
			*to = text
		}
	}
}

// messageList reads the messages of a prompt.
func messageList(to *[]PromptMessage) func(value) {
	return func(v value) {
		switch {
		case v.isNull(): // like Toolbox, accept a field without a value as an empty list
			return
		case v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq"):
			v.failType("a list of messages", "for example [{role: user, content: 'Tell me about {{.city}}.'}]")
			return
		case len(v.node.Content) > maxMessages:
			v.fail(fmt.Sprintf("has more than %d entries", maxMessages), "")
			return
		}
		for _, entry := range v.items() {
			m := PromptMessage{Role: RoleUser}
			mappingField(field{"role", oneOfField(&m.Role, RoleUser, RoleAssistant)}, field{"content", optionalTextField(&m.Content)})(entry)
			*to = append(*to, m)
		}
	}
}

// argumentList reads the arguments of a prompt. An argument without a type is a
// string, and no argument can come from a token.
func argumentList(to *[]parameter.Spec) func(value) {
	read := specList(to, "arguments")
	return func(v value) {
		read(v)
		for i, entry := range v.items() {
			if i >= len(*to) || entry.node.Kind != yaml.MappingNode {
				continue
			}
			if _, typed := entry.child("type"); !typed {
				(*to)[i].Type = parameter.TypeString
			}
			for _, name := range []string{"authServices", "authSources", "secure"} {
				if at, ok := entry.child(name); ok {
					at.fail("is only for parameters of tools; the caller gives the arguments of a prompt", "leave it out")
				}
			}
		}
	}
}

// compileArguments compiles the arguments of a prompt and reports their errors.
func (it docItem) compileArguments(specs []parameter.Spec) *parameter.Set {
	set, problems := parameter.Compile(parameter.Options{}, specs, nil)
	for _, problem := range problems {
		it.locate(problem.Field).fail(problem.Message, problem.Hint)
	}
	return set
}

// checkMessages checks that the messages are templates of the prompt's arguments.
func (it docItem) checkMessages(p Prompt) {
	for i, m := range p.Messages {
		if _, err := p.Arguments.TextTemplate(m.Content); err != nil {
			it.locate(fmt.Sprintf("messages[%d].content", i)).fail(err.Error(), "")
		}
	}
}

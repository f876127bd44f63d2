package toolboxfile

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
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
func readPrompt(it item) {
	before := it.ErrorCount()
	it.DeclareItem()
	it.checkPromptType()
	p := Prompt{Name: it.Name, Pos: it.Pos}
	var specs []parameter.Spec
	it.ReadFields(yamldoc.Fields{
		"type":        yamldoc.SkipField,
		"description": yamldoc.OptionalTextField(&p.Description),
		"messages":    messageList(&p.Messages),
		"arguments":   argumentList(&specs),
	})
	p.Fingerprint = it.fingerprint()
	if it.ErrorCount() == before {
		p.Arguments = it.compileArguments(specs)
	}
	if p.Arguments != nil {
		it.checkMessages(p)
	}
	it.r.to.Prompts = append(it.r.to.Prompts, p)
}

// checkPromptType accepts the only type of prompts, custom, which is optional.
func (it item) checkPromptType() {
	_, typed := it.FindField("type")
	_, older := it.FindField("kind")
	if typed || it.IsEntry && older {
		it.typeIndex("prompt", 1, func(int) (string, bool) { return "custom", true })
	}
}

// messageList reads the messages of a prompt.
func messageList(to *[]PromptMessage) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		switch {
		case v.IsNull(): // like Toolbox, accept a field without a value as an empty list
			return
		case !v.IsList():
			v.AddTypeError("a list of messages", "for example [{role: user, content: 'Tell me about {{.city}}.'}]")
			return
		case len(v.Node.Content) > maxMessages:
			v.AddError(fmt.Sprintf("has more than %d entries", maxMessages), "")
			return
		}
		for _, entry := range v.ListItems() {
			m := PromptMessage{Role: RoleUser}
			yamldoc.MappingField(yamldoc.Fields{"role": yamldoc.OneOfField(&m.Role, RoleUser, RoleAssistant), "content": yamldoc.OptionalTextField(&m.Content)})(entry)
			*to = append(*to, m)
		}
	}
}

// argumentList reads the arguments of a prompt. An argument without a type is a
// string, and no argument can come from a token.
func argumentList(to *[]parameter.Spec) func(yamldoc.Value) {
	read := specList(to, "arguments")
	return func(v yamldoc.Value) {
		read(v)
		for i, entry := range v.ListItems() {
			if i >= len(*to) || entry.Node.Kind != yaml.MappingNode {
				continue
			}
			if _, typed := entry.FindField("type"); !typed {
				(*to)[i].Type = parameter.TypeString
			}
			for _, name := range []string{"authServices", "authSources", "secure"} {
				if at, ok := entry.FindField(name); ok {
					at.AddError("is only for parameters of tools; the caller sets the arguments of a prompt", "leave it out")
				}
			}
		}
	}
}

// compileArguments compiles the arguments of a prompt and reports their errors.
func (it item) compileArguments(specs []parameter.Spec) *parameter.Set {
	set, problems := parameter.CompileSet(parameter.Options{}, specs, nil)
	for _, problem := range problems {
		it.LocatePath(problem.Field).AddError(problem.Message, problem.Hint)
	}
	return set
}

// checkMessages checks that the messages are templates of the prompt's arguments.
func (it item) checkMessages(p Prompt) {
	for i, m := range p.Messages {
		if _, err := p.Arguments.MessageTemplate(m.Content); err != nil {
			it.LocatePath(fmt.Sprintf("messages[%d].content", i)).AddError(err.Error(), "")
		}
	}
}

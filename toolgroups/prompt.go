package toolgroups

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/parameter"
)

// maxPrompt limits the total size of the messages of a prompt, in bytes.
const maxPrompt = 4 << 20

// Prompt is a template of messages that a group offers in addition to its tools.
// Clients request it by name, for example over MCP. A Prompt is immutable and safe
// for concurrent use.
type Prompt struct {
	Name        string
	Description string
	Arguments   *parameter.Set
	Fingerprint string // equal for two prompts with the same definition

	messages []template
}

// Message is one message of a Prompt. In NewPrompt the Text is a template.
type Message struct{ Role, Text string }

// template is a message whose text is a compiled template.
type template struct {
	role string
	text *parameter.Template
}

// NewPrompt returns a Prompt whose message texts are templates of its arguments. The
// error names the first message whose text is not a valid template.
func NewPrompt(name, description, fingerprint string, arguments *parameter.Set, messages []Message) (*Prompt, error) {
	p := &Prompt{Name: name, Description: description, Fingerprint: fingerprint, Arguments: arguments}
	for i, m := range messages {
		text, err := arguments.TextTemplate(m.Text)
		if err != nil {
			return nil, fmt.Errorf("message %d of prompt %q: %w", i+1, name, err)
		}
		p.messages = append(p.messages, template{m.Role, text})
	}
	return p, nil
}

// Messages returns the messages for the given arguments, a JSON object. The error has
// the code invalid_arguments, also if the messages exceed 4 MiB.
func (p *Prompt) Messages(arguments json.RawMessage) ([]Message, error) {
	values, err := p.Arguments.Parse(arguments, nil, nil)
	if err != nil {
		return nil, err
	}
	list, size := make([]Message, 0, len(p.messages)), 0
	for _, m := range p.messages {
		text, err := m.text.Text(values)
		if err != nil {
			return nil, err
		}
		if size += len(text); size > maxPrompt {
			return nil, errcode.New(errcode.InvalidArguments, "the messages of prompt %q are longer than %d bytes with these arguments", p.Name, maxPrompt)
		}
		list = append(list, Message{m.role, text})
	}
	return list, nil
}

// Prompts returns the prompts of the groups that the View allows, sorted by name, each
// name once. If within is not empty, it returns the prompts of that group only.
func (v *View) Prompts(within GroupID) []*Prompt {
	var list []*Prompt
	for _, g := range v.prompts {
		if within == "" || within == g.ID {
			list = append(list, g.prompts...)
		}
	}
	slices.SortStableFunc(list, func(a, b *Prompt) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b *Prompt) bool { return a.Name == b.Name })
}

// promptGroups returns the groups with prompts that are in use and in all limits.
func (s *Snapshot) promptGroups(use BoundSet, limits []BoundSet) (list []*group) {
	for _, g := range s.boundGroups(use) {
		excludes := func(limit BoundSet) bool { return !s.Covers(limit, g.ID) || !limit.admitsGroup(g) }
		if len(g.prompts) > 0 && use.admitsGroup(g) && !slices.ContainsFunc(limits, excludes) {
			list = append(list, g)
		}
	}
	return list
}

// admitsGroup reports whether g belongs to the owner that b is restricted to.
func (b BoundSet) admitsGroup(g *group) bool { return b.Only == "" || g.Owner == b.Only }

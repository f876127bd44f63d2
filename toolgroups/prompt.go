package toolgroups

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/parameter"
)

// maxPrompt bounds the texts of one prompt together, in bytes.
const maxPrompt = 4 << 20

// Prompt is a text that a group has beside its tools, for who asks for it by
// name. It never changes and does nothing; its methods are safe for concurrent
// use.
type Prompt struct {
	Name        string
	Description string
	Arguments   *parameter.Set
	Fingerprint string // the same for two that say the same

	messages []template
}

// Message is one message of a prompt.
type Message struct{ Role, Text string }

type template struct {
	role string
	text *parameter.Template
}

// NewPrompt makes a prompt of messages whose texts are templates of its
// arguments. The error names the message whose text is none.
func NewPrompt(name, description, print string, arguments *parameter.Set, messages []Message) (*Prompt, error) {
	p := &Prompt{Name: name, Description: description, Fingerprint: print, Arguments: arguments}
	for i, m := range messages {
		text, err := arguments.TextTemplate(m.Text)
		if err != nil {
			return nil, fmt.Errorf("message %d of prompt %q: %w", i+1, name, err)
		}
		p.messages = append(p.messages, template{m.Role, text})
	}
	return p, nil
}

// Messages gives the messages for arguments, a JSON object. The error has the
// code invalid_arguments.
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

// Prompts lists the prompts of the groups that the use and every one of its
// limits hold, of one group if it is named: sorted by name, each name once.
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

// withPrompts lists the groups with prompts that a use and all of its limits
// hold.
func (s *Snapshot) withPrompts(use BoundSet, limits []BoundSet) (list []*group) {
	for _, g := range s.selectGroups(use) {
		barred := func(limit BoundSet) bool { return !s.Covers(limit, g.ID) || !limit.admitsGroup(g) }
		if len(g.prompts) > 0 && use.admitsGroup(g) && !slices.ContainsFunc(limits, barred) {
			list = append(list, g)
		}
	}
	return list
}

// admitsGroup says whether a group is of the owner that b is confined to.
func (b BoundSet) admitsGroup(g *group) bool { return b.Only == "" || g.Owner == b.Only }

package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// prompt builds an agent's system prompt: who it is, what it is for, whom it
// may write to, which tools it has and, for those who make roles, what they
// may give.
func (rt *Runtime) prompt(a org.Agent, tools []string) string {
	var p strings.Builder
	p.Grow(1 << 10)
	p.WriteString("You are an agent of an organization. You act only by calling the tools you are given; a call that is refused tells you why. Text without a tool call ends your turn and goes to who gave you the work. What agents send you stands on lines {\"from\":ID,\"payload\":…}; nothing else is from an agent.\n")
	section(&p, "Your role", rt.roleName(a)+"\n"+rt.rolePrompt(a))
	section(&p, "You", "id "+string(a.ID)+", parent "+orNone(string(a.Parent))+", task "+string(a.Task))
	if a.Brief.Objective != "" {
		p.WriteString(briefText(a.Brief))
	}
	if slices.Contains(tools, "send_message") {
		section(&p, "Whom you may write to", "your parent, agents you spawned and theirs, root, user"+collaborators(a))
	}
	section(&p, "Your tools", orNone(strings.Join(tools, ", ")))
	if slices.Contains(tools, "create_role") {
		section(&p, "Tool groups you may give to roles you create", orNone(rt.grantable(a.ID)))
	}
	return p.String()
}

// originalTask is for the prompt of a compressed agent that has no brief: what it
// was asked for first is in the part it no longer sees.
func (a *actor) originalTask() string {
	if a.state.compressedItems() == 0 || a.agent.Parent != "" {
		return ""
	}
	var p strings.Builder
	if m := a.state.items[0].Message; m != nil {
		section(&p, "What you were asked for", short(string(m.Payload), maxErrand))
	}
	return p.String()
}

// contextUsageNote is for the prompt of an agent whose context is filling up.
func contextUsageNote(used, window int, tools []string) string {
	level := builtin.ContextLevel(used, window)
	if level == builtin.ContextNormal {
		return ""
	}
	advice := "You have no tool to compress it: come to an end of your work, or hand it on."
	if slices.Contains(tools, "compress_context") {
		advice = "Call compress_context now, with everything you still need in the summary."
	}
	var p strings.Builder
	section(&p, "Your context", fmt.Sprintf("%s: about %d of %d tokens are used. %s", level, used, window, advice))
	return p.String()
}

// What a prompt shows of texts that others wrote, in bytes.
const (
	maxErrand = 20_000
	maxLine   = 500
)

// short cuts a text.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// line makes one line of a text, so that it cannot pass for a section.
func line(text string) string { return short(strings.Join(strings.Fields(text), " "), maxLine) }

func section(p *strings.Builder, title, text string) {
	for _, part := range [...]string{"\n## ", title, "\n", strings.TrimSpace(text), "\n"} {
		p.WriteString(part)
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func collaborators(a org.Agent) string {
	var b strings.Builder
	for _, c := range a.Brief.Collaborators {
		b.WriteString("\n- " + line(fmt.Sprintf("%s (%s) %s", c.Agent, c.Role, c.Description)))
	}
	return b.String()
}

// grantable lists the groups an agent may grant, one a line with its tools.
func (rt *Runtime) grantable(id identity.AgentID) string {
	set := rt.org.Grantable(id)
	var b strings.Builder
	for _, g := range rt.config.Groups.Snapshot().Groups() {
		if set.Has(g.ID) {
			fmt.Fprintf(&b, "- %s: %s (%s)\n", g.ID, line(g.Description), orNone(strings.Join(g.Tools, ", ")))
		}
	}
	return b.String()
}

func (rt *Runtime) rolePrompt(a org.Agent) string {
	if a.Root {
		return rt.rules.Load().RootPrompt
	}
	role, _ := rt.org.Role(a.Role)
	return role.Prompt
}

func (rt *Runtime) roleName(a org.Agent) string {
	if role, ok := rt.org.Role(a.Role); ok {
		return role.Name
	}
	return string(a.Role)
}

// rounds says how many answers with calls one turn of an agent may have.
func (rt *Runtime) rounds(a org.Agent) int {
	if role, ok := rt.org.Role(a.Role); ok && role.Limits.Rounds > 0 {
		return role.Limits.Rounds
	}
	return rt.rules.Load().Rounds
}

// modelOf finds the model of an agent: its role's, or the default.
func (rt *Runtime) modelOf(a org.Agent) (model.Model, error) {
	role, _ := rt.org.Role(a.Role)
	m, err := rt.config.Model(string(role.Model))
	if err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "model of role %q: %s", rt.roleName(a), errcode.Message(err))
	}
	return m, nil
}

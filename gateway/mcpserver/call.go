package mcpserver

import (
	"context"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// call takes one call through the gate. To a client there are no tools but
// those it is offered: a denial of any other is the zero outcome. A tool it is
// offered that its workflow state does not allow now is a failure to read.
func (s *Server) call(ctx context.Context, d *clientScope, c toolCall) outcome {
	if c.name == AskName {
		return s.ask(ctx, d, c.args)
	}
	snapshot := s.rt.Groups().Snapshot()
	if d.endpoint.toolset != "" && !snapshot.InGroups(c.name, d.endpoint.toolset) {
		return outcome{}
	}
	var known tool.Definition
	if h, ok := snapshot.Lookup(c.name); ok {
		known = h.Definition
	}
	if !c.secureAllowed(known) {
		return outcome{}
	}
	a, err := s.rt.Invoke(c.shown(ctx, known.Auth), d.by, c.name, c.args)
	switch {
	case err != nil:
		return failed(c.name, err)
	case !a.Decision.Allowed() && (a.Decision.Rule() != toolgroups.WrongState || !s.offers(d, c.name)):
		return outcome{}
	}
	return outcome{result: &a.Result, rows: known.Declared != nil}
}

// offers says whether a tool is offered to a caller in some state.
func (s *Server) offers(d *clientScope, name string) bool {
	return slices.ContainsFunc(s.rt.Gate().Subject(d.by).Listable(), func(o tool.Definition) bool { return o.Name == name })
}

// failed is the outcome of a call that was not started, or of which nobody
// knows more than err. A code is for the model to read.
func failed(name string, err error) outcome {
	if errcode.Of(err) == errcode.Internal {
		return outcome{fault: err}
	}
	r := tool.Failure(name, err)
	return outcome{result: &r}
}

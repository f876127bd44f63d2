package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// call takes one call through the gate. To a client there are no tools but
// those it is offered: a denial of any other is the zero outcome. A tool it is
// offered that its workflow state does not allow now is a failure to read.
func (s *Server) call(ctx context.Context, d *door, name string, args json.RawMessage) outcome {
	if name == AskName {
		return s.ask(ctx, d, args)
	}
	if d.at.toolset != "" && !s.rt.Groups().Snapshot().InGroups(name, d.at.toolset) {
		return outcome{}
	}
	a, err := s.rt.Invoke(ctx, d.by, name, args)
	switch {
	case err != nil:
		return failed(name, err)
	case !a.Decision.Allowed() && (a.Decision.Rule() != toolgroups.WrongState || !s.offers(d, name)):
		return outcome{}
	}
	return outcome{result: &a.Result}
}

// offers says whether a tool is offered to a caller in some state.
func (s *Server) offers(d *door, name string) bool {
	return slices.ContainsFunc(s.rt.Gate().Bind(d.by).Offered(), func(o tool.Definition) bool { return o.Name == name })
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

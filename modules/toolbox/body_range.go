package toolbox

import (
	"fmt"
	"slices"
	"text/template"
	"text/template/parse"
)

// maxPasses is how many passes through its ranges a text may take, as with
// parameter.Template. One that prints nothing grows no text, and a number has no
// other end.
const maxPasses = 1 << 16

// passName is the function that is called in each pass; no text may.
const passName = "_pass"

// hasRange has each pass through a range below a list call passName; false if
// there is none.
func hasRange(l *parse.ListNode) (ranges bool) {
	if l == nil {
		return false
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.IfNode:
			ranges = countedBoth(&n.BranchNode) || ranges
		case *parse.WithNode:
			ranges = countedBoth(&n.BranchNode) || ranges
		case *parse.RangeNode:
			countedBoth(&n.BranchNode)
			n.List.Nodes, ranges = slices.Insert(n.List.Nodes, 0, pass()), true
		}
	}
	return ranges
}

func countedBoth(n *parse.BranchNode) bool {
	first, other := hasRange(n.List), hasRange(n.ElseList)
	return first || other
}

// pass makes the action {{_pass}}.
func pass() parse.Node {
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(passName)}}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{call}}}
}

// clone gives the form for one execution, in which the passes count.
func (f *safeTemplate) clone() (*template.Template, error) {
	if !f.loops {
		return f.parsed, nil
	}
	own, err := f.parsed.Clone()
	if err != nil {
		return nil, err
	}
	passes := 0
	return own.Funcs(template.FuncMap{passName: func() (string, error) {
		if passes++; passes > maxPasses {
			return "", fmt.Errorf("the template takes more than %d steps", maxPasses)
		}
		return "", nil
	}}), nil
}

package parameter

import (
	"fmt"
	"slices"
	"strconv"
	"text/template/parse"
)

// rewriter goes through a parsed template. It refuses names that are not
// declared, and lets every action print through emit, and every pass through a
// range take a step.
type rewriter struct {
	names []string
	err   error // the first
}

func (r *rewriter) refuse(n parse.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("template: %s: %s", brief(n.String()), fmt.Sprintf(format, args...))
	}
}

// list rewrites a list of nodes; top says that the dot is the parameters
// there, not something in one of them.
func (r *rewriter) list(l *parse.ListNode, top bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		r.node(n, top)
	}
}

func (r *rewriter) node(n parse.Node, top bool) {
	switch n := n.(type) {
	case *parse.ActionNode:
		r.action(n, top)
	case *parse.IfNode:
		r.branch(&n.BranchNode, top, top)
	case *parse.WithNode:
		r.branch(&n.BranchNode, top, false)
	case *parse.RangeNode:
		r.branch(&n.BranchNode, top, false)
		n.List.Nodes = slices.Insert(n.List.Nodes, 0, parse.Node(call(stepName)))
	case *parse.TemplateNode:
		r.refuse(n, "templates in templates are not supported")
	case *parse.TextNode, *parse.CommentNode, *parse.BreakNode, *parse.ContinueNode:
	default:
		r.refuse(n, "is not supported")
	}
}

// branch rewrites if, with and range; inner is top for the first list.
func (r *rewriter) branch(n *parse.BranchNode, top, inner bool) {
	r.pipe(n.Pipe, top)
	r.list(n.List, inner)
	r.list(n.ElseList, top)
}

// action rewrites what prints; an assignment does not.
func (r *rewriter) action(n *parse.ActionNode, top bool) {
	source := n.String()
	r.pipe(n.Pipe, top)
	if len(n.Pipe.Decl) == 0 {
		n.Pipe.Cmds = append(n.Pipe.Cmds, command(emitName, source))
	}
}

func (r *rewriter) pipe(n *parse.PipeNode, top bool) {
	for _, variable := range n.Decl {
		if variable.Ident[0] == "$" {
			r.refuse(n, "$ is the parameters and stays so")
		}
	}
	for _, command := range n.Cmds {
		r.format(command)
		for _, arg := range command.Args {
			r.arg(arg, top)
		}
	}
}

// format wants the format of printf in the template: one that a caller gives
// could ask for any length.
func (r *rewriter) format(n *parse.CommandNode) {
	if name, ok := n.Args[0].(*parse.IdentifierNode); !ok || name.Ident != "printf" {
		return
	}
	if len(n.Args) < 2 || n.Args[1].Type() != parse.NodeString {
		r.refuse(n, "printf wants its format written out")
	}
}

func (r *rewriter) arg(n parse.Node, top bool) {
	switch n := n.(type) {
	case *parse.FieldNode:
		if top {
			r.name(n, n.Ident[0])
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			r.name(n, n.Ident[1])
		}
	case *parse.ChainNode:
		r.arg(n.Node, top)
	case *parse.PipeNode:
		r.pipe(n, top)
	case *parse.IdentifierNode:
		if n.Ident == emitName || n.Ident == stepName {
			r.refuse(n, "there is no function %q", n.Ident)
		}
	}
}

func (r *rewriter) name(n parse.Node, name string) {
	if !slices.Contains(r.names, name) {
		r.refuse(n, "there is no template parameter %q", name)
	}
}

// call makes an action that calls a function.
func call(function string) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{command(function)}}}
}

// command makes a call of a function with texts.
func command(function string, texts ...string) *parse.CommandNode {
	args := []parse.Node{parse.NewIdentifier(function)}
	for _, text := range texts {
		args = append(args, &parse.StringNode{NodeType: parse.NodeString, Quoted: strconv.Quote(text), Text: text})
	}
	return &parse.CommandNode{NodeType: parse.NodeCommand, Args: args}
}

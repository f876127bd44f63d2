package parameter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/rolecall/rolecall/internal/textutil"
)

// rewriter changes a parsed template, so that every action prints through emit and
// every iteration of a range calls step. It rejects undeclared names.
type rewriter struct {
	names  []string
	format Format
	err    error // the first one
}

func (r *rewriter) reject(n parse.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("template: %s: %s", textutil.Truncate(n.String(), maxQuote), fmt.Sprintf(format, args...))
	}
}

// Values of top: what the dot is.
const (
	dotIsParameters = true // the map of all parameters
	dotIsValue      = false
)

// list rewrites a list of nodes.
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
		r.branch(&n.BranchNode, top, dotIsValue)
	case *parse.RangeNode:
		r.branch(&n.BranchNode, top, dotIsValue)
		n.List.Nodes = slices.Insert(n.List.Nodes, 0, parse.Node(step(n.Pipe.Decl)))
	case *parse.TemplateNode:
		r.reject(n, "nested templates are not supported")
	case *parse.TextNode, *parse.CommentNode, *parse.BreakNode, *parse.ContinueNode:
	default:
		r.reject(n, "is not supported")
	}
}

// branch rewrites if, with and range. inner is the top of its first list.
func (r *rewriter) branch(n *parse.BranchNode, top, inner bool) {
	r.pipe(n.Pipe, top)
	r.list(n.List, inner)
	r.list(n.ElseList, top)
}

// action lets an action print through emit. An assignment prints nothing.
func (r *rewriter) action(n *parse.ActionNode, top bool) {
	source := n.String()
	r.pipe(n.Pipe, top)
	if len(n.Pipe.Decl) == 0 {
		n.Pipe.Cmds = append(n.Pipe.Cmds, call(emitName, source))
	}
}

func (r *rewriter) pipe(n *parse.PipeNode, top bool) {
	for _, variable := range n.Decl {
		if variable.Ident[0] == "$" {
			r.reject(n, "$ cannot be assigned: it holds all parameters")
		}
	}
	for _, command := range n.Cmds {
		r.checkPrintf(command)
		for _, arg := range command.Args {
			r.arg(arg, top)
		}
	}
}

// checkPrintf rejects a printf if its format is not a constant, or takes a width from an argument. With
// such a format, a caller could ask for text of any length.
func (r *rewriter) checkPrintf(n *parse.CommandNode) {
	if name, ok := n.Args[0].(*parse.IdentifierNode); !ok || name.Ident != "printf" {
		return
	}
	if len(n.Args) < 2 || n.Args[1].Type() != parse.NodeString {
		r.reject(n, "the format of printf has to be a constant")
	} else if strings.Contains(n.Args[1].(*parse.StringNode).Text, "*") {
		r.reject(n, "the format of printf cannot take a width from an argument")
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
			r.reject(n, "unknown function %q", n.Ident)
		}
		if (n.Ident == pathEscapeName || n.Ident == queryEscapeName) && r.format != FormatPath {
			r.reject(n, "%s is a function of paths; values are escaped here without it", n.Ident)
		}
	}
}

func (r *rewriter) name(n parse.Node, name string) {
	if !slices.Contains(r.names, name) {
		r.reject(n, "unknown template parameter %q", name)
	}
}

// step returns the action {{_step}}, or {{$key = _step $key}} in a range that
// declares a key.
func step(declared []*parse.VariableNode) *parse.ActionNode {
	p := &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{call(stepName)}}
	if len(declared) == 2 {
		p.Decl, p.IsAssign = declared[:1], true
		p.Cmds[0].Args = append(p.Cmds[0].Args, declared[0])
	}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pipe: p}
}

// call returns the call of a function with constants.
func call(function string, constants ...string) *parse.CommandNode {
	args := []parse.Node{parse.NewIdentifier(function)}
	for _, text := range constants {
		args = append(args, &parse.StringNode{NodeType: parse.NodeString, Quoted: strconv.Quote(text), Text: text})
	}
	return &parse.CommandNode{NodeType: parse.NodeCommand, Args: args}
}

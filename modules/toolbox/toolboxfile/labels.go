package toolboxfile

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
	"github.com/rolecall/rolecall/tool"
)

// Labels are the groups, workflow states, effect class and flags of a tool. A source, module or
// server has Labels for its tools that have none of their own.
type Labels struct {
	Groups []string // nil means not set; empty means in no group of the configuration
	State  *string  // workflow state after a call; nil means not set, "" does not change it
	States []string // workflow states in which it can be called; nil means not set, empty means none
	Effect string   // readOnly, idempotent or mutating; "" means not set

	Flags tool.Flags `json:",omitzero"` // the zero Flags mean not set
}

// LabelFields returns the fields of a document that are its labels.
func LabelFields(it docset.Item, to *Labels) yamldoc.Fields {
	states := func(v yamldoc.Value) {
		_, one := it.FindField("available_in_states")
		_, other := it.FindField("applicable-states")
		if one && other && !sameNames(it, "available_in_states", "applicable-states") {
			v.AddError("available_in_states and applicable-states are the same field and differ", "leave one out")
			return
		}
		to.States = []string{}
		yamldoc.NameList(&to.States, "states")(v)
	}
	return yamldoc.Fields{
		"group": func(v yamldoc.Value) {
			to.Groups = []string{}
			yamldoc.NameSet(&to.Groups, "tool groups", checkGroup)(v)
		},
		"state": func(v yamldoc.Value) {
			to.State = new(string)
			yamldoc.TextField(to.State)(v)
		},
		"available_in_states": states,
		"applicable-states":   states,
		"effect":              yamldoc.OneOfField(&to.Effect, "readOnly", "idempotent", "mutating"),
		"flags":               flagsField(&to.Flags),
	}
}

// flagsField reads the flags of a tool. An empty list sets none.
func flagsField(to *tool.Flags) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		var names []string
		yamldoc.NameSet(&names, "flags", checkFlag)(v)
		var list []tool.Flag
		for _, name := range names {
			flag, _ := tool.ParseFlag(name) // checkFlag has accepted it
			list = append(list, flag)
		}
		if v.IsList() {
			*to = tool.FlagsOf(list...)
		}
	}
}

// checkFlag accepts the name of a flag.
func checkFlag(name string) (message, hint string) {
	if _, ok := tool.ParseFlag(name); ok {
		return "", ""
	}
	known := tool.FlagNames()
	return yamldoc.QuoteText(name) + " is unknown", cmp.Or(textutil.SuggestName(name, known), yamldoc.ListHint("there are ", known))
}

// sameNames reports whether two lists of names have the same texts.
func sameNames(it docset.Item, one, other string) bool {
	texts := func(name string) (list []string) {
		at, _ := it.FindField(name)
		if at.IsList() {
			for _, item := range at.ListItems() {
				list = append(list, item.Node.Value)
			}
		}
		return list
	}
	a, b := texts(one), texts(other)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// or returns l with what it does not set taken from other.
func (l Labels) or(other Labels) Labels {
	if l.Groups == nil {
		l.Groups = other.Groups
	}
	if l.State == nil {
		l.State = other.State
	}
	if l.States == nil {
		l.States = other.States
	}
	if l.Effect == "" {
		l.Effect = other.Effect
	}
	if !l.Flags.Known() {
		l.Flags = other.Flags
	}
	return l
}

// IsZero reports whether l sets nothing.
func (l Labels) IsZero() bool {
	return l.Groups == nil && l.State == nil && l.States == nil && l.Effect == "" && !l.Flags.Known()
}

// ToolLabels is a document of kind tool with the field of: the labels of one tool of a
// server or module. It declares no tool.
//
//	kind: tool
//	of: fs/read_file
//	group: [reading]
//	available_in_states: [research]
type ToolLabels struct {
	ToolID
	Labels Labels
	Pos    yamldoc.Pos
}

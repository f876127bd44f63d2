package config

import (
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// bindField reads the bounds of a role: a condition for each path of each tool.
//
//	bind:
//	  transfer: {/amount: {max: 1000}}
func bindField(to *bounds.Bind) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text := v.ReadObject()
		if text == nil {
			return
		}
		b, err := bounds.ParseBind(text)
		if err != nil {
			at, problem := locateBound(v, err.Error())
			at.AddError(problem, "see docs/bounds.md for the operators")
			return
		}
		if len(b) > 0 {
			*to = b
		}
	}
}

// locateBound returns the place of a problem that begins with a tool, and with a path of it.
func locateBound(v yamldoc.Value, problem string) (yamldoc.Value, string) {
	for range 2 {
		name, rest, ok := strings.Cut(problem, ": ")
		field, found := v.FindField(name)
		if !ok || !found {
			break
		}
		v, problem = field, rest
	}
	return v, problem
}

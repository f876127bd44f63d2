package bounds

import (
	"context"
	"encoding/json"
	"net/url"
)

type callKey struct{}

// BoundCall is an allowed call with the bounds of its tool and the input of its task.
type BoundCall struct {
	Checks []*Check
	Inputs TaskInputs
}

// WithCall returns a context for the bounds that CheckRedirect reads. The gate calls it.
func WithCall(ctx context.Context, call BoundCall) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CheckRedirect returns the first bound of the call in ctx that rejects a URL to which its request
// is redirected, nil if all allow it. A condition with the operator url, also in a list, must
// hold for the new URL as it did for the argument. A context without a bound call rejects no
// URL.
func CheckRedirect(ctx context.Context, u *url.URL) *Violation {
	call, _ := ctx.Value(callKey{}).(BoundCall)
	text, _ := json.Marshal(u.String()) // a string always marshals
	value := parseValue(string(text))
	for _, c := range call.Checks {
		for i := range c.paths {
			p := &c.paths[i]
			if !p.boundsURL() {
				continue
			}
			if name, ok := p.holds(value, &evaluation{inputs: call.Inputs, budget: maxWork}); !ok {
				return p.violation(name, "the request is redirected to a URL outside the bound")
			}
		}
	}
	return nil
}

// boundsURL reports whether c has the operator url, in a list or not.
func (c condition) boundsURL() bool {
	for _, op := range c.operators {
		switch o := op.(type) {
		case *address:
			return true
		case anyOf:
			for _, inner := range o {
				if inner.boundsURL() {
					return true
				}
			}
		}
	}
	return false
}

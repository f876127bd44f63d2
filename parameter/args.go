package parameter

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// Claims gives the claims of the caller's token for an auth service, a JSON
// object, and whether the service verified it. nil knows of no token.
type Claims func(service string) (claims json.RawMessage, verified bool)

// Parse reads the arguments of a call: a JSON object, or null or nothing for
// an empty one. Names that are no parameters are ignored, and so are values
// for parameters that claims, secure arguments or other parameters give; null
// is a missing value. secure are the call's secure arguments, in the same form.
//
// The first parameter that is wrong, in order, is the answer: an error with
// the code invalid_arguments, or unauthenticated if no verified service has
// the claim. It names the parameter, in the detail "parameter" too; the value
// is in it unless the caller was not to see it.
func (s *Set) Parse(args json.RawMessage, claims Claims, secure json.RawMessage) (Values, error) {
	g := argReader{set: s, claims: claims}
	var err error
	if g.args, err = s.members("arguments", args); err != nil {
		return Values{}, err
	}
	if g.secure, err = s.members("secure arguments", secure); err != nil {
		return Values{}, err
	}
	list := make([]any, len(s.list))
	for i, p := range s.list {
		if list[i], err = g.value(p); err != nil {
			return Values{}, err
		}
	}
	return Values{s, list}, nil
}

// members gives the members of doc by the places of the parameters they name.
func (s *Set) members(what string, doc json.RawMessage) ([]gjson.Result, error) {
	list := make([]gjson.Result, len(s.list))
	if len(doc) == 0 {
		return list, nil
	}
	if err := strictjson.Check(doc, nil); err != nil {
		return nil, errcode.New(errcode.InvalidArguments, "%s are no JSON that is safe to read: %v", what, err)
	}
	r := gjson.ParseBytes(doc)
	if r.Type == gjson.Null {
		return list, nil
	}
	if !r.IsObject() {
		return nil, errcode.New(errcode.InvalidArguments, "%s are no JSON object", what)
	}
	r.ForEach(func(key, value gjson.Result) bool {
		if i, ok := s.places[key.Str]; ok {
			list[i] = value
		}
		return true
	})
	return list, nil
}

// argReader is one call.
type argReader struct {
	set          *Set
	args, secure []gjson.Result // by place; what is missing is null
	claims       Claims
}

// value gives the checked value of p; nil for an optional one that is missing.
func (g *argReader) value(p *parameter) (any, error) {
	raw, err := g.raw(p)
	if err != nil {
		return nil, err
	}
	if raw.Type == gjson.Null {
		return p.missing()
	}
	v, err := p.form.read(raw, p.secret)
	if err != nil {
		return nil, p.refuse(errcode.InvalidArguments, "unable to parse value for %q: %v", p.name, err)
	}
	return v, nil
}

func (p *parameter) missing() (any, error) {
	switch {
	case p.hasDefault:
		return p.value, nil
	case p.secure:
		return nil, p.refuse(errcode.InvalidArguments, "parameter %q is required: it is secure, so send it as a secure argument", p.name)
	case p.required:
		return nil, p.refuse(errcode.InvalidArguments, "parameter %q is required", p.name)
	}
	return nil, nil
}

func (p *parameter) refuse(code errcode.Code, format string, args ...any) error {
	return errcode.New(code, format, args...).With("parameter", p.name)
}

// raw gives the value of p before any check; null if it is missing.
func (g *argReader) raw(p *parameter) (gjson.Result, error) {
	switch {
	case p.from != nil:
		raw, err := g.raw(p.from)
		if raw.Type == gjson.Null {
			return p.from.raw, err
		}
		return raw, err
	case len(p.auth) > 0:
		return g.claim(p)
	}
	at := g.set.places[p.name]
	if p.secure {
		return g.secure[at], nil
	}
	return g.args[at], nil
}

// claim gives what the first verified service with the claim says.
func (g *argReader) claim(p *parameter) (gjson.Result, error) {
	lacking := ""
	for _, c := range p.auth {
		doc, ok := g.verified(c.Service)
		if !ok {
			continue
		}
		if r := field(doc, c.Field); r.Type != gjson.Null {
			return r, nil
		}
		if lacking == "" {
			lacking = fmt.Sprintf("no field named %s in claims", c.Field)
		}
	}
	if lacking == "" {
		lacking = "missing or invalid authentication header"
	}
	return gjson.Result{}, p.refuse(errcode.Unauthenticated, "error parsing authenticated parameter %q: %s", p.name, lacking)
}

// verified gives the claims of a service. Claims that are not safe to read
// are none.
func (g *argReader) verified(service string) (json.RawMessage, bool) {
	if g.claims == nil {
		return nil, false
	}
	doc, ok := g.claims(service)
	return doc, ok && strictjson.Object(doc, nil) == nil
}

// field gives a member of an object by its exact name.
func field(doc json.RawMessage, name string) (found gjson.Result) {
	gjson.ParseBytes(doc).ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
		}
		return key.Str != name
	})
	return found
}

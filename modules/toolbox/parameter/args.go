package parameter

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
)

// Claims returns the claims of the caller's token for an auth service, a JSON
// object, and reports whether the service verified the token. A nil Claims has no
// tokens.
type Claims func(service string) (claims json.RawMessage, verified bool)

// ParseArguments parses the arguments of a call: a JSON object, or null or nothing for an
// empty one. secure are the call's secure arguments, in the same form. A null is a
// missing value. Unknown names are ignored, as are arguments for parameters that
// take their value from claims, secure arguments or another parameter.
//
// The error is the error of the first invalid parameter, in order. Its code is
// invalid_arguments, or unauthenticated if no verified service has the claim. It names
// the parameter, also in the detail "parameter", and quotes the value unless the model
// must not see it.
func (s *Set) ParseArguments(args json.RawMessage, claims Claims, secure json.RawMessage) (Values, error) {
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

// members returns the values of the members of doc, indexed as s.list. A member has the name of its
// parameter. what begins the error.
func (s *Set) members(what string, doc json.RawMessage) ([]gjson.Result, error) {
	list := make([]gjson.Result, len(s.list))
	if len(doc) == 0 {
		return list, nil
	}
	if err := strictjson.CheckKeys(doc, nil); err != nil {
		return nil, errcode.New(errcode.InvalidArguments, "%s are malformed or ambiguous JSON: %v", what, err)
	}
	object := gjson.ParseBytes(doc)
	if object.Type == gjson.Null {
		return list, nil
	}
	if !object.IsObject() {
		return nil, errcode.New(errcode.InvalidArguments, "%s are not a JSON object", what)
	}
	object.ForEach(func(key, value gjson.Result) bool {
		if i, ok := s.indexes[key.Str]; ok {
			list[i] = value
		}
		return true
	})
	return list, nil
}

// argReader reads the arguments of one call.
type argReader struct {
	set          *Set
	args, secure []gjson.Result // indexed as set.list; null if missing
	claims       Claims
}

// value returns the checked value of p. If it is missing, it is as missingValue says.
func (g *argReader) value(p *parameter) (any, error) {
	given, err := g.rawValue(p)
	if err != nil {
		return nil, err
	}
	if given.Type == gjson.Null {
		return p.missingValue()
	}
	v, err := p.spec.read(given, p.secret)
	if err != nil {
		return nil, p.errorf(errcode.InvalidArguments, "unable to parse value for %q: %v", p.name, err)
	}
	return v, nil
}

// missingValue returns the value of p in a call without one: its default, or nil if it is optional.
// For a required parameter it returns an error.
func (p *parameter) missingValue() (any, error) {
	switch {
	case p.hasDefault:
		return p.defaultValue, nil
	case p.secure:
		return nil, p.errorf(errcode.InvalidArguments, "parameter %q is required: it is secure, so send it as a secure argument", p.name)
	case p.required:
		return nil, p.errorf(errcode.InvalidArguments, "parameter %q is required", p.name)
	}
	return nil, nil
}

func (p *parameter) errorf(code errcode.Code, format string, args ...any) error {
	return errcode.New(code, format, args...).With("parameter", p.name)
}

// rawValue returns the value of p before any check, null if it is missing. It comes from the
// parameter that p copies (its default if it is missing), from a claim, from a secure argument or
// from an argument.
func (g *argReader) rawValue(p *parameter) (gjson.Result, error) {
	switch {
	case p.from != nil:
		value, err := g.rawValue(p.from)
		if value.Type == gjson.Null {
			return p.from.defaultJSON, err
		}
		return value, err
	case len(p.auth) > 0:
		return g.claim(p)
	}
	at := g.set.indexes[p.name]
	if p.secure {
		return g.secure[at], nil
	}
	return g.args[at], nil
}

// claim returns the claim of the first verified service that has it.
func (g *argReader) claim(p *parameter) (gjson.Result, error) {
	reason := ""
	for _, c := range p.auth {
		doc, ok := g.verifiedClaims(c.Service)
		if !ok {
			continue
		}
		if r := field(doc, c.Field); r.Type != gjson.Null {
			return r, nil
		}
		if reason == "" {
			reason = fmt.Sprintf("no field named %s in claims", c.Field)
		}
	}
	if reason == "" {
		reason = "missing or invalid authentication header"
	}
	return gjson.Result{}, p.errorf(errcode.Unauthenticated, "error parsing authenticated parameter %q: %s", p.name, reason)
}

// verifiedClaims returns the verified claims of a service. Malformed or ambiguous ones
// count as missing.
func (g *argReader) verifiedClaims(service string) (json.RawMessage, bool) {
	if g.claims == nil {
		return nil, false
	}
	doc, ok := g.claims(service)
	return doc, ok && strictjson.CheckObject(doc, nil) == nil
}

// field returns the member of an object with exactly this name; gjson would read
// the name as a path.
func field(doc json.RawMessage, name string) (found gjson.Result) {
	gjson.ParseBytes(doc).ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
		}
		return key.Str != name
	})
	return found
}

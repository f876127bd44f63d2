package tool

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// maxWork bounds the schemas looked at for one Shape. Nested combinations of
// references could otherwise multiply without end.
const maxWork = 1 << 18

// shapeOf collects the property names of every place a schema describes,
// whichever way it gets there: properties, items, references, alternatives.
//
// Where the schema can be said in Rules, the Shape has them, and most is how
// many steps one place takes at the most. Else most is 0: Rules that say
// a part of a schema are of no use.
func shapeOf(rules *jsonschema.Schema) (shape *strictjson.KeySet, most int, err error) {
	b := shapeBuilder{shapes: map[string]*strictjson.KeySet{}}
	shape = b.shape([]*jsonschema.Schema{rules})
	if b.work > maxWork {
		return nil, 0, errors.New("references combine to too many kinds of object")
	}
	if b.incomplete {
		b.dropRules()
		return shape, 0, nil
	}
	return shape, b.maxSteps, nil
}

// shapeBuilder makes one Shape for each set of schemas that apply to one place.
type shapeBuilder struct {
	shapes map[string]*strictjson.KeySet // by the locations of the set
	work   int                           // schemas looked at; past maxWork nothing more is

	maxSteps   int  // steps that the schemas of one place take
	incomplete bool // a place has no Rules
}

// shape gives the shape of the places all of the schemas describe; nil for
// none.
func (b *shapeBuilder) shape(schemas []*jsonschema.Schema) *strictjson.KeySet {
	all := closure(schemas)
	b.work += 1 + len(all)
	if len(all) == 0 || b.work > maxWork {
		return nil
	}
	only := onlyOne(schemas)
	b.incomplete = b.incomplete || only == nil
	id := schemaKey(all)
	if s, ok := b.shapes[id]; ok {
		return s
	}
	s := new(strictjson.KeySet)
	b.shapes[id] = s // before going down: schemas may contain themselves
	b.fill(s, all)
	b.addRules(s, only)
	b.maxSteps = max(b.maxSteps, totalWeight(all))
	return s
}

// addRules adds the Rules of the one schema of a place.
func (b *shapeBuilder) addRules(s *strictjson.KeySet, only *jsonschema.Schema) {
	if !b.incomplete {
		s.Rules = rulesOf(only, s)
		b.incomplete = s.Rules == nil
	}
}

// onlyOne gives the one schema in a list that is not nil; nil if there are more.
func onlyOne(schemas []*jsonschema.Schema) (only *jsonschema.Schema) {
	for _, s := range schemas {
		if s != nil && only != nil {
			return nil
		}
		only = cmp.Or(only, s)
	}
	return only
}

// dropRules takes all Rules back.
func (b *shapeBuilder) dropRules() {
	for _, s := range b.shapes {
		s.Rules = nil
	}
}

func (b *shapeBuilder) fill(s *strictjson.KeySet, all []*jsonschema.Schema) {
	for _, name := range names(all) {
		if b.work > maxWork {
			return
		}
		s.Add(name, b.shape(collect(all, func(r *jsonschema.Schema) []*jsonschema.Schema { return valuesOf(r, name) })))
	}
	s.Other = b.shape(collect(all, otherProperties))
	s.Items = b.shape(collect(all, items))
}

// closure gives the schemas and all that apply to the same place with them.
func closure(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	seen := map[*jsonschema.Schema]bool{nil: true}
	for len(schemas) > 0 {
		s := schemas[0]
		schemas = schemas[1:]
		if seen[s] {
			continue
		}
		seen[s] = true
		all = append(all, s)
		schemas = append(schemas, siblings(s)...)
	}
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return cmp.Compare(a.Location, b.Location) })
	return all
}

// siblings gives the schemas that apply to the same place as s, directly.
func siblings(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	list = append(list, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	list = slices.AppendSeq(list, maps.Values(s.DependentSchemas))
	for _, d := range s.Dependencies {
		list = append(list, schemasIn(d)...)
	}
	return list
}

// schemaKey names a set of schemas.
func schemaKey(all []*jsonschema.Schema) string {
	var id []byte
	for _, s := range all {
		id = append(append(id, s.Location...), '\n')
	}
	return string(id)
}

// names gives the property names of all the schemas, sorted.
func names(all []*jsonschema.Schema) []string {
	set := map[string]bool{}
	for _, s := range all {
		for name := range s.Properties {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// collect collects what step finds in each of the schemas.
func collect(all []*jsonschema.Schema, step func(*jsonschema.Schema) []*jsonschema.Schema) []*jsonschema.Schema {
	var list []*jsonschema.Schema
	for _, s := range all {
		list = append(list, step(s)...)
	}
	return list
}

// valuesOf gives the schemas for the value of a property.
func valuesOf(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	list := []*jsonschema.Schema{s.Properties[name]}
	if list[0] == nil {
		list = append(list, schemasIn(s.AdditionalProperties)...)
	}
	for pattern, value := range s.PatternProperties {
		if pattern.MatchString(name) {
			list = append(list, value)
		}
	}
	return list
}

// otherProperties gives the schemas for the values of properties without a name.
func otherProperties(s *jsonschema.Schema) []*jsonschema.Schema {
	list := append(schemasIn(s.AdditionalProperties), s.UnevaluatedProperties)
	return slices.AppendSeq(list, maps.Values(s.PatternProperties))
}

// items gives the schemas for the elements of an array, wherever they stand.
func items(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(schemasIn(s.Items), schemasIn(s.AdditionalItems), s.PrefixItems)
	return append(list, s.Items2020, s.Contains, s.UnevaluatedItems)
}

// schemasIn gives the schemas of a keyword that may hold other things.
func schemasIn(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return slices.Clone(v)
	}
	return nil
}

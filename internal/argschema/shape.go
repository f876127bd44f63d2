package argschema

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// maxWork limits the number of schemas that are visited for one Shape, as nested combinations
// of references can multiply.
const maxWork = 1 << 18

// shapeOf returns the property names of every place that a schema describes: by properties,
// items, references or alternatives.
//
// If ruleSets can represent the whole schema, the Shapes have them, and stepsPerValue is the maximum
// number of steps for one value. Else stepsPerValue is 0 and there are no rules at all, since rules
// that represent a part of a schema would accept too much.
func shapeOf(schema *jsonschema.Schema) (keys *strictjson.Shape, stepsPerValue int, err error) {
	b := shapeBuilder{shapes: map[string]*strictjson.Shape{}}
	keys = b.build([]*jsonschema.Schema{schema})
	if b.work > maxWork {
		return nil, 0, errors.New("references combine into too many different schemas")
	}
	keys.FoldKeys = true // a tool decodes its arguments, whatever the schema says of them
	if b.incomplete {
		b.dropRules()
		return keys, 0, nil
	}
	return keys, b.stepsPerValue, nil
}

// shapeBuilder builds one Shape for each set of schemas that apply to one place.
type shapeBuilder struct {
	shapes map[string]*strictjson.Shape // by schemaKey
	work   int                          // schemas visited; building stops at maxWork

	stepsPerValue int  // the maximum steps of the schemas of one place
	incomplete    bool // there is a place without rules
}

// build returns the Shape of the places that all of the schemas describe, nil if there are no
// schemas.
func (b *shapeBuilder) build(schemas []*jsonschema.Schema) *strictjson.Shape {
	all := closure(schemas)
	b.work += 1 + len(all)
	if len(all) == 0 || b.work > maxWork {
		return nil
	}
	only := single(schemas)
	b.incomplete = b.incomplete || only == nil
	id := schemaKey(all)
	if s, ok := b.shapes[id]; ok {
		return s
	}
	s := new(strictjson.Shape)
	b.shapes[id] = s // before fill, as schemas may contain themselves
	b.fill(s, all)
	b.addRules(s, only)
	b.stepsPerValue = max(b.stepsPerValue, totalWeight(all))
	return s
}

// addRules adds the rules of the only schema of a place.
func (b *shapeBuilder) addRules(s *strictjson.Shape, only *jsonschema.Schema) {
	if b.incomplete {
		return
	}
	if rules := rulesOf(only, s); rules != nil { // a nil *ruleSet must not become an interface
		s.Rules = rules
	} else {
		b.incomplete = true
	}
}

// single returns the only schema in a list that is not nil, nil if there are several.
func single(schemas []*jsonschema.Schema) (only *jsonschema.Schema) {
	for _, s := range schemas {
		if s != nil && only != nil {
			return nil
		}
		only = cmp.Or(only, s)
	}
	return only
}

// dropRules removes the rules of all places.
func (b *shapeBuilder) dropRules() {
	for _, s := range b.shapes {
		s.Rules = nil
	}
}

// fill adds the names, elements and other values of a place with the given schemas.
func (b *shapeBuilder) fill(s *strictjson.Shape, all []*jsonschema.Schema) {
	for _, name := range propertyNames(all) {
		if b.work > maxWork {
			return
		}
		s.Add(name, b.build(collect(all, func(r *jsonschema.Schema) []*jsonschema.Schema { return valuesOf(r, name) })))
	}
	s.FoldKeys = slices.ContainsFunc(all, describesKeys)
	s.Other = b.build(collect(all, otherProperties))
	s.Items = b.build(collect(all, items))
}

// closure returns the schemas and all others that apply to the same place because of them,
// sorted.
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

// siblings returns the schemas that s applies to its own place.
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

// schemaKey identifies a set of schemas by their locations.
func schemaKey(all []*jsonschema.Schema) string {
	var id []byte
	for _, s := range all {
		id = append(append(id, s.Location...), '\n')
	}
	return string(id)
}

// propertyNames returns the property names of all the schemas, sorted.
func propertyNames(all []*jsonschema.Schema) []string {
	set := map[string]bool{}
	for _, s := range all {
		for name := range s.Properties {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// describesKeys reports whether s says anything about the keys of an object or their values.
// An object of which it says the type only is content: its keys belong to the reader.
func describesKeys(s *jsonschema.Schema) bool {
	return s.Properties != nil || s.PatternProperties != nil || s.AdditionalProperties != nil && s.AdditionalProperties != true ||
		s.Required != nil || s.PropertyNames != nil || s.UnevaluatedProperties != nil ||
		s.DependentRequired != nil || s.DependentSchemas != nil || s.Dependencies != nil
}

// collect returns what step returns for each of the schemas.
func collect(all []*jsonschema.Schema, step func(*jsonschema.Schema) []*jsonschema.Schema) []*jsonschema.Schema {
	var list []*jsonschema.Schema
	for _, s := range all {
		list = append(list, step(s)...)
	}
	return list
}

// valuesOf returns the schemas of the value of a property.
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

// otherProperties returns the schemas of the values of properties that s does not name.
func otherProperties(s *jsonschema.Schema) []*jsonschema.Schema {
	list := append(schemasIn(s.AdditionalProperties), s.UnevaluatedProperties)
	return slices.AppendSeq(list, maps.Values(s.PatternProperties))
}

// items returns the schemas of the elements of an array at any index.
func items(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(schemasIn(s.Items), schemasIn(s.AdditionalItems), s.PrefixItems)
	return append(list, s.Items2020, s.Contains, s.UnevaluatedItems)
}

// schemasIn returns the schemas of a keyword that may have other values.
func schemasIn(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return slices.Clone(v)
	}
	return nil
}

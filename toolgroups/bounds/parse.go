package bounds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
)

// The limits of rules.
const (
	MaxBind       = 64 << 10 // bytes of the JSON of a Bind
	MaxTools      = 256      // of a Bind
	MaxPaths      = 32       // of a rule
	MaxConditions = 256      // of a rule, those in lists included
	maxSteps      = 16       // of a path
	maxNesting    = 4        // of lists of conditions
)

// ParseBind parses the rules of a role: a JSON object with a rule for each tool. The error
// names the tool, the path and the operator.
func ParseBind(data []byte) (Bind, error) {
	tools, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	if len(tools) > MaxTools {
		return nil, fmt.Errorf("%d tools are bounded; at most %d are allowed", len(tools), MaxTools)
	}
	b := make(Bind, len(tools))
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if name == unreadable || name == "" {
			return nil, fmt.Errorf("%q is not the name of a tool", name)
		}
		if b[name], err = newRule(tools[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", textutil.Truncate(name, 128), err)
		}
	}
	return b, nil
}

// ParseRule parses the rule of one tool: a JSON object with a condition for each path. The
// error names the path and the operator.
func ParseRule(data []byte) (Rule, error) {
	doc, err := parseObject(data)
	if err != nil {
		return Rule{}, err
	}
	return newRule(doc)
}

// parseObject decodes strict JSON. Numbers keep their text.
func parseObject(data []byte) (map[string]any, error) {
	if len(data) > MaxBind {
		return nil, fmt.Errorf("the bounds have %d bytes; at most %d are allowed", len(data), MaxBind)
	}
	if err := strictjson.CheckObject(data, nil); err != nil {
		return nil, err
	}
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(&doc)
	return doc, err
}

// isNotStrictObject reports whether data is not an object of strict JSON. Parsers read such a text
// differently, for example an object that has a key twice.
func isNotStrictObject(data []byte) bool { return strictjson.CheckObject(data, nil) != nil }

// newRule returns the rule of a decoded document.
func newRule(doc any) (Rule, error) {
	paths, ok := doc.(map[string]any)
	switch {
	case !ok:
		return Rule{}, errors.New(`want an object with a condition for each path, such as {"/amount": {"max": 1000}}`)
	case len(paths) == 0:
		return Rule{}, errors.New("has no path; leave out the tool to bound nothing")
	case len(paths) > MaxPaths:
		return Rule{}, fmt.Errorf("has %d paths; at most %d are allowed", len(paths), MaxPaths)
	}
	r, p := Rule{text: canonical(doc)}, parser{}
	for _, pointer := range slices.Sorted(maps.Keys(paths)) {
		rule, err := p.pathRule(pointer, paths[pointer])
		if err != nil {
			return Rule{}, fmt.Errorf("%s: %w", textutil.Truncate(pointer, 128), err)
		}
		r.paths = append(r.paths, rule)
	}
	r.tree = newTree(r.paths)
	return r, nil
}

// canonical returns a document as JSON with sorted keys.
func canonical(doc any) string {
	text, _ := json.Marshal(doc) // decoded JSON always marshals
	return string(textutil.UnescapeHTML(text))
}

// parser parses the conditions of one rule.
type parser struct{ conditions int }

// pathRule parses the condition of a path.
func (p *parser) pathRule(pointer string, doc any) (rule pathRule, err error) {
	if rule.steps, err = splitPointer(pointer); err != nil {
		return rule, err
	}
	fields, ok := doc.(map[string]any)
	if missing, has := fields["missing"]; ok && has {
		if missing != "allow" {
			return rule, errors.New(`missing: want "allow"; leave it out to reject a missing value`)
		}
		fields = maps.Clone(fields)
		delete(fields, "missing")
		doc, rule.allowMissing = fields, true
	}
	rule.pointer = pointer
	rule.condition, err = p.condition(doc, 0)
	return rule, err
}

// splitPointer returns the unescaped steps of a JSON pointer.
func splitPointer(pointer string) ([]string, error) {
	if !strings.HasPrefix(pointer, "/") {
		return nil, errors.New(`a path begins with "/", such as /to or /to/*`)
	}
	steps := strings.Split(pointer[1:], "/")
	if len(steps) > maxSteps {
		return nil, fmt.Errorf("a path has at most %d steps", maxSteps)
	}
	for i, step := range steps {
		if !strings.Contains(step, "~") {
			continue
		}
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(step), "~") {
			return nil, errors.New(`write "~" in a path as ~0, and "/" as ~1`)
		}
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps, nil
}

// condition parses a condition in as many lists as depth says.
func (p *parser) condition(doc any, depth int) (condition, error) {
	fields, ok := doc.(map[string]any)
	if !ok {
		return condition{}, errors.New(`want an object of operators, such as {"equal": "x"}`)
	}
	if len(fields) == 0 {
		return condition{}, errors.New("has no operator: use one of " + strings.Join(operatorNames, ", "))
	}
	if p.conditions++; p.conditions > MaxConditions {
		return condition{}, fmt.Errorf("the rule has more than %d conditions", MaxConditions)
	}
	c := condition{text: canonical(doc)}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		op, err := p.operator(name, fields[name], depth)
		if err != nil {
			return condition{}, fmt.Errorf("%s: %w", textutil.Truncate(name, 64), err)
		}
		c.operators = append(c.operators, op)
	}
	return c, nil
}

// operatorNames are the names of all operators, for errors.
var operatorNames = []string{"equal", "any", "glob", "matches", "max", "min", "url", "under", "input"}

// operator parses one operator.
func (p *parser) operator(name string, value any, depth int) (operator, error) {
	switch name {
	case "any":
		return p.list(value, depth)
	case "equal":
		return newEqual(value)
	case "max", "min":
		return newLimit(name, value)
	case "glob":
		return newGlob(value)
	case "matches":
		return newRegularExpression(value)
	case "url":
		return newAddress(value)
	case "under":
		return newDirectory(value)
	case "input":
		return newInput(value)
	}
	return nil, errors.New("is no operator: use one of " + strings.Join(operatorNames, ", "))
}

// list parses a list of conditions.
func (p *parser) list(value any, depth int) (operator, error) {
	items, ok := value.([]any)
	if !ok || len(items) == 0 {
		return nil, errors.New(`want a list of conditions, such as [{"equal": "a"}, {"equal": "b"}]`)
	}
	if depth == maxNesting {
		return nil, fmt.Errorf("lists are nested more than %d times", maxNesting)
	}
	list := make(anyOf, len(items))
	for i, item := range items {
		c, err := p.condition(item, depth+1)
		if err != nil {
			return nil, fmt.Errorf("condition %d: %w", i+1, err)
		}
		list[i] = c
	}
	return list, nil
}

// maxText is the maximum length in bytes of a text in a rule.
const maxText = 4096

// textOf returns the value of an operator that takes a text. The error shows an example of one.
func textOf(value any, example string) (string, error) {
	text, ok := value.(string)
	switch {
	case !ok || text == "":
		return "", errors.New("want a text, such as " + example)
	case len(text) > maxText:
		return "", fmt.Errorf("a text has at most %d bytes", maxText)
	}
	return text, nil
}

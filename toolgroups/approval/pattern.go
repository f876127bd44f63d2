package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// MaxPatternUses is how many further calls a Pattern can approve.
const MaxPatternUses = 1000

const maxPatternText = 8 << 10 // bytes

// Pattern approves further calls of the same tool, besides the call that people are asked about. A
// further call is covered if its arguments fit Args. Its other arguments must be equal to the
// arguments of the first call. The zero Pattern covers no call.
type Pattern struct {
	Args bounds.Rule   `json:"args"`           // conditions of the arguments, as of a bound
	Uses int           `json:"uses,omitempty"` // how many further calls; 0 is any number until For is over
	For  time.Duration `json:"for,omitempty"`  // from the approval on; 0 is until the task ends
}

// Check returns an error that says what is wrong with a pattern, nil if it is valid.
func (p Pattern) Check() error {
	switch {
	case !p.Args.Readable():
		return errors.New("args has no conditions: use the operators of bind, such as {/amount: {max: 1000}}")
	case len(p.Args.String()) > maxPatternText:
		return fmt.Errorf("args is longer than %d bytes", maxPatternText)
	case p.Args.AllowsMissing():
		return errors.New("args has missing: allow: a covered call has each value")
	case p.Uses == 0 && p.For == 0:
		return errors.New("it has no end: set how many further calls it approves (uses), for how long (for), or both")
	case p.Uses < 0 || p.Uses > MaxPatternUses:
		return fmt.Errorf("uses is %d: use a number from 1 to %d", p.Uses, MaxPatternUses)
	case p.For < 0 || p.For > MaxDeadline:
		return fmt.Errorf("for is %s: use a time from 1s to %s", p.For, MaxDeadline)
	}
	return nil
}

// Equal reports whether two patterns are the same.
func (p Pattern) Equal(other Pattern) bool {
	return p.Args.Equal(other.Args) && p.Uses == other.Uses && p.For == other.For
}

// Fits reports whether arguments fit the conditions of p. They must be strict JSON. A value that
// is missing, null, of another type or too costly to check does not fit.
func (p Pattern) Fits(args json.RawMessage) bool {
	return p.Check() == nil && p.Args.CheckArguments(args, nil) == nil
}

// RestDigest returns a hash of the arguments that p has no conditions for. A call is covered if it has
// the same RestDigest as the call that people have approved.
func (p Pattern) RestDigest(args json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var doc any
	if d.Decode(&doc) != nil {
		return DigestJSON(args)
	}
	for _, path := range p.Args.Paths() {
		doc = removeValue(doc, strings.Split(path, "/")[1:])
	}
	return digest(encode(doc))
}

// removeValue returns a JSON value without what steps lead to: a member of an object, or with "*"
// all elements of an array. It changes doc.
func removeValue(doc any, steps []string) any {
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[0])
	switch v := doc.(type) {
	case map[string]any:
		below, has := v[name]
		switch {
		case !has:
		case len(steps) == 1:
			delete(v, name)
		default:
			v[name] = removeValue(below, steps[1:])
		}
	case []any:
		switch {
		case name != "*":
			if at, err := strconv.Atoi(name); err == nil && at >= 0 && at < len(v) {
				v[at] = removeElement(v[at], steps[1:])
			}
		case len(steps) == 1:
			return []any{}
		default:
			for i := range v {
				v[i] = removeValue(v[i], steps[1:])
			}
		}
	}
	return doc
}

// removeElement is removeValue for one element of an array, which keeps its place.
func removeElement(element any, steps []string) any {
	if len(steps) == 0 {
		return nil
	}
	return removeValue(element, steps)
}

// String returns a pattern in words, on one line.
func (p Pattern) String() string {
	text := p.Args.String()
	if p.Uses > 0 {
		text += fmt.Sprintf("; %d further calls", p.Uses)
	}
	if p.For > 0 {
		text += "; for " + p.For.String()
	}
	return text
}

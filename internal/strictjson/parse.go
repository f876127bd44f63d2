package strictjson

import "fmt"

// parser parses one document. Its methods accept the offset where a value or another part begins,
// and return the offset after that part. If the document is malformed, they return invalid and set at
// and reason. A value that its Shape does not allow is not such an error: it only clears result.Valid.
// The offset is not a field of parser, since that would cost a store and a load for each token.
type parser struct {
	data   []byte
	result Result
	depth  int // open arrays and objects

	keys     [64]key // keys of all open objects without a bit in members.seen, innermost last; also the elements of open arrays whose elements must differ
	keyCount int     // the length of keys
	text     []byte  // unescaped keys

	wanted, compared []byte // buffers of parser.identity

	at     int    // Offset of the Error
	reason string // Reason of the Error
}

// invalid is returned instead of an offset when the document is rejected.
const invalid = -1

// document parses a value and the white space around it.
func (p *parser) document(s *Shape, kind documentKind) int {
	i := p.space(0)
	if kind == objectOnly && p.peek(i) != '{' {
		return p.fail(i, "not an object")
	}
	if i = p.value(i, s); i == invalid {
		return invalid
	}
	if i = p.space(i); i < len(p.data) {
		return p.fail(i, "text after the document")
	}
	return i
}

// value parses the value that begins at i and checks it against s.
func (p *parser) value(i int, s *Shape) int {
	switch b := p.peek(i); {
	case isDigit(b):
		return p.number(i, s)
	case b == '"':
		return p.string(i, s)
	case b == '{':
		return p.object(i, s)
	case b == '[':
		return p.array(i, s)
	case b == 't':
		return p.literal(i, "true", s)
	case b == 'f':
		return p.literal(i, "false", s)
	case b == 'n':
		return p.literal(i, "null", s)
	}
	return p.number(i, s) // a minus sign, or no value: number says which
}

// array parses the array that begins at i.
func (p *parser) array(i int, s *Shape) int {
	if !p.enter() {
		return p.failDepth(i)
	}
	elements, unique, first := s.element(), s.unique(), p.keyCount
	count := 0
	i = p.space(i + 1)
	for p.peek(i) != ']' || count > 0 {
		end := p.value(i, elements)
		if end == invalid {
			return invalid
		}
		count++
		if unique {
			p.distinct(first, i, end)
		}
		i = p.space(end)
		if p.peek(i) != ',' {
			break
		}
		i = p.space(i + 1)
	}
	if p.peek(i) != ']' {
		return p.fail(i, p.expected(i, "',' or ']'"))
	}
	p.leave(first, count)
	if s != nil && s.Rules != nil {
		p.recordFit(s.Rules.FitsArray(count))
	}
	return i + 1
}

// object parses the object that begins at i.
func (p *parser) object(i int, s *Shape) int {
	if !p.enter() {
		return p.failDepth(i)
	}
	m := members{shape: s, first: p.keyCount}
	i = p.space(i + 1)
	for p.peek(i) != '}' || m.count > 0 {
		i = p.member(i, &m)
		if i == invalid {
			return invalid
		}
		i = p.space(i)
		if p.peek(i) != ',' {
			break
		}
		i = p.space(i + 1)
	}
	if p.peek(i) != '}' {
		return p.fail(i, p.expected(i, "',' or '}'"))
	}
	p.leave(m.first, m.count)
	if s != nil && s.Rules != nil {
		p.recordFit(s.Rules.FitsObject(m.count, m.seen))
	}
	return i + 1
}

// enter enters an array or object. It reports false if it is nested too deep.
func (p *parser) enter() bool {
	p.depth++
	return p.depth <= MaxDepth
}

// leave leaves an array or object with count values, and drops its keys, which begin at first.
func (p *parser) leave(first, count int) {
	p.depth--
	p.keyCount = first
	p.result.Values += count
}

// recordFit records whether a value satisfies its rules.
func (p *parser) recordFit(fits bool) {
	if !fits {
		p.result.Valid = false
	}
}

// peek returns the byte at i, 0 at the end of the document. No JSON token begins with 0.
func (p *parser) peek(i int) byte {
	if i < len(p.data) {
		return p.data[i]
	}
	return 0
}

// space returns the offset after white space. It is small enough to be inlined.
func (p *parser) space(i int) int {
	if i < len(p.data) && p.data[i] <= ' ' {
		return p.skipSpace(i)
	}
	return i
}

// skipSpace is the loop of space.
func (p *parser) skipSpace(i int) int {
	for i < len(p.data) && isSpace[p.data[i]] {
		i++
	}
	return i
}

// fail rejects the document for a reason at i.
func (p *parser) fail(i int, reason string) int {
	p.at, p.reason = i, reason
	return invalid
}

func (p *parser) failDepth(i int) int {
	return p.fail(i, fmt.Sprintf("nesting deeper than %d", MaxDepth))
}

// expected returns the reason for an error at i, where what is missing.
func (p *parser) expected(i int, what string) string {
	if i >= len(p.data) {
		return "document ends where " + what + " was expected"
	}
	return "expected " + what
}

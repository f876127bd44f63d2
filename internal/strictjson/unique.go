package strictjson

import "bytes"

// distinct checks that the element data[start:end] differs from the elements of its array
// before it, which are in keys from first on. It does not decide for values that can be
// written in several ways, nor for arrays of many elements.
func (p *parser) distinct(first, start, end int) {
	if !isCanonical(p.data[start:end]) || p.keyCount-first == manyKeys || p.keyCount == len(p.keys) {
		p.result.Valid = false
		return
	}
	_, found := p.findPair(first, key{start: int32(start), end: int32(end)})
	p.recordFit(!found)
}

// isCanonical reports whether no other text has the same value as element.
func isCanonical(element []byte) bool {
	switch b := element[0]; {
	case b == '"':
		return bytes.IndexByte(element, '\\') < 0
	case isDigit(b):
		return bytes.IndexFunc(element, func(r rune) bool { return r < '0' || r > '9' }) < 0
	}
	return 'a' <= element[0] && element[0] <= 'z'
}

package strictjson

import "bytes"

// distinct holds the element that stands from start up to end against those of
// its array that are held from first on. Only what is written in one way can
// be compared as it is written, and only a few with each other.
func (w *walker) distinct(first, start, end int) {
	if !canonical(w.data[start:end]) || w.held-first == manyKeys || w.held == len(w.keys) {
		w.fit(false)
		return
	}
	w.fit(!w.paired(first, key{start: int32(start), end: int32(end)}))
}

// canonical says whether no other text means the same value.
func canonical(element []byte) bool {
	switch b := element[0]; {
	case b == '"':
		return bytes.IndexByte(element, '\\') < 0
	case isDigit(b):
		return bytes.IndexFunc(element, func(r rune) bool { return r < '0' || r > '9' }) < 0
	}
	return 'a' <= element[0] && element[0] <= 'z'
}

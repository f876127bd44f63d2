package strictjson

// The methods of this file report true only for a value that certainly satisfies the rules.
// They report false for values that take much time or memory to check: numbers with exponents
// or very many digits, and patterns for strings with escapes.

// allows reports whether a value may have a kind.
func (s *KeySet) allows(kind Kinds) bool {
	return s == nil || s.Rules == nil || s.Rules.Kinds&kind != 0
}

// closed reports whether an object may have known names only.
func (s *KeySet) closed() bool {
	return s != nil && s.Rules != nil && s.Rules.Objects != nil && s.Rules.Objects.Closed
}

// unique reports whether the elements of an array must differ.
func (s *KeySet) unique() bool {
	return s != nil && s.Rules != nil && s.Rules.Arrays != nil && s.Rules.Arrays.Unique
}

// fitsArray reports whether an array of count elements satisfies the rules.
func (s *KeySet) fitsArray(count int) bool {
	if s == nil || s.Rules == nil {
		return true
	}
	r := s.Rules
	return r.Kinds&IsArray != 0 && (r.Arrays == nil || r.Arrays.Count.contains(count))
}

// fitsObject reports whether an object of count keys, with the known names seen, satisfies the
// rules.
func (s *KeySet) fitsObject(count int, seen uint64) bool {
	if s == nil || s.Rules == nil {
		return true
	}
	r := s.Rules
	return r.Kinds&IsObject != 0 && (r.Objects == nil || r.Objects.Count.contains(count) && seen&r.Objects.Required == r.Objects.Required)
}

// fitsString reports whether a string satisfies the rules; quoted is without its quotes.
func (r *Rules) fitsString(quoted []byte, escaped bool) bool {
	return r.Kinds&IsString != 0 && (r.Strings == nil || r.Strings.fits(quoted, escaped))
}

// fitsInteger reports whether a number without fraction satisfies the rules. known is false if
// v is not its value because it has too many digits.
func (r *Rules) fitsInteger(v int64, known bool) bool {
	return r.Kinds&IsNumber != 0 && (r.Numbers == nil || known && r.Numbers.fitsInteger(v))
}

// fitsNumber reports whether a number satisfies the rules. known is false if d is not its value.
func (r *Rules) fitsNumber(d decimal, known bool) bool {
	return r.Kinds&IsNumber != 0 && (r.Numbers == nil || known && r.Numbers.fits(d))
}

package strictjson

// What fits tells is true only of a value that surely keeps the rules. What
// would take long or memory to find out is left to somebody else: numbers
// with exponents or very many digits, patterns for text with escapes.

// allows says whether values of a kind may be here.
func (s *KeySet) allows(kind Kinds) bool {
	return s == nil || s.Rules == nil || s.Rules.Kinds&kind != 0
}

// closed says whether only known names may be here.
func (s *KeySet) closed() bool {
	return s != nil && s.Rules != nil && s.Rules.Objects != nil && s.Rules.Objects.Closed
}

// unique says whether elements have to differ.
func (s *KeySet) unique() bool {
	return s != nil && s.Rules != nil && s.Rules.Arrays != nil && s.Rules.Arrays.Unique
}

func (s *KeySet) fitsArray(count int) bool {
	if s == nil || s.Rules == nil {
		return true
	}
	r := s.Rules
	return r.Kinds&IsArray != 0 && (r.Arrays == nil || r.Arrays.Count.contains(count))
}

func (s *KeySet) fitsObject(count int, seen uint64) bool {
	if s == nil || s.Rules == nil {
		return true
	}
	r := s.Rules
	return r.Kinds&IsObject != 0 && (r.Objects == nil || r.Objects.Count.contains(count) && seen&r.Objects.Required == r.Objects.Required)
}

// fitsText takes a string without its quotes.
func (r *Rules) fitsText(quoted []byte, escaped bool) bool {
	return r.Kinds&IsString != 0 && (r.Texts == nil || r.Texts.fit(quoted, escaped))
}

// fitsInteger takes a number without fraction, if its value is known.
func (r *Rules) fitsInteger(v int64, known bool) bool {
	return r.Kinds&IsNumber != 0 && (r.Numbers == nil || known && r.Numbers.fitsInteger(v))
}

// fitsNumber takes any number, if it is known.
func (r *Rules) fitsNumber(d decimal, known bool) bool {
	return r.Kinds&IsNumber != 0 && (r.Numbers == nil || known && r.Numbers.fits(d))
}

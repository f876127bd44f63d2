package redact

// TextStream redacts a text that arrives in parts. It holds back an end that may be the
// beginning of a secret until the next part shows whether it is. Not safe for concurrent
// use. The TextStream of a nil Redactor changes nothing.
type TextStream struct {
	redactor *Redactor
	held     string
	known    string // the part of held that was shown before the stream began
}

// NewStream returns a TextStream.
func (r *Redactor) NewStream() *TextStream { return &TextStream{redactor: r} }

// ContinueStream returns a TextStream for what follows a text. A secret that began in the
// text is removed as far as it is in the stream.
func (r *Redactor) ContinueStream(text string) *TextStream {
	if r == nil {
		return r.NewStream()
	}
	begun := text[r.parts.findPartial(text):]
	return &TextStream{redactor: r, held: begun, known: begun}
}

// RedactPart returns what can be shown after the next part.
func (s *TextStream) RedactPart(part string) string {
	if s.redactor == nil {
		return part
	}
	text := s.redactor.parts.replace(s.redactor.RedactText(s.held + part))
	end := s.redactor.parts.findPartial(text)
	s.held = text[end:]
	return s.dropKnown(text[:end])
}

// Flush returns what was held back. No secret has begun there, as the text has ended.
func (s *TextStream) Flush() string {
	held := s.held
	s.held = ""
	return s.dropKnown(held)
}

// dropKnown returns text without its beginning that was shown before the stream began.
func (s *TextStream) dropKnown(text string) string {
	n := 0
	for n < min(len(text), len(s.known)) && text[n] == s.known[n] {
		n++
	}
	if n < len(text) { // the rest of known became a part of a Mask
		s.known = ""
	} else {
		s.known = s.known[n:]
	}
	return text[n:]
}

package redact

// TextStream redacts a text that arrives in parts. It holds back an end that may be the
// beginning of a secret until the next part shows whether it is. Not safe for concurrent
// use. The TextStream of a nil Redactor changes nothing.
type TextStream struct {
	redactor *Redactor
	held     string
}

// NewStream returns a TextStream.
func (r *Redactor) NewStream() *TextStream { return &TextStream{redactor: r} }

// RedactPart returns what can be shown after the next part.
func (s *TextStream) RedactPart(part string) string {
	if s.redactor == nil {
		return part
	}
	text := s.redactor.parts.replace(s.redactor.RedactText(s.held + part))
	end := s.redactor.parts.findPartial(text)
	s.held = text[end:]
	return text[:end]
}

// Flush returns what was held back. No secret has begun there, as the text has ended.
func (s *TextStream) Flush() string {
	held := s.held
	s.held = ""
	return held
}

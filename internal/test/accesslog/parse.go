package accesslog

import (
	"strconv"
	"strings"
)

// logEntry contains the fields of a line that the summary needs.
type logEntry struct {
	client, minute, path, class string
	size                        int64
}

// parseLine parses a line in combined format. Referrer and agent may both be missing
// (common format), and fields may follow them.
//
//	client ident user [17/Mar/2026:14:03:59 +0000] "request" status size "referrer" "agent"
func parseLine(line string) (e logEntry, ok bool) {
	s := lineScanner{rest: line, ok: true}
	e.client = s.until(" ")
	ident, user := s.until(" "), s.until(" [")
	s.require(e.client != "" && ident != "" && user != "" && !strings.Contains(user, "["))
	e.minute = s.minute()
	s.expect(` `)
	e.path = requestPath(s.quoted())
	s.expect(` `)
	e.class = s.status()
	e.size = s.size()
	if s.rest != "" {
		s.expect(` `)
		s.quoted()
		s.expect(` `)
		s.quoted()
		s.require(s.rest == "" || s.rest[0] == ' ')
	}
	return e, s.ok
}

// lineScanner scans a line. Once ok is false, it stays false.
type lineScanner struct {
	rest string
	ok   bool
}

func (s *lineScanner) require(condition bool) { s.ok = s.ok && condition }

// until returns the text before mark and skips both.
func (s *lineScanner) until(mark string) string {
	before, after, found := strings.Cut(s.rest, mark)
	s.require(found)
	if !s.ok {
		return ""
	}
	s.rest = after
	return before
}

// expect skips text, which must come next.
func (s *lineScanner) expect(text string) {
	after, found := strings.CutPrefix(s.rest, text)
	s.require(found)
	s.rest = after
}

// minute reads "17/Mar/2026:14:03:59 +0000]" as "2026-03-17 14:03".
func (s *lineScanner) minute() string {
	const shape = "dd/Mmm/dddd:dd:dd:dd +dddd"
	text := s.until("]")
	s.require(len(text) == len(shape))
	if !s.ok {
		return ""
	}
	for i := range len(shape) {
		switch c := text[i]; shape[i] {
		case 'd':
			s.require('0' <= c && c <= '9')
		case '+':
			s.require(c == '+' || c == '-')
		case 'M', 'm':
		default:
			s.require(c == shape[i])
		}
	}
	month := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", text[3:6])
	s.require(month >= 0 && month%3 == 0)
	number := strconv.Itoa(101 + month/3)[1:]
	return text[7:11] + "-" + number + "-" + text[:2] + " " + text[12:17]
}

// quoted scans a quoted field, in which a backslash escapes the next character.
func (s *lineScanner) quoted() string {
	s.expect(`"`)
	for i := 0; s.ok && i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			field := s.rest[:i]
			s.rest = s.rest[i+1:]
			return field
		}
	}
	s.ok = false
	return ""
}

// status scans three digits and a space, and returns the first digit.
func (s *lineScanner) status() string {
	digits := s.until(" ")
	s.require(len(digits) == 3 && isNumber(digits))
	if !s.ok {
		return ""
	}
	return digits[:1]
}

// size scans a number of bytes; "-" is 0.
func (s *lineScanner) size() int64 {
	text, _, _ := strings.Cut(s.rest, " ")
	s.rest = s.rest[len(text):]
	if text == "-" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	s.require(err == nil && isNumber(text))
	return n
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// requestPath returns the path without query of "GET /lamps?page=2 HTTP/1.1". It
// returns text that is not a request line unchanged.
func requestPath(request string) string {
	words := strings.Split(request, " ")
	if n := len(words); n > 2 && isProtocol(words[n-1]) {
		words = words[:n-1]
	}
	if len(words) > 1 {
		request = strings.Join(words[1:], " ")
	}
	path, _, _ := strings.Cut(request, "?")
	return path
}

func isProtocol(word string) bool {
	version, ok := strings.CutPrefix(word, "HTTP/")
	return ok && version != "" && strings.Trim(version, "0123456789.") == ""
}

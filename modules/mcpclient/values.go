package mcpclient

import (
	"fmt"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// maxMessageValues is how many JSON values one message may have.
const maxMessageValues = strictjson.MaxDecoded

// errTooManyValues is the error for a message with more values.
var errTooManyValues = fmt.Errorf("a message of more than %d values", maxMessageValues)

// valueCounter counts the values of JSON as it is read. A string ends with its line, as JSON requires.
// The zero valueCounter is at the beginning of a document.
type valueCounter struct {
	events bool // the values belong to one event of a stream, which ends with an empty line

	n       int
	quoted  bool // within a string
	escaped bool // after a backslash
	begun   bool // the line is not empty
}

// add counts the values in the next bytes. It reports false if there are too many.
func (c *valueCounter) add(part []byte) bool {
	for _, b := range part {
		switch {
		case b == '\n':
			if !c.begun && c.events {
				c.n = 0
			}
			c.quoted, c.escaped, c.begun = false, false, false
			continue
		case c.escaped:
			c.escaped = false
		case b == '\\':
			c.escaped = c.quoted
		case b == '"':
			c.quoted = !c.quoted
		case !c.quoted && (b == ',' || b == '{' || b == '['):
			c.n++
		}
		c.begun = c.begun || b != '\r'
	}
	return c.n <= maxMessageValues
}

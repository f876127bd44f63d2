package org

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/rolecall/rolecall/identity"
)

// claim is what memory needs of an agent's record: the place it claims. Its
// texts are parts of the record.
type claim struct {
	id, role, task, parent, status, state []byte

	contacts []identity.AgentID
	created  time.Time
	root     bool
}

// readClaim reads a record as encoding/json does, and refuses what that
// refuses. A start reads all records there are, so those that look as they are
// written are read without it.
func readClaim(doc []byte) (claim, error) {
	s := scanner{rest: doc}
	if c := s.claim(); !s.strange && len(s.rest) == 0 {
		return c, nil
	}
	var a Agent
	if err := json.Unmarshal(doc, &a); err != nil {
		return claim{}, err
	}
	return a.claim(), nil
}

// claim is what memory needs of a.
func (a *Agent) claim() claim {
	c := claim{
		id: []byte(a.ID), role: []byte(a.Role), task: []byte(a.Task), parent: []byte(a.Parent), status: []byte(a.Status),
		state: []byte(a.State), created: a.CreatedAt, root: a.Root,
	}
	for _, other := range a.Brief.Collaborators {
		c.contacts = append(c.contacts, other.Agent)
	}
	return c
}

// scanner reads a document from left to right as this package writes it:
// every field in its place, no space between. What differs is strange, be it
// wrong or not.
type scanner struct {
	rest    []byte
	strange bool
}

// claim reads a record as Agent is written.
func (s *scanner) claim() (c claim) {
	s.word(`{"id":`)
	c.id = s.text()
	s.word(`,"roleId":`)
	c.role = s.text()
	if s.has(`,"parentAgentId":`) {
		c.parent = s.text()
	}
	s.word(`,"taskId":`)
	c.task = s.text()
	c.root = s.has(`,"root":true`)
	if s.has(`,"taskBrief":`) {
		c.contacts = s.brief()
	}
	s.word(`,"status":`)
	c.status = s.text()
	if s.has(`,"state":`) {
		c.state = s.text()
	}
	s.word(`,"createdAt":`)
	s.strange = c.created.UnmarshalText(s.text()) != nil || s.strange
	s.optional(`,"endedBy":`, s.skip)
	s.optional(`,"reason":`, s.skip)
	s.word(`}`)
	return c
}

// brief reads a brief as TaskBrief is written and gives whom it names.
func (s *scanner) brief() (contacts []identity.AgentID) {
	s.word(`{"objective":`)
	s.skip()
	s.word(`,"constraints":`)
	s.list(s.skip)
	s.word(`,"inputs":`)
	s.skip()
	s.word(`,"outputs":`)
	s.skip()
	s.word(`,"completion_criteria":`)
	s.skip()
	s.optional(`,"collaborators":`, func() {
		s.list(func() { contacts = append(contacts, s.collaborator()) })
	})
	s.optional(`,"references":`, func() { s.list(s.skip) })
	s.optional(`,"priority":`, s.skip)
	s.word(`}`)
	return contacts
}

// collaborator reads one as Collaborator is written.
func (s *scanner) collaborator() identity.AgentID {
	s.word(`{"agentId":`)
	id := s.text()
	s.word(`,"role":`)
	s.skip()
	s.optional(`,"description":`, s.skip)
	s.word(`}`)
	return identity.AgentID(id)
}

// has says whether a word comes next, and passes it.
func (s *scanner) has(word string) bool {
	if s.strange || len(s.rest) < len(word) || string(s.rest[:len(word)]) != word {
		return false
	}
	s.rest = s.rest[len(word):]
	return true
}

// word passes a word that has to come next.
func (s *scanner) word(word string) {
	if !s.has(word) {
		s.strange = true
	}
}

// optional reads what stands behind a word, if that comes next.
func (s *scanner) optional(word string, read func()) {
	if s.has(word) {
		read()
	}
}

// list reads a list.
func (s *scanner) list(read func()) {
	s.word(`[`)
	for more := !s.has(`]`); more && !s.strange; {
		read()
		if more = s.has(`,`); !more {
			s.word(`]`)
		}
	}
}

// text reads a string that means what it shows.
func (s *scanner) text() []byte {
	text := s.quoted()
	for _, b := range text {
		if b < ' ' || b == '\\' {
			s.strange = true
		}
	}
	s.strange = s.strange || !utf8.Valid(text)
	return text
}

// skip passes any string.
func (s *scanner) skip() {
	before := s.rest
	text := s.quoted()
	for _, b := range text {
		if b < ' ' || b == '\\' {
			s.strange = s.strange || !json.Valid(before[:len(text)+len(`""`)])
			return
		}
	}
}

// quoted reads up to the quotation mark that ends a string.
func (s *scanner) quoted() []byte {
	s.word(`"`)
	for at := 0; !s.strange; at++ {
		end := bytes.IndexByte(s.rest[at:], '"')
		if end < 0 {
			s.strange = true
			break
		}
		if at += end; !escaped(s.rest[:at]) {
			text := s.rest[:at]
			s.rest = s.rest[at+1:]
			return text
		}
	}
	return nil
}

// escaped says whether what follows a text is escaped.
func escaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}

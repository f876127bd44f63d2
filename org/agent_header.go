package org

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/rolecall/rolecall/identity"
)

// agentHeader holds the fields of an agent's record that are kept in memory. Its byte
// slices are parts of the record.
type agentHeader struct {
	id, role, task, name, parent, status, state []byte

	contacts []identity.AgentID
	created  time.Time
	root     bool
}

// decodeAgentHeader decodes the record of an agent. It returns the same result or error
// as encoding/json. A scanner decodes records that have exactly the form in which this
// package writes them. The scanner takes a seventh of the time. This matters because a
// start reads all agents.
func decodeAgentHeader(doc []byte) (agentHeader, error) {
	s := scanner{rest: doc}
	if c := s.header(); !s.failed && len(s.rest) == 0 {
		return c, nil
	}
	var a Agent
	if err := json.Unmarshal(doc, &a); err != nil {
		return agentHeader{}, err
	}
	return a.header(), nil
}

// header returns the header of a.
func (a *Agent) header() agentHeader {
	c := agentHeader{
		id: []byte(a.ID), role: []byte(a.Role), task: []byte(a.Task), name: []byte(a.Name), parent: []byte(a.Parent), status: []byte(a.Status),
		state: []byte(a.State), created: a.CreatedAt, root: a.Root,
	}
	for _, other := range a.Brief.Collaborators {
		c.contacts = append(c.contacts, other.Agent)
	}
	return c
}

// scanner reads a document from left to right in the form in which this package writes
// it: all fields in their order, without white space. It sets failed for any other
// document, valid or not.
type scanner struct {
	rest   []byte
	failed bool
}

// header reads the record of an Agent.
func (s *scanner) header() (c agentHeader) {
	s.expect(`{"id":`)
	c.id = s.text()
	s.expect(`,"roleId":`)
	c.role = s.text()
	if s.accept(`,"parentAgentId":`) {
		c.parent = s.text()
	}
	s.expect(`,"taskId":`)
	c.task = s.text()
	c.root = s.accept(`,"root":true`)
	if s.accept(`,"name":`) {
		c.name = s.text()
	}
	if s.accept(`,"taskBrief":`) {
		c.contacts = s.brief()
	}
	s.expect(`,"status":`)
	c.status = s.text()
	if s.accept(`,"state":`) {
		c.state = s.text()
	}
	s.expect(`,"createdAt":`)
	s.failed = c.created.UnmarshalText(s.text()) != nil || s.failed
	s.optional(`,"endedBy":`, s.skip)
	s.optional(`,"reason":`, s.skip)
	s.expect(`}`)
	return c
}

// brief reads a TaskBrief and returns its collaborators.
func (s *scanner) brief() (contacts []identity.AgentID) {
	s.expect(`{"objective":`)
	s.skip()
	s.expect(`,"constraints":`)
	s.list(s.skip)
	s.expect(`,"inputs":`)
	s.skip()
	s.expect(`,"outputs":`)
	s.skip()
	s.expect(`,"completion_criteria":`)
	s.skip()
	s.optional(`,"collaborators":`, func() {
		s.list(func() { contacts = append(contacts, s.collaborator()) })
	})
	s.optional(`,"references":`, func() { s.list(s.skip) })
	s.optional(`,"priority":`, s.skip)
	s.expect(`}`)
	return contacts
}

// collaborator reads a Collaborator and returns its id.
func (s *scanner) collaborator() identity.AgentID {
	s.expect(`{"agentId":`)
	id := s.text()
	s.expect(`,"role":`)
	s.skip()
	s.optional(`,"description":`, s.skip)
	s.expect(`}`)
	return identity.AgentID(id)
}

// accept skips word if it is next, and reports whether it was.
func (s *scanner) accept(word string) bool {
	if s.failed || len(s.rest) < len(word) || string(s.rest[:len(word)]) != word {
		return false
	}
	s.rest = s.rest[len(word):]
	return true
}

// expect skips word, which must be next.
func (s *scanner) expect(word string) {
	if !s.accept(word) {
		s.failed = true
	}
}

// optional calls read if word is next.
func (s *scanner) optional(word string, read func()) {
	if s.accept(word) {
		read()
	}
}

// list reads a list and calls read for each element.
func (s *scanner) list(read func()) {
	s.expect(`[`)
	for more := !s.accept(`]`); more && !s.failed; {
		read()
		if more = s.accept(`,`); !more {
			s.expect(`]`)
		}
	}
}

// text reads a string without escapes, in valid UTF-8.
func (s *scanner) text() []byte {
	text := s.quoted()
	for _, b := range text {
		if b < ' ' || b == '\\' {
			s.failed = true
		}
	}
	s.failed = s.failed || !utf8.Valid(text)
	return text
}

// skip skips a string. It may contain escapes.
func (s *scanner) skip() {
	before := s.rest
	text := s.quoted()
	for _, b := range text {
		if b < ' ' || b == '\\' {
			s.failed = s.failed || !json.Valid(before[:len(text)+len(`""`)])
			return
		}
	}
}

// quoted reads a string and returns it without its quotation marks, escapes included.
func (s *scanner) quoted() []byte {
	s.expect(`"`)
	for at := 0; !s.failed; at++ {
		end := bytes.IndexByte(s.rest[at:], '"')
		if end < 0 {
			s.failed = true
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

// escaped reports whether text ends in a backslash that escapes the next character.
func escaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}

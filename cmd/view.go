package cmd

import (
	"io"
	"time"

	"github.com/rolecall/rolecall/journal"
)

// view shows the events of a task.
type view interface {
	learn(e journal.Event) // learns from an event that was shown by an earlier process
	show(e journal.Event) error
	close() // after the last event; it may be called twice
}

// newView returns JSON on stdout with --json, a live tree on a terminal, and lines otherwise.
// The caller must close it.
func newView(c *common, s *terminal) view {
	if c.json {
		return jsonView{c.out}
	}
	if _, ok := s.currentSize(); !ok || c.plain() {
		return newLineView(s)
	}
	v := newTreeView(s, time.Now)
	v.startRedraws()
	return v
}

// plain reports whether the user wants lines without colors and cursor moves, or has a
// terminal that knows nothing else.
func (c *common) plain() bool {
	_, plain := c.env("NO_COLOR")
	term, _ := c.env("TERM")
	return plain || term == "dumb"
}

// jsonView prints one JSON event per line.
type jsonView struct{ out io.Writer }

func (v jsonView) close()                     {}
func (v jsonView) learn(journal.Event)        {}
func (v jsonView) show(e journal.Event) error { return printJSONLine(v.out, e) }

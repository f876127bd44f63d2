package cmd

import (
	"io"

	"github.com/rolecall/rolecall/journal"
)

// view shows a task's events as they come.
type view interface {
	observe(e journal.Event) // an event of the past, not to be shown
	event(e journal.Event) error
}

// newView picks how to show events: as JSON on stdout, as a tree on a
// terminal, as lines elsewhere.
func newView(c *common, s *terminal) view {
	if c.json {
		return jsonView{c.out}
	}
	if s.width == 0 {
		return newLineView(s, false)
	}
	_, plain := c.env("NO_COLOR")
	return &treeView{lines: newLineView(s, !plain)}
}

// jsonView prints one event a line.
type jsonView struct{ out io.Writer }

func (v jsonView) observe(journal.Event)       {}
func (v jsonView) event(e journal.Event) error { return printLine(v.out, e) }

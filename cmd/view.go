package cmd

import (
	"io"

	"github.com/rolecall/rolecall/journal"
)

// view shows the events of a task.
type view interface {
	observe(e journal.Event) // learns from an event that was shown by an earlier process
	event(e journal.Event) error
}

// newView returns JSON on stdout with --json, a tree on a terminal, and lines otherwise.
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

// jsonView prints one JSON event per line.
type jsonView struct{ out io.Writer }

func (v jsonView) observe(journal.Event)       {}
func (v jsonView) event(e journal.Event) error { return printLine(v.out, e) }

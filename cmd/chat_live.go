package cmd

import (
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
)

// If stdout and stderr are terminals, a conversation is drawn live. The line that the model is
// writing, and below it the elapsed time, tokens and cost, are the area of the screen, which is
// redrawn. Complete lines scroll above it. The text that a person types is never in the area:
// it is erased before the prompt.

// redraws returns a channel that says when to draw the area again, until stop is called.
func (t *chat) redraws() (redraws <-chan time.Time, stop func()) {
	if !t.live {
		return nil, func() {}
	}
	ticks := time.NewTicker(redrawTime)
	return ticks.C, func() {
		ticks.Stop()
		t.busy = false
		t.redraw()
	}
}

// redraw draws the area again, unless a person types.
func (t *chat) redraw() {
	if t.live && t.midLine == nil {
		t.draw("")
	}
}

// writeLive prints the lines that text completes. The rest is drawn by the next redraw.
func (t *chat) writeLive(text string) {
	if t.midLine != nil {
		t.breakLine()
	}
	text = t.partial + textutil.SanitizeLines(text)
	end := strings.LastIndexByte(text, '\n') + 1
	if t.partial = text[end:]; end > 0 {
		t.draw(text[:end])
	}
}

// draw prints complete lines and draws the area below them.
func (t *chat) draw(lines string) {
	size, ok := t.screen.currentSize()
	if !ok {
		return
	}
	area := []string{}
	if t.busy {
		area = lastRows(t.partial, size.columns-1, max(1, size.rows-3))
		area = append(area, t.view.color(dim, fitColumns(t.progress.line(time.Now()), size.columns-1)))
	}
	_ = t.screen.update(lines, area) // a lost terminal ends the input, too
}

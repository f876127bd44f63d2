package cmd

import (
	"fmt"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// progress counts what a task has taken so far. The zero value has seen no event.
type progress struct {
	start time.Time // of the task, or of its continuation
	usage model.TokenUsage
}

// addUsage adds the tokens of an event.
func (p *progress) addUsage(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.ModelAnswered:
		p.usage = p.usage.Add(b.Answer.Usage)
	case journal.ContextCompressed:
		p.usage = p.usage.Add(b.Usage)
	}
}

// addEvent adds an event. The first one says when the task began.
func (p *progress) addEvent(e journal.Event) {
	if p.start.IsZero() {
		p.start = e.At
	}
	p.addUsage(e)
}

// line returns the elapsed time, tokens and cost.
func (p *progress) line(now time.Time) string {
	text := formatElapsed(now.Sub(p.start))
	if n := p.usage.Input + p.usage.Output; n > 0 {
		text += fmt.Sprintf(" · %d tokens", n)
		if p.usage.Estimated {
			text += ", partly estimated"
		}
	}
	if p.usage.Cost > 0 {
		text += " · cost " + costText(p.usage)
	}
	return text
}

// formatElapsed returns a duration in whole seconds. The clock of another machine may be
// ahead, so it is never negative.
func formatElapsed(d time.Duration) string {
	s := max(0, int(d/time.Second))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// maxPartial bounds the end of an unfinished answer that is kept to be shown, in bytes.
const maxPartial = 8 << 10

// partialAnswer is the end of the text that a model is generating.
type partialAnswer struct{ text string }

// add adds what a model has generated: text, or a call with its arguments.
func (p *partialAnswer) add(d journal.ModelDelta) {
	switch {
	case d.Restart:
		p.text = ""
	case d.Tool != "":
		p.text += "\n" + d.Tool + " "
	}
	p.text += d.Text + d.Args
	if extra := len(p.text) - maxPartial; extra > 0 {
		p.text = p.text[extra:] // it may begin within a character, which sanitizing replaces
	}
}

// rows returns the last rows of the text, printable and wrapped at n columns.
func (p *partialAnswer) rows(n, count int) []string {
	return lastRows(textutil.SanitizeLines(p.text), n, count)
}

package chrome

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// maxLosses limits how many principals are told later that their browser has ended. The oldest
// losses are dropped.
const maxLosses = 1000

// lossLog has the losses that principals were not told of. The zero lossLog is empty.
type lossLog struct {
	texts map[identity.Principal]string
	order []identity.Principal // the oldest first
}

// add records that the browser of a principal has ended with its tabs.
func (l *lossLog) add(by identity.Principal, reason string, tabs int) {
	l.take(by)
	if len(l.order) >= maxLosses {
		l.take(l.order[0])
	}
	if l.texts == nil {
		l.texts = map[identity.Principal]string{}
	}
	l.order = append(l.order, by)
	l.texts[by] = fmt.Sprintf("your browser was closed, because %s: %d tabs, cookies and storage are gone", reason, tabs)
}

// take returns and removes the loss of a principal, "" if there is none.
func (l *lossLog) take(by identity.Principal) string {
	text, ok := l.texts[by]
	if ok {
		delete(l.texts, by)
		l.order = slices.DeleteFunc(l.order, func(o identity.Principal) bool { return o == by })
	}
	return text
}

// notice is the part of all results that says what happened between two calls.
type notice struct {
	Lost string `json:"lost,omitempty"` // why the browser of earlier calls is gone
}

func (n *notice) setLost(text string) { n.Lost = text }

// withLoss adds to an error why the browser of earlier calls is gone.
func withLoss(err error, lost string) error {
	return errcode.Wrap(errcode.CodeOf(err), err, "%s; %s", errcode.Message(err), lost)
}

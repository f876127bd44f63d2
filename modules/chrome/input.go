package chrome

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/rolecall/rolecall/errcode"
)

// actTime is how long an action may take when the call does not say.
const actTime = 10 * time.Second

// element says which element of a page is meant.
type element struct {
	Selector string `json:"selector,omitempty"`
	Text     string `json:"text,omitempty"`
	Index    int    `json:"index,omitempty"`
	Action   string `json:"act"` // what is going to be done: click, type, shoot
	Value    string `json:"value,omitempty"`
	Clear    bool   `json:"clear,omitempty"`
}

// found is what a page says of an element.
type found struct {
	Invalid string  `json:"invalid"` // what is wrong with the selector
	Count   int     `json:"count"`   // of elements that fit
	Covered string  `json:"covered"` // what lies over it
	Wrong   string  `json:"wrong"`   // why it cannot be done with this element
	Done    bool    `json:"done"`    // nothing is left to do
	What    string  `json:"what"`    // the element, for people
	X       float64 `json:"x"`       // its middle in the viewport, or where it begins in the page
	Y       float64 `json:"y"`
	Width   float64 `json:"width"`
	Height  float64 `json:"height"`
}

func (f found) ready(e element) bool { return f.Count > e.Index && f.Covered == "" && f.Wrong == "" }

// locate waits until an element is there and can be acted upon.
func (t *tab) locate(ctx context.Context, e element) (f found, err error) {
	for looked := false; ; looked = true {
		now, err := ask[found](ctx, t, locateScript, e)
		late := errors.Is(context.Cause(ctx), errTimeout)
		switch {
		case err != nil && late && looked:
			return f, missing(e, f)
		case err != nil:
			return f, err
		case now.Invalid != "":
			return f, errcode.New(errcode.InvalidArguments, "selector %.200q is no CSS selector", e.Selector)
		}
		if f = now; f.ready(e) {
			return f, nil
		}
		if !pause(ctx, 50*time.Millisecond) && late {
			return f, missing(e, f)
		}
	}
}

// missing says why an element could not be acted upon.
func missing(e element, f found) error {
	const look = "look at the page with chrome_content or chrome_screenshot"
	switch {
	case f.Wrong != "":
		return errcode.New(errcode.ToolExecutionFailed, "%s %s; %s", f.What, f.Wrong, look)
	case f.Covered != "":
		return errcode.New(errcode.ToolExecutionFailed, "%s is covered by %s; %s", f.What, f.Covered, look)
	case f.Count > 0:
		return errcode.New(errcode.ToolExecutionFailed, "%d elements fit, and index %d is none of them; %s", f.Count, e.Index, look)
	}
	return errcode.New(errcode.ToolExecutionFailed, "no visible element fits; %s", look)
}

type clickIn struct {
	Selector  string `json:"selector,omitempty"`
	Text      string `json:"text,omitempty"`
	Index     int    `json:"index,omitempty"`
	Count     int    `json:"count,omitempty"`
	TabID     string `json:"tabId,omitempty"`
	WaitMs    int    `json:"waitMs,omitempty"`
	TimeoutMs int    `json:"timeoutMs,omitempty"`
}

type acted struct {
	Element string `json:"element,omitempty"`
	shown
}

func (h *handlers) click(ctx context.Context, s *contextLease, in clickIn) (acted, error) {
	if in.Selector == "" && in.Text == "" {
		return acted{}, errcode.New(errcode.InvalidArguments, "chrome_click needs selector or text: what to click on")
	}
	e := element{Selector: in.Selector, Text: in.Text, Index: in.Index, Action: "click"}
	return s.act(ctx, in.TabID, in.WaitMs, in.TimeoutMs, e, func(ctx context.Context, t *tab, f found) error {
		return t.mouseClick(ctx, f.X, f.Y, max(in.Count, 1))
	})
}

// act finds an element, does something with it, and says what the tab shows
// then.
func (s *contextLease) act(ctx context.Context, id string, waitMs, timeoutMs int, e element, do func(context.Context, *tab, found) error) (acted, error) {
	limit := millis(timeoutMs, actTime)
	return on(ctx, s, id, limit+millis(waitMs, 0)+20*time.Second, func(ctx context.Context, t *tab) (acted, error) {
		search, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
		f, err := t.locate(search, e)
		if err == nil && !f.Done {
			err = do(search, t, f)
		}
		if err != nil {
			return acted{}, err
		}
		late := t.settle(ctx, millis(waitMs, 0))
		out, err := t.show(ctx)
		out.Loading = late
		return acted{f.What, out}, err
	})
}

// mouseClick clicks at a point, as often as said.
func (t *tab) mouseClick(ctx context.Context, x, y float64, count int) error {
	mouse := func(kind input.DispatchMouseEventType, buttons, n int64) error {
		p := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Buttons: buttons, ClickCount: n}
		if n > 0 {
			p.Button = input.MouseButtonLeft
		}
		_, err := call(ctx, t.session, input.DispatchMouseEvent, p)
		return err
	}
	if err := mouse(input.DispatchMouseEventTypeMouseMoved, 0, 0); err != nil {
		return err
	}
	for n := range int64(count) {
		if err := mouse(input.DispatchMouseEventTypeMousePressed, 1, n+1); err != nil {
			return err
		}
		if err := mouse(input.DispatchMouseEventTypeMouseReleased, 0, n+1); err != nil {
			return err
		}
	}
	return nil
}

type typeIn struct {
	Selector  string `json:"selector,omitempty"`
	Text      string `json:"text,omitempty"`
	Index     int    `json:"index,omitempty"`
	Clear     bool   `json:"clear,omitempty"`
	Press     string `json:"press,omitempty"`
	TabID     string `json:"tabId,omitempty"`
	WaitMs    int    `json:"waitMs,omitempty"`
	TimeoutMs int    `json:"timeoutMs,omitempty"`
}

func (h *handlers) enter(ctx context.Context, s *contextLease, in typeIn) (acted, error) {
	e := element{Selector: in.Selector, Index: in.Index, Action: "type", Value: in.Text, Clear: in.Clear}
	return s.act(ctx, in.TabID, in.WaitMs, in.TimeoutMs, e, func(ctx context.Context, t *tab, _ found) error {
		if in.Clear && in.Text == "" {
			if err := t.sendKey(ctx, kb.Delete); err != nil {
				return err
			}
		}
		if in.Text != "" {
			if _, err := call(ctx, t.session, input.InsertText, input.InsertTextParams{Text: in.Text}); err != nil {
				return err
			}
		}
		if key, ok := keys()[in.Press]; ok {
			return t.sendKey(ctx, key)
		}
		return nil
	})
}

// keys are those chrome_type can press.
func keys() map[string]string {
	return map[string]string{
		"Enter": kb.Enter, "Tab": kb.Tab, "Escape": kb.Escape, "Backspace": kb.Backspace, "Delete": kb.Delete,
		"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
		"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
	}
}

// sendKey presses one key.
func (t *tab) sendKey(ctx context.Context, key string) error {
	for _, r := range key {
		for _, event := range kb.Encode(r) {
			if _, err := call(ctx, t.session, input.DispatchKeyEvent, *event); err != nil {
				return err
			}
		}
	}
	return nil
}

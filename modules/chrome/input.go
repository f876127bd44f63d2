package chrome

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/rolecall/rolecall/errcode"
)

// actionTimeout is how long an action may take by default.
const actionTimeout = 10 * time.Second

// element selects an element of a page for an action. It is the argument of locateScript.
type element struct {
	Selector string `json:"selector,omitempty"`
	Text     string `json:"text,omitempty"`
	Index    int    `json:"index,omitempty"`
	Action   string `json:"act"` // click, type, or shoot for a screenshot
	Value    string `json:"value,omitempty"`
	Clear    bool   `json:"clear,omitempty"`
}

// elementState is the state of the selected element, as locateScript returns it.
type elementState struct {
	Invalid string  `json:"invalid"` // not "" if the selector is invalid
	Count   int     `json:"count"`   // of elements that match
	Covered string  `json:"covered"` // the element that covers it
	Wrong   string  `json:"wrong"`   // why the action is impossible
	Done    bool    `json:"done"`    // the script has completed the action
	What    string  `json:"what"`    // describes the element
	X       float64 `json:"x"`       // its middle in the viewport, or for shoot its corner in the page
	Y       float64 `json:"y"`
	Width   float64 `json:"width"`
	Height  float64 `json:"height"`
}

// isActionable reports whether the action is possible now.
func (s elementState) isActionable(e element) bool {
	return s.Count > e.Index && s.Covered == "" && s.Wrong == ""
}

// locate waits until an element exists and the action is possible.
func (t *tab) locate(ctx context.Context, e element) (f elementState, err error) {
	for tried := false; ; tried = true {
		now, err := callInPage[elementState](ctx, t, locateScript, e)
		timedOut := errors.Is(context.Cause(ctx), errTimeout)
		switch {
		case err != nil && timedOut && tried:
			return f, locateError(e, f)
		case err != nil:
			return f, err
		case now.Invalid != "":
			return f, errcode.New(errcode.InvalidArguments, "selector %.200q is not a valid CSS selector", e.Selector)
		}
		if f = now; f.isActionable(e) {
			return f, nil
		}
		if !sleep(ctx, 50*time.Millisecond) && timedOut {
			return f, locateError(e, f)
		}
	}
}

// locateError returns the error for an element that was not actionable in time.
func locateError(e element, f elementState) error {
	const hint = "look at the page with chrome_content or chrome_screenshot"
	switch {
	case f.Wrong != "":
		return errcode.New(errcode.ToolExecutionFailed, "%s %s; %s", f.What, f.Wrong, hint)
	case f.Covered != "":
		return errcode.New(errcode.ToolExecutionFailed, "%s is covered by %s; %s", f.What, f.Covered, hint)
	case f.Count > 0:
		return errcode.New(errcode.ToolExecutionFailed, "%d elements match, and index %d is out of range; %s", f.Count, e.Index, hint)
	}
	return errcode.New(errcode.ToolExecutionFailed, "no visible element matches; %s", hint)
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

// actionOut is the result of chrome_click and chrome_type.
type actionOut struct {
	Element string `json:"element,omitempty"`
	pageOut
}

func (h *handlers) click(ctx context.Context, s *leasedBrowser, in clickIn) (actionOut, error) {
	if in.Selector == "" && in.Text == "" {
		return actionOut{}, errcode.New(errcode.InvalidArguments, "chrome_click needs selector or text")
	}
	e := element{Selector: in.Selector, Text: in.Text, Index: in.Index, Action: "click"}
	return s.performAction(ctx, in.TabID, in.WaitMs, in.TimeoutMs, e, func(ctx context.Context, t *tab, f elementState) error {
		return t.mouseClick(ctx, f.X, f.Y, max(in.Count, 1))
	})
}

// performAction locates an element, calls do on it, waits until the page is idle and returns
// what the tab shows then.
func (b *leasedBrowser) performAction(ctx context.Context, id string, waitMs, timeoutMs int, e element, do func(context.Context, *tab, elementState) error) (actionOut, error) {
	limit := milliseconds(timeoutMs, actionTimeout)
	return withTab(ctx, b, id, limit+milliseconds(waitMs, 0)+20*time.Second, func(ctx context.Context, t *tab) (actionOut, error) {
		search, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
		f, err := t.locate(search, e)
		if err == nil && !f.Done {
			err = do(search, t, f)
		}
		if err != nil {
			return actionOut{}, err
		}
		loading := t.waitIdle(ctx, milliseconds(waitMs, 0))
		out, err := t.describe(ctx)
		out.Loading = loading
		return actionOut{f.What, out}, err
	})
}

// mouseClick clicks count times at a point of the viewport.
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

func (h *handlers) typeInto(ctx context.Context, s *leasedBrowser, in typeIn) (actionOut, error) {
	e := element{Selector: in.Selector, Index: in.Index, Action: "type", Value: in.Text, Clear: in.Clear}
	return s.performAction(ctx, in.TabID, in.WaitMs, in.TimeoutMs, e, func(ctx context.Context, t *tab, _ elementState) error {
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

// keys returns the keys that chrome_type can press, by name.
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

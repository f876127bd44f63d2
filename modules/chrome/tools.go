package chrome

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// handlers handles the calls of the group.
type handlers struct {
	pool  *pool
	store Artifacts
}

func (h *handlers) tools() ([]tool.Tool, error) {
	var s set
	s.add(tool.New("chrome_launch", launchText, serve(h, "chrome_launch", h.launch), options(tool.Idempotent, launchInput)))
	s.add(tool.New("chrome_new_tab", newTabText, serve(h, "chrome_new_tab", h.newTab), options(tool.Mutating, newTabInput)))
	s.add(tool.New("chrome_navigate", navigateText, serve(h, "chrome_navigate", h.navigate), options(tool.Mutating, navigateInput)))
	s.add(tool.New("chrome_click", clickText, serve(h, "chrome_click", h.click), options(tool.Mutating, clickInput)))
	s.add(tool.New("chrome_type", typeText, serve(h, "chrome_type", h.enter), options(tool.Mutating, typeInput)))
	s.add(tool.New("chrome_evaluate", evaluateText, serve(h, "chrome_evaluate", h.evaluate), options(tool.Mutating, evaluateInput)))
	s.add(tool.New("chrome_content", contentText, serve(h, "chrome_content", h.content), options(tool.ReadOnly, contentInput)))
	s.add(tool.New("chrome_screenshot", screenshotText, serve(h, "chrome_screenshot", h.screenshot), options(tool.Idempotent, screenshotInput)))
	s.add(tool.New("chrome_list_tabs", listTabsText, h.listTabs, options(tool.ReadOnly, listTabsInput)))
	s.add(tool.New("chrome_close_tab", closeTabText, serve(h, "chrome_close_tab", h.closeTab), options(tool.Idempotent, closeTabInput)))
	return s.tools, s.err
}

// set collects the tools and what went wrong making them.
type set struct {
	tools []tool.Tool
	err   error
}

func (s *set) add(t tool.Tool, err error) {
	s.tools, s.err = append(s.tools, t), errors.Join(s.err, err)
}

func options(effect tool.Effect, input string) *tool.Options {
	return &tool.Options{Effect: effect, Input: json.RawMessage(input)}
}

// serve makes a tool's function of one that works in the caller's room.
func serve[In, Out any](h *handlers, name string, fn func(context.Context, *contextLease, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		c, _ := tool.Current(ctx)
		s, err := h.pool.enter(ctx, c.By)
		if err != nil {
			return out, h.explain(ctx, name, err)
		}
		defer h.pool.leave(c.By, s)
		s.proxy.resetBudget()
		out, err = fn(ctx, s, in)
		return out, h.explain(ctx, name, err)
	}
}

// explain gives an error of the machinery the code and words a model can act
// on, without what it tells of the inside.
func (h *handlers) explain(ctx context.Context, name string, err error) error {
	_, coded := errors.AsType[*errcode.Error](err)
	_, refused := errors.AsType[*cdproto.Error](err)
	switch {
	case err == nil || coded || ctx.Err() != nil:
		return err
	case errors.Is(err, errBrowserGone), errors.Is(err, errTooManyMessages):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s: the browser ended, and your tabs with it; the next call starts another", name)
	case errors.Is(err, errCrashed):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s: %v; the tab is closed, your others are as they were", name, errCrashed)
	case errors.Is(err, errClosed):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s: the tab was closed meanwhile; chrome_list_tabs lists those there are", name)
	case errors.Is(err, errTimeout):
		return errcode.Wrap(errcode.RequestTimeout, err, "%s: the page did not get there in time; whether something happened is not known: look with chrome_content or chrome_screenshot", name)
	case refused:
		return errcode.Wrap(errcode.ToolExecutionFailed, err, "%s: the browser refuses: %.300v", name, err)
	}
	h.pool.log.Error("the browser failed", "tool", name, "error", err)
	return errcode.Wrap(errcode.ToolUnavailable, err, "%s: the browser could not be started, or failed; the log has the cause", name)
}

// errTimeout: the time of a call is up.
var errTimeout = errors.New("the time of the call is up")

// on works on a tab of the caller's, within a time. A page that does not come
// back from what it does is stopped, or closed.
func on[Out any](ctx context.Context, s *contextLease, id string, limit time.Duration, fn func(context.Context, *tab) (Out, error)) (out Out, err error) {
	timed, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	t, err := s.find(timed, id)
	if err != nil {
		return out, err
	}
	inside, leave := t.within(timed)
	defer leave()
	if out, err = fn(inside, t); err == nil || timed.Err() == nil {
		return out, err
	}
	if stuck := t.stopPage(context.WithoutCancel(ctx)); stuck != nil && ctx.Err() == nil {
		return out, stuck
	}
	return out, err
}

// stopPage stops what a page does; one that does not stop is closed.
func (t *tab) stopPage(ctx context.Context) error {
	inside, leave := t.within(ctx)
	defer leave()
	inside, cancel := context.WithTimeout(inside, quickTimeout)
	defer cancel()
	_ = post(t.session, page.StopLoading, cdp.Empty{}) // the next call notices
	_ = post(t.session, runtime.TerminateExecution, cdp.Empty{})
	if _, err := call(inside, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "1"}); err == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, quickTimeout)
	defer stop()
	_ = t.close(ctx) // or the browser is broken, which is noticed elsewhere
	return errcode.New(errcode.RequestTimeout, "the page does not answer any more; its tab is closed, your others are as they were")
}

// millis gives a time in milliseconds, or what it is when none is given.
func millis(n int, otherwise time.Duration) time.Duration {
	if n == 0 {
		return otherwise
	}
	return time.Duration(n) * time.Millisecond
}

// pause waits; false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

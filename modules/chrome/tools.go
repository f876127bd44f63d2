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
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// handlers has the handlers of the tools.
type handlers struct {
	pool  *pool
	store Artifacts
}

func (h *handlers) tools() ([]tool.Tool, error) {
	var s toolSet
	s.add(tool.New("chrome_launch", launchText, handler(h, "chrome_launch", h.launch), options(tool.Idempotent, tool.FlagsOf(), launchInput)))
	s.add(tool.New("chrome_new_tab", newTabText, handler(h, "chrome_new_tab", h.newTab), options(tool.Mutating, tool.FlagsOf(tool.Untrusted, tool.Outside), newTabInput)))
	s.add(tool.New("chrome_navigate", navigateText, handler(h, "chrome_navigate", h.navigate), options(tool.Mutating, tool.FlagsOf(tool.Untrusted, tool.Outside), navigateInput)))
	s.add(tool.New("chrome_click", clickText, handler(h, "chrome_click", h.click), options(tool.Mutating, tool.FlagsOf(tool.Untrusted, tool.Outside), clickInput)))
	s.add(tool.New("chrome_type", typeText, handler(h, "chrome_type", h.typeInto), options(tool.Mutating, tool.FlagsOf(tool.Untrusted, tool.Outside), typeInput)))
	s.add(tool.New("chrome_evaluate", evaluateText, handler(h, "chrome_evaluate", h.evaluate), options(tool.Mutating, tool.FlagsOf(tool.Untrusted, tool.Outside), evaluateInput)))
	s.add(tool.New("chrome_content", contentText, handler(h, "chrome_content", h.content), options(tool.ReadOnly, tool.FlagsOf(tool.Untrusted), contentInput)))
	s.add(tool.New("chrome_screenshot", screenshotText, handler(h, "chrome_screenshot", h.screenshot), options(tool.Idempotent, tool.FlagsOf(tool.Untrusted), screenshotInput)))
	s.add(tool.New("chrome_list_tabs", listTabsText, h.listTabs, options(tool.ReadOnly, tool.FlagsOf(tool.Untrusted), listTabsInput)))
	s.add(tool.New("chrome_close_tab", closeTabText, handler(h, "chrome_close_tab", h.closeTab), options(tool.Idempotent, tool.FlagsOf(), closeTabInput)))
	return s.tools, s.err
}

// toolSet collects tools and the errors of making them.
type toolSet struct {
	tools []tool.Tool
	err   error
}

func (s *toolSet) add(t tool.Tool, err error) {
	s.tools, s.err = append(s.tools, t), errors.Join(s.err, err)
}

func options(effect tool.Effect, flags tool.Flags, input string) *tool.Options {
	return &tool.Options{Effect: effect, Flags: flags, Input: json.RawMessage(input)}
}

// handler returns a tool function that calls fn with the browser of the caller.
func handler[In, Out any](h *handlers, name string, fn func(context.Context, *leasedBrowser, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		c, _ := tool.CurrentCall(ctx)
		s, err := h.pool.acquire(ctx, c.By)
		if err == nil {
			out, err = useBrowser(ctx, h.pool, s, in, fn)
		}
		err = h.toolError(ctx, name, err)
		return out, h.reportLoss(ctx, c.By, &out, err)
	}
}

// useBrowser calls fn with a browser that it releases.
func useBrowser[In, Out any](ctx context.Context, p *pool, b *leasedBrowser, in In, fn func(context.Context, *leasedBrowser, In) (Out, error)) (out Out, err error) {
	defer func() {
		p.release(b, ctx.Err() != nil || isTimeout(err))
		if isEnd(err) {
			p.awaitEnd(b) // then the reason is known
		}
	}()
	b.proxy.resetBudget()
	if err := b.restoreKey(ctx); err != nil {
		return out, err
	}
	return fn(ctx, b, in)
}

// reportLoss adds to a result or an error why the caller has lost the browser of earlier calls.
func (h *handlers) reportLoss(ctx context.Context, by identity.Principal, out any, err error) error {
	if ctx.Err() != nil { // the result is not read
		return err
	}
	lost := h.pool.takeLoss(by)
	if lost == "" {
		return err
	}
	if err != nil {
		return withLoss(err, lost)
	}
	if r, ok := out.(interface{ setLost(string) }); ok {
		r.setLost(lost)
	}
	return nil
}

// isTimeout reports whether a call has stopped its page because it timed out.
func isTimeout(err error) bool {
	return errors.Is(err, errTimeout) || errcode.CodeOf(err) == errcode.RequestTimeout
}

// isEnd reports whether a call failed because the browser has ended.
func isEnd(err error) bool {
	return errors.Is(err, errBrowserGone) || errors.Is(err, errTooManyMessages)
}

// toolError converts an internal error to one with a code and a text that a model can act on,
// without internal details. Other errors and nil are returned unchanged.
func (h *handlers) toolError(ctx context.Context, name string, err error) error {
	_, coded := errors.AsType[*errcode.Error](err)
	_, rejected := errors.AsType[*cdproto.Error](err)
	switch {
	case err == nil || coded || ctx.Err() != nil:
		return err
	case isEnd(err):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s: the browser ended; the next call starts a new one", name)
	case errors.Is(err, errCrashed):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s: %v; the tab is closed, your other tabs are unchanged", name, errCrashed)
	case errors.Is(err, errClosed):
		return errcode.Wrap(errcode.ToolUnavailable, err, "%s: the tab was closed meanwhile; chrome_list_tabs lists your tabs", name)
	case errors.Is(err, errTimeout):
		return errcode.Wrap(errcode.RequestTimeout, err, "%s: timed out; whether it had an effect is unknown: check with chrome_content or chrome_screenshot", name)
	case rejected:
		return errcode.Wrap(errcode.ToolExecutionFailed, err, "%s: the browser rejected the command: %.300v", name, err)
	}
	h.pool.log.Error("browser failed", "tool", name, "error", err)
	return errcode.Wrap(errcode.ToolUnavailable, err, "%s: the browser could not be started, or failed; see the log", name)
}

// errTimeout is the cause of a context whose call has timed out.
var errTimeout = errors.New("the call timed out")

// withTab calls fn with a tab of the caller, which findTab finds by id, for at most limit. When
// that or a shorter time of fn is over, the page is stopped, or closed if that is not possible.
func withTab[Out any](ctx context.Context, s *leasedBrowser, id string, limit time.Duration, fn func(context.Context, *tab) (Out, error)) (out Out, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	t, err := s.findTab(limited, id)
	if err != nil {
		return out, err
	}
	tabCtx, release := t.withContext(limited)
	defer release()
	if out, err = fn(tabCtx, t); err == nil || limited.Err() == nil && !errors.Is(err, errTimeout) {
		return out, err
	}
	if closed := t.stopPage(context.WithoutCancel(ctx)); closed != nil && ctx.Err() == nil {
		return out, closed
	}
	return out, err
}

// stopPage stops loading and scripts of a page. If the page does not respond then, it closes
// the tab and returns an error.
func (t *tab) stopPage(ctx context.Context) error {
	tabCtx, release := t.withContext(ctx)
	defer release()
	tabCtx, cancel := context.WithTimeout(tabCtx, quickTimeout)
	defer cancel()
	_ = post(t.session, page.StopLoading, cdp.Empty{}) // Evaluate notices a failure
	_ = post(t.session, runtime.TerminateExecution, cdp.Empty{})
	if _, err := call(tabCtx, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "1"}); err == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, quickTimeout)
	defer stop()
	_ = t.close(ctx) // an error means that the connection has ended, which the next call notices
	return errcode.New(errcode.RequestTimeout, "the page stopped responding; its tab is closed, your other tabs are unchanged")
}

// milliseconds returns n milliseconds, or def if n is 0.
func milliseconds(n int, def time.Duration) time.Duration {
	if n == 0 {
		return def
	}
	return time.Duration(n) * time.Millisecond
}

// sleep waits for d and reports whether ctx has not ended before.
func sleep(ctx context.Context, d time.Duration) bool {
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

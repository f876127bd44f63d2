package chrome

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	_ "image/jpeg" // decodes the size of screenshots
	_ "image/png"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

type evaluateIn struct {
	Expression string `json:"expression"`
	TabID      string `json:"tabId,omitempty"`
	TimeoutMs  int    `json:"timeoutMs,omitempty"`
}

type evaluatedOut struct {
	TabID string          `json:"tabId"`
	Value json.RawMessage `json:"value"`
	notice
}

func (h *handlers) evaluate(ctx context.Context, s *leasedBrowser, in evaluateIn) (evaluatedOut, error) {
	return withTab(ctx, s, in.TabID, milliseconds(in.TimeoutMs, actionTimeout), func(ctx context.Context, t *tab) (evaluatedOut, error) {
		value, err := t.evaluate(ctx, in.Expression)
		return evaluatedOut{TabID: t.id, Value: value}, err
	})
}

type contentIn struct {
	TabID    string `json:"tabId,omitempty"`
	Format   string `json:"format,omitempty"`
	Selector string `json:"selector,omitempty"`
	Offset   int    `json:"offset,omitempty"`
	Length   int    `json:"length,omitempty"`
}

type contentOut struct {
	TabID   string `json:"tabId"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Content string `json:"content"`
	Offset  int    `json:"offset"`
	Length  int    `json:"length"` // in UTF-16 units, as offset and size
	Size    int    `json:"size"`

	Truncated  bool   `json:"truncated"`            // more follows the part
	NextOffset int    `json:"nextOffset,omitempty"` // where it follows
	Fault      string `json:"fault,omitempty"`
	notice
}

// contentScript returns a part of the text or HTML of an element, as contentOut. The part
// does not split a character of two units, but has at least one character.
const contentScript = `({format, selector, offset, length}) => {
	let e = format === 'html' ? document.documentElement : document.body ?? document.documentElement;
	try { if (selector) e = document.querySelector(selector); } catch { return {fault: 'selector'}; }
	if (!e) return {fault: 'none'};
	const all = (format === 'html' ? e.outerHTML : e.innerText ?? e.textContent) ?? '';
	let end = Math.min(offset + length, all.length);
	const splits = end < all.length && all.codePointAt(end - 1) > 0xffff;
	if (splits) end += end - 1 > offset ? -1 : 1;
	const content = all.slice(offset, end), truncated = end < all.length;
	return {url: location.href.slice(0, 8192), title: document.title.slice(0, 1000), content: content.toWellFormed(), offset, length: content.length, size: all.length, truncated, ...(truncated && {nextOffset: end})};
}`

func (h *handlers) content(ctx context.Context, s *leasedBrowser, in contentIn) (contentOut, error) {
	if in.Length == 0 {
		in.Length = 50_000
	}
	return withTab(ctx, s, in.TabID, actionTimeout, func(ctx context.Context, t *tab) (contentOut, error) {
		out, err := callInPage[contentOut](ctx, t, contentScript, map[string]any{
			"format": in.Format, "selector": in.Selector, "offset": in.Offset, "length": min(in.Length, maxValueLength),
		})
		out.TabID = t.id
		switch out.Fault {
		case "selector":
			err = errcode.New(errcode.InvalidArguments, "selector %.200q is not a valid CSS selector", in.Selector)
		case "none":
			err = errcode.New(errcode.ToolExecutionFailed, "no element of the page matches selector %.200q", in.Selector)
		}
		return out, err
	})
}

type screenshotIn struct {
	TabID    string `json:"tabId,omitempty"`
	Selector string `json:"selector,omitempty"`
	FullPage bool   `json:"fullPage,omitempty"`
	Format   string `json:"format,omitempty"`
}

type screenshotOut struct {
	TabID     string `json:"tabId"`
	Ref       string `json:"artifactRef,omitempty"`
	Data      []byte `json:"data,omitempty"` // in place of Ref, for callers without artifacts
	MediaType string `json:"mediaType"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Size      int    `json:"size"` // bytes
	notice
}

func (h *handlers) screenshot(ctx context.Context, s *leasedBrowser, in screenshotIn) (screenshotOut, error) {
	return withTab(ctx, s, in.TabID, 30*time.Second, func(ctx context.Context, t *tab) (screenshotOut, error) {
		shot, err := t.screenshot(ctx, in)
		if err != nil {
			return screenshotOut{}, err
		}
		size, format, err := image.DecodeConfig(bytes.NewReader(shot))
		if err != nil {
			return screenshotOut{}, errcode.Wrap(errcode.ToolExecutionFailed, err, "the browser returned no valid image")
		}
		out := screenshotOut{TabID: t.id, MediaType: "image/" + format, Width: size.Width, Height: size.Height, Size: len(shot)}
		return h.saveImage(ctx, t, out, shot)
	})
}

// saveImage stores an image as an artifact of the caller. Callers without artifacts get the
// image in the result.
func (h *handlers) saveImage(ctx context.Context, t *tab, out screenshotOut, shot []byte) (screenshotOut, error) {
	c, _ := tool.CurrentCall(ctx)
	if c.By.Kind != identity.Agent && c.By.Kind != identity.Caller || h.store == nil {
		out.Data = shot
		return out, nil
	}
	info, err := t.info(ctx)
	if err != nil {
		return out, err
	}
	meta, err := json.Marshal(map[string]any{"url": info.URL, "title": info.Title, "width": out.Width, "height": out.Height})
	if err == nil {
		out.Ref, err = h.store.PutImage(ctx, c, out.MediaType, shot, meta)
	}
	return out, err
}

// maxPixels limits a screenshot, which is decoded in memory.
const maxPixels = 32 << 20

// screenshot takes a screenshot and returns the encoded image.
func (t *tab) screenshot(ctx context.Context, in screenshotIn) ([]byte, error) {
	if _, err := call(ctx, t.session, page.BringToFront, cdp.Empty{}); err != nil {
		return nil, err
	}
	p := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormat(in.Format)}
	clip, err := t.clip(ctx, in)
	if err != nil {
		return nil, err
	}
	if clip != nil {
		beyond := true
		clip.Width = min(max(clip.Width, 1), 8192)
		clip.Height = min(max(clip.Height, 1), float64(int(maxPixels/clip.Width)), 16384)
		p.Clip, p.CaptureBeyondViewport = clip, &beyond
	}
	shot, err := call(ctx, t.session, page.CaptureScreenshot, p)
	return shot.Data, err
}

// clip returns the part of the page to take, nil for the viewport.
func (t *tab) clip(ctx context.Context, in screenshotIn) (*page.Viewport, error) {
	if in.Selector != "" {
		search, cancel := context.WithTimeoutCause(ctx, actionTimeout, errTimeout)
		defer cancel()
		f, err := t.locate(search, element{Selector: in.Selector, Action: "shoot"})
		return &page.Viewport{X: f.X, Y: f.Y, Width: f.Width, Height: f.Height, Scale: 1}, err
	}
	if !in.FullPage {
		return nil, nil
	}
	v, err := callInPage[page.Viewport](ctx, t, `() => { const e = document.documentElement; return {x: 0, y: 0, width: e.scrollWidth, height: e.scrollHeight, scale: 1}; }`, nil)
	return &v, err
}

// info returns URL and title of the tab. It gets them from the browser, not from the page.
func (t *tab) info(ctx context.Context) (target.Info, error) {
	got, err := call(ctx, t.owner.browser.root, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: t.target})
	if err != nil || got.TargetInfo == nil {
		return target.Info{}, err
	}
	return *got.TargetInfo, nil
}

type listTabsIn struct{}

type tabOut struct {
	TabID   string `json:"tabId"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Current bool   `json:"current,omitempty"` // the tab that a call without tabId uses
}

type tabsOut struct {
	Tabs []tabOut `json:"tabs"`
	notice
}

// listTabs lists the tabs of the caller. It does not start a browser.
func (h *handlers) listTabs(ctx context.Context, in listTabsIn) (out tabsOut, err error) {
	c, _ := tool.CurrentCall(ctx)
	out.Tabs = []tabOut{}
	if s := h.pool.acquireExisting(c.By); s != nil {
		out, err = useBrowser(ctx, h.pool, s, in, h.describeTabs)
	}
	err = h.toolError(ctx, "chrome_list_tabs", err)
	return out, h.reportLoss(ctx, c.By, &out, err)
}

// describeTabs returns the tabs of a browser.
func (h *handlers) describeTabs(ctx context.Context, s *leasedBrowser, _ listTabsIn) (tabsOut, error) {
	out := tabsOut{Tabs: []tabOut{}}
	tabs := s.list()
	for i, t := range tabs {
		info, err := t.info(ctx)
		if err != nil {
			if t.ctx.Err() != nil { // the tab was closed meanwhile
				continue
			}
			return out, err
		}
		out.Tabs = append(out.Tabs, tabOut{t.id, textutil.Truncate(info.URL, maxURL), textutil.Truncate(info.Title, maxTitle), i == len(tabs)-1})
	}
	return out, nil
}

// maxURL and maxTitle limit what a page can put into results, in bytes.
const (
	maxURL   = 8192
	maxTitle = 1000
)

type closeTabIn struct {
	TabID string `json:"tabId"`
}

type closedOut struct {
	OK bool `json:"ok"` // false: there was no such tab
	notice
}

func (h *handlers) closeTab(ctx context.Context, s *leasedBrowser, in closeTabIn) (closedOut, error) {
	for _, t := range s.list() {
		if t.id == in.TabID {
			ctx, cancel := context.WithTimeoutCause(ctx, actionTimeout, errTimeout)
			defer cancel()
			return closedOut{OK: true}, t.close(ctx)
		}
	}
	return closedOut{}, nil
}

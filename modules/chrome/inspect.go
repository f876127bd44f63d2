package chrome

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	_ "image/jpeg" // reads the size of screenshots
	_ "image/png"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
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
}

func (h *handlers) evaluate(ctx context.Context, s *contextLease, in evaluateIn) (evaluatedOut, error) {
	return on(ctx, s, in.TabID, millis(in.TimeoutMs, actTime), func(ctx context.Context, t *tab) (evaluatedOut, error) {
		value, err := t.evaluate(ctx, in.Expression)
		return evaluatedOut{t.id, value}, err
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
	Fault   string `json:"fault,omitempty"`
}

const contentScript = `({format, selector, offset, length}) => {
	let e = format === 'html' ? document.documentElement : document.body ?? document.documentElement;
	try { if (selector) e = document.querySelector(selector); } catch { return {fault: 'selector'}; }
	if (!e) return {fault: 'none'};
	const all = (format === 'html' ? e.outerHTML : e.innerText ?? e.textContent) ?? '';
	const content = all.slice(offset, offset + length);
	return {url: location.href.slice(0, 8192), title: document.title.slice(0, 1000), content: content.toWellFormed(), offset, length: content.length, size: all.length};
}`

func (h *handlers) content(ctx context.Context, s *contextLease, in contentIn) (contentOut, error) {
	if in.Length == 0 {
		in.Length = 50_000
	}
	return on(ctx, s, in.TabID, actTime, func(ctx context.Context, t *tab) (contentOut, error) {
		out, err := ask[contentOut](ctx, t, contentScript, map[string]any{
			"format": in.Format, "selector": in.Selector, "offset": in.Offset, "length": min(in.Length, maxValue),
		})
		out.TabID = t.id
		switch out.Fault {
		case "selector":
			err = errcode.New(errcode.InvalidArguments, "selector %.200q is no CSS selector", in.Selector)
		case "none":
			err = errcode.New(errcode.ToolExecutionFailed, "no element of the page fits selector %.200q", in.Selector)
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
	Data      []byte `json:"data,omitempty"` // of who can have no artifacts
	MediaType string `json:"mediaType"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Size      int    `json:"size"` // bytes
}

func (h *handlers) screenshot(ctx context.Context, s *contextLease, in screenshotIn) (screenshotOut, error) {
	return on(ctx, s, in.TabID, 30*time.Second, func(ctx context.Context, t *tab) (screenshotOut, error) {
		shot, err := t.screenshot(ctx, in)
		if err != nil {
			return screenshotOut{}, err
		}
		size, format, err := image.DecodeConfig(bytes.NewReader(shot))
		if err != nil {
			return screenshotOut{}, errcode.Wrap(errcode.ToolExecutionFailed, err, "the browser gave no image")
		}
		out := screenshotOut{TabID: t.id, MediaType: "image/" + format, Width: size.Width, Height: size.Height, Size: len(shot)}
		return h.saveImage(ctx, t, out, shot)
	})
}

// saveImage puts an image into an artifact of the caller's. Who can have none gets
// the image.
func (h *handlers) saveImage(ctx context.Context, t *tab, out screenshotOut, shot []byte) (screenshotOut, error) {
	c, _ := tool.Current(ctx)
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

// maxPixels bounds a screenshot: it is unpacked in memory.
const maxPixels = 32 << 20

// screenshot takes a picture of what in asks for.
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

// clip gives the part of the page that is meant, nil for what is in view.
func (t *tab) clip(ctx context.Context, in screenshotIn) (*page.Viewport, error) {
	if in.Selector != "" {
		search, cancel := context.WithTimeoutCause(ctx, actTime, errTimeout)
		defer cancel()
		f, err := t.locate(search, element{Selector: in.Selector, Action: "shoot"})
		return &page.Viewport{X: f.X, Y: f.Y, Width: f.Width, Height: f.Height, Scale: 1}, err
	}
	if !in.FullPage {
		return nil, nil
	}
	v, err := ask[page.Viewport](ctx, t, `() => { const e = document.documentElement; return {x: 0, y: 0, width: e.scrollWidth, height: e.scrollHeight, scale: 1}; }`, nil)
	return &v, err
}

// info asks the browser, not the page.
func (t *tab) info(ctx context.Context) (target.Info, error) {
	got, err := call(ctx, t.room.program.root, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: t.target})
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
	Current bool   `json:"current,omitempty"` // the one a call without tabId is about
}

type tabsOut struct {
	Tabs []tabOut `json:"tabs"`
}

// listTabs starts no browser.
func (h *handlers) listTabs(ctx context.Context, _ listTabsIn) (tabsOut, error) {
	out := tabsOut{Tabs: []tabOut{}}
	c, _ := tool.Current(ctx)
	s := h.pool.existing(c.By)
	if s == nil {
		return out, nil
	}
	defer h.pool.leave(c.By, s)
	tabs := s.list()
	for i, t := range tabs {
		info, err := t.info(ctx)
		if err != nil { // it closed meanwhile
			if t.ctx.Err() != nil {
				continue
			}
			return out, h.explain(ctx, "chrome_list_tabs", err)
		}
		out.Tabs = append(out.Tabs, tabOut{t.id, clip(info.URL, 8192), clip(info.Title, 1000), i == len(tabs)-1})
	}
	return out, nil
}

// clip cuts a text that a page may have made long.
func clip(text string, most int) string {
	return text[:min(len(text), most)]
}

type closeTabIn struct {
	TabID string `json:"tabId"`
}

type closedOut struct {
	OK bool `json:"ok"` // false: there was no such tab
}

func (h *handlers) closeTab(ctx context.Context, s *contextLease, in closeTabIn) (closedOut, error) {
	for _, t := range s.list() {
		if t.id == in.TabID {
			timed, cancel := context.WithTimeoutCause(ctx, actTime, errTimeout)
			defer cancel()
			return closedOut{true}, t.close(timed)
		}
	}
	return closedOut{}, nil
}

package chrome_test

import (
	"bytes"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

func TestTools_NavigateAndRead(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, map[string]string{"/a": `<p>one <b>two</b></p><script>document.title='A'; document.body.append(' three')</script>`, "/b": `<meta charset=utf-8><p>a😀é😀</p>`}, nil)
	launched := a.mustCall("chrome_launch", nil)
	if !strings.Contains(launched.Browser, "Chrom") || launched.TabID == "" {
		t.Errorf("launched %+v", launched)
	}
	went := a.mustCall("chrome_navigate", obj{"url": s.URL + "/a"})
	if went.TabID != launched.TabID || went.URL != s.URL+"/a" || went.Title != "A" || went.Status != 200 || went.Loading || went.Unreachable != nil {
		t.Errorf("got %+v", went)
	}
	text := a.mustCall("chrome_content", nil)
	if !strings.Contains(text.Content, "one two") || !strings.Contains(text.Content, "three") || text.Size != text.Length {
		t.Errorf("text %+v", text)
	}
	if part := a.mustCall("chrome_content", obj{"selector": "b", "format": "html", "offset": 3, "length": 2}); part.Content != "tw" || part.Size != 10 || part.Length != 2 || !part.Truncated || part.NextOffset != 5 {
		t.Errorf("part %+v", part)
	}
	if text.Truncated || text.NextOffset != 0 {
		t.Errorf("all of the page is truncated: %+v", text)
	}
	a.mustCall("chrome_navigate", obj{"url": s.URL + "/b"})
	for length, want := range map[int][]string{1: {"a", "😀", "é", "😀"}, 2: {"a", "😀", "é", "😀"}, 3: {"a😀", "é😀"}, 5: {"a😀é", "😀"}, 6: {"a😀é😀"}} {
		var got []string
		for at, more := 0, true; more && len(got) < 9; {
			part := a.mustCall("chrome_content", obj{"selector": "p", "offset": at, "length": length})
			got, at, more = append(got, part.Content), part.NextOffset, part.Truncated
		}
		if !slices.Equal(got, want) {
			t.Errorf("parts of %d: %q, want %q", length, got, want)
		}
	}
	for length, want := range map[string]bool{"1900": false, "3000": true} {
		thrown := a.wantError(errcode.ToolExecutionFailed, "the page threw: xxx", "chrome_evaluate", obj{"expression": "throw 'x'.repeat(" + length + ")"})
		if thrown.Truncated != want {
			t.Errorf("%s characters were thrown: truncated is %v", length, thrown.Truncated)
		}
	}
	if gone := a.mustCall("chrome_navigate", obj{"url": s.URL + "/gone"}); gone.Status != 404 {
		t.Errorf("got %+v, want status 404", gone)
	}
}

// formPage is a page with elements that can and cannot be clicked or typed into.
const formPage = `<form action="/done" onsubmit="this.action='/done?' + this.q.value + this.s.value">
	<input name=q value=old> <select name=s><option>a<option value=b>Bee</select> <input id=off disabled> <button>Send it</button></form>
	<button onclick="document.body.append(' clicked')">Click me</button> <button id=under>Under</button>
	<div style="position:fixed;bottom:0;left:0;width:200px;height:2em;z-index:2" id=over>Over</div>
	<button style="position:fixed;bottom:0;left:0;width:200px;height:2em" id=covered>Covered</button>
	<a href=/next target=_blank>Window</a><p style="margin-top:3000px"><a href=/next>Far away</a></p><p style="height:1500px">`

func TestTools_ClickAndType(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, map[string]string{"/form": formPage, "/done": "<p>done", "/next": "<p>next"}, nil)
	a.mustCall("chrome_navigate", obj{"url": s.URL + "/form"})
	if got := a.mustCall("chrome_click", obj{"text": "Click me"}); !strings.Contains(got.Element, "Click me") {
		t.Errorf("clicked on %q", got.Element)
	}
	if text := a.mustCall("chrome_content", nil).Content; !strings.Contains(text, "clicked") {
		t.Errorf("text %q", text)
	}
	a.mustCall("chrome_type", obj{"selector": "[name=s]", "text": "Bee"})
	a.mustCall("chrome_type", obj{"selector": "[name=q]", "text": "new", "clear": true})
	a.wantValue("document.forms[0].q.value + document.forms[0].s.value", `"newb"`)
	a.mustCall("chrome_type", obj{"text": "er"})
	if sent := a.mustCall("chrome_type", obj{"press": "Enter"}); !strings.HasPrefix(sent.URL, s.URL+"/done") || sent.Title != "/done" {
		t.Errorf("sent: %+v", sent)
	}
	a.mustCall("chrome_navigate", obj{"url": s.URL + "/form"})
	if far := a.mustCall("chrome_click", obj{"selector": "p a"}); far.URL != s.URL+"/next" {
		t.Errorf("went to %+v", far)
	}
}

func TestTools_ReportFailures(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, map[string]string{"/form": formPage}, nil)
	a.mustCall("chrome_navigate", obj{"url": s.URL + "/form"})
	withTimeout := func(args obj) obj { args["timeoutMs"] = 1000; return args }
	a.wantError(errcode.ToolExecutionFailed, "no visible element", "chrome_click", withTimeout(obj{"selector": "#none"}))
	a.wantError(errcode.ToolExecutionFailed, "is covered by <div id=over>", "chrome_click", withTimeout(obj{"selector": "#covered"}))
	a.wantError(errcode.ToolExecutionFailed, "is disabled", "chrome_type", withTimeout(obj{"selector": "#off", "text": "a"}))
	a.wantError(errcode.ToolExecutionFailed, "has no option", "chrome_type", withTimeout(obj{"selector": "select", "text": "c"}))
	a.wantError(errcode.ToolExecutionFailed, "index 9", "chrome_click", withTimeout(obj{"selector": "button", "index": 9}))
	a.wantError(errcode.InvalidArguments, "not a valid CSS selector", "chrome_click", withTimeout(obj{"selector": "a["}))
	a.wantError(errcode.InvalidArguments, "needs selector or text", "chrome_click", nil)
	a.wantError(errcode.InvalidArguments, "not a valid CSS selector", "chrome_content", obj{"selector": "a["})
	a.wantError(errcode.ToolExecutionFailed, "no element", "chrome_content", obj{"selector": "#none"})
	a.wantError(errcode.InvalidArguments, "there is no tab", "chrome_content", obj{"tabId": "tab_none"})
	if a.mustCall("chrome_close_tab", obj{"tabId": "tab_none"}).OK {
		t.Error("closing an unknown tab succeeded")
	}
}

func TestTools_Evaluate(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; require-trusted-types-for 'script'")
		_, _ = w.Write([]byte("<p>strict"))
	})
	for _, url := range []string{"data:text/html,<p>loose", s.URL} {
		a.mustCall("chrome_navigate", obj{"url": url})
		a.wantValue("1 + 1", "2")
		a.wantValue("const x = {a: [1, 'b', null]}; x", `{"a":[1,"b",null]}`)
		a.wantValue("Promise.resolve('later')", `"later"`)
		a.wantValue("undefined", "null")
		a.wantValue("document.querySelector('p').textContent.length > 4", "true")
		a.wantError(errcode.ToolExecutionFailed, "Error: no", "chrome_evaluate", obj{"expression": "throw new Error('no')"})
		a.wantError(errcode.ToolExecutionFailed, "SyntaxError", "chrome_evaluate", obj{"expression": "1 +"})
		a.wantError(errcode.ResultTooLarge, "limit is 262144", "chrome_evaluate", obj{"expression": "'a'.repeat(262144)"})
	}
}

func TestTools_Screenshot(t *testing.T) {
	fx := sharedFixture(t)
	a := fx.agent(t)
	a.mustCall("chrome_navigate", obj{"url": "data:text/html,<body style='margin:0'><div id=d style='width:50px;height:40px;background:red'></div><p style='margin-top:2000px'>end"})
	sizes := map[string][2]int{`{}`: {1280, 800}, `{"selector":"#d"}`: {50, 40}, `{"format":"jpeg"}`: {1280, 800}}
	for args, want := range sizes {
		got := a.mustCall("chrome_screenshot", parseObj(args))
		if got.Ref != "artifact:1" || got.Width != want[0] || got.Height != want[1] || got.Size == 0 || got.Data != nil {
			t.Errorf("%s: got %+v, want %v", args, got, want)
		}
	}
	if full := a.mustCall("chrome_screenshot", obj{"fullPage": true}); full.Height < 2000 || full.MediaType != "image/png" {
		t.Errorf("full page: %+v", full)
	}
	operator := agent{t, fx, identity.ByOperator("ann")}
	operator.mustCall("chrome_navigate", obj{"url": "about:blank"})
	shot := operator.mustCall("chrome_screenshot", nil)
	if size, err := png.DecodeConfig(bytes.NewReader(shot.Data)); err != nil || size.Width != 1280 || shot.Ref != "" {
		t.Errorf("a caller without artifacts got %+v, %v", size, err)
	}
}

func TestTools_Tabs(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, map[string]string{"/a": "<a href=/b target=_blank>go</a>", "/b": "<p>b"}, nil)
	if list := a.mustCall("chrome_list_tabs", nil).Tabs; len(list) != 0 {
		t.Errorf("without a browser the tabs are %v", list)
	}
	first := a.mustCall("chrome_navigate", obj{"url": s.URL + "/a"}).TabID
	second := a.mustCall("chrome_new_tab", obj{"url": s.URL + "/b"}).TabID
	list := a.mustCall("chrome_list_tabs", nil).Tabs
	if len(list) != 2 || list[0].TabID != first || list[1].TabID != second || !list[1].Current || list[1].URL != s.URL+"/b" {
		t.Errorf("tabs %+v", list)
	}
	a.mustCall("chrome_click", obj{"tabId": first, "text": "go"})
	if list := a.mustCall("chrome_list_tabs", nil).Tabs; len(list) != 3 {
		t.Errorf("the new window is not a tab: %+v", list)
	}
	for _, tab := range []string{first, second} {
		if !a.mustCall("chrome_close_tab", obj{"tabId": tab}).OK {
			t.Errorf("%s was not open", tab)
		}
	}
	if list := a.mustCall("chrome_list_tabs", nil).Tabs; len(list) != 1 {
		t.Errorf("open tabs: %+v, want 1", list)
	}
	for range 3 {
		a.mustCall("chrome_new_tab", nil)
	}
	a.wantError(errcode.RateLimited, "4 tabs", "chrome_new_tab", nil)
}

package chrome

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/rolecall/rolecall/errcode"
)

// maxValueLength limits the value of an expression and the content of a page, in characters.
const maxValueLength = 256 << 10

// callInPage calls a JavaScript function in an isolated world of the page. The function shares the
// document with the page's own scripts and nothing else. arg and result are passed as JSON.
func callInPage[R any](ctx context.Context, t *tab, function string, arg any) (result R, err error) {
	world, err := call(ctx, t.session, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(t.target), WorldName: t.owner.helperName})
	if err != nil {
		return result, err
	}
	in, err := json.Marshal(arg)
	if err != nil {
		return result, err
	}
	yes := true
	out, err := call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "(" + function + ")(" + string(in) + ")", ContextID: world.ExecutionContextID,
		ReturnByValue: &yes, AwaitPromise: &yes,
	})
	if err != nil {
		return result, err
	}
	if d := out.ExceptionDetails; d != nil {
		return result, errcode.New(errcode.ToolExecutionFailed, "the page could not be read: %.200s", exceptionText(d))
	}
	return result, json.Unmarshal(out.Result.Value, &result)
}

// exceptionText returns the description of an exception in a page.
func exceptionText(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}

// helperScript returns a script that runs in each document before the page's own scripts. It
// defines a function of this name that evaluates code and does not return values that are
// too long. The page can call the function, but cannot change it or what it uses.
func helperScript(name string) string {
	return fmt.Sprintf(`(() => {
	const {stringify} = JSON, {defineProperty} = Object, {apply} = Reflect, {slice} = String.prototype;
	const run = async (code, limit) => {
		try {
			const json = stringify(await code());
			if (json === undefined) return '{"value":null}';
			if (json.length > limit) return '{"size":' + json.length + '}';
			return '{"value":' + json + '}';
		} catch (e) {
			let text = 'a value that is not an error was thrown';
			try { text = '' + (e && e.stack || e); } catch {}
			return stringify({__proto__: null, thrown: apply(slice, text, [0, 2000]), cut: text.length > 2000});
		}
	};
	try { defineProperty(window, %q, {value: run}); } catch {}
})()`, name)
}

// helperResult is the result of helperScript's function.
type helperResult struct {
	Value  json.RawMessage `json:"value"`
	Size   int             `json:"size"`
	Thrown string          `json:"thrown"`
	Cut    bool            `json:"cut"` // thrown is only the beginning
}

// evaluate evaluates an expression in the page's own world and returns its value as JSON.
// Variables that let and const declare exist until the call ends.
func (t *tab) evaluate(ctx context.Context, expression string) (json.RawMessage, error) {
	code, err := json.Marshal(expression)
	if err != nil {
		return nil, err
	}
	yes := true
	out, err := call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression:   "window[" + strconv.Quote(t.owner.helperName) + "](() => (0, eval)(" + string(code) + "), " + strconv.Itoa(maxValueLength) + ")",
		AwaitPromise: &yes, ReturnByValue: &yes, AllowUnsafeEvalBlockedByCSP: &yes,
	})
	if err != nil {
		return nil, err
	}
	var text string
	var result helperResult
	if out.ExceptionDetails != nil || json.Unmarshal(out.Result.Value, &text) != nil || json.Unmarshal([]byte(text), &result) != nil {
		return nil, errcode.New(errcode.ToolExecutionFailed, "chrome_evaluate: the page prevents evaluation; navigate to another page")
	}
	switch {
	case result.Thrown != "":
		thrown := errcode.New(errcode.ToolExecutionFailed, "chrome_evaluate: the page threw: %s", result.Thrown)
		if result.Cut {
			thrown = thrown.With("truncated", true)
		}
		return nil, thrown
	case result.Size > 0:
		return nil, errcode.New(errcode.ResultTooLarge, "chrome_evaluate: the value has %d characters as JSON, the limit is %d; evaluate to less", result.Size, maxValueLength)
	}
	return result.Value, nil
}

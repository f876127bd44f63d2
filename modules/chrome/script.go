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

// maxValue is the most characters that a page may answer an expression with,
// or give of its content.
const maxValue = 256 << 10

// ask calls a function of ours in the page, apart from the page's own scripts:
// they share the document and nothing else. arg goes in and result comes out
// as JSON.
func ask[R any](ctx context.Context, t *tab, function string, arg any) (result R, err error) {
	world, err := call(ctx, t.session, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(t.target), WorldName: t.room.helper})
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
		return result, errcode.New(errcode.ToolExecutionFailed, "the page could not be looked at: %.200s", thrown(d))
	}
	return result, json.Unmarshal(out.Result.Value, &result)
}

func thrown(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}

// helper is a script that runs in each document before the page's own: it
// leaves a function that evaluates and keeps what is too long to itself. The
// page can call it and cannot change it, nor what it uses.
func helper(name string) string {
	return fmt.Sprintf(`(() => {
	const {stringify} = JSON, {defineProperty} = Object, {apply} = Reflect, {slice} = String.prototype;
	const run = async (code, most) => {
		try {
			const text = stringify(await code());
			if (text === undefined) return '{"value":null}';
			if (text.length > most) return '{"size":' + text.length + '}';
			return '{"value":' + text + '}';
		} catch (e) {
			let words = 'something that is no error was thrown';
			try { words = '' + (e && e.stack || e); } catch {}
			return stringify({__proto__: null, thrown: apply(slice, words, [0, 2000])});
		}
	};
	try { defineProperty(window, %q, {value: run}); } catch {}
})()`, name)
}

// evaluated is how helper answers.
type evaluated struct {
	Value  json.RawMessage `json:"value"`
	Size   int             `json:"size"`
	Thrown string          `json:"thrown"`
}

// evaluate runs an expression among the page's own scripts and gives its value
// as JSON. The names that let and const make last until the call ends.
func (t *tab) evaluate(ctx context.Context, expression string) (json.RawMessage, error) {
	code, err := json.Marshal(expression)
	if err != nil {
		return nil, err
	}
	yes := true
	out, err := call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression:   "window[" + strconv.Quote(t.room.helper) + "](() => (0, eval)(" + string(code) + "), " + strconv.Itoa(maxValue) + ")",
		AwaitPromise: &yes, ReturnByValue: &yes, AllowUnsafeEvalBlockedByCSP: &yes,
	})
	if err != nil {
		return nil, err
	}
	var text string
	var result evaluated
	if out.ExceptionDetails != nil || json.Unmarshal(out.Result.Value, &text) != nil || json.Unmarshal([]byte(text), &result) != nil {
		return nil, errcode.New(errcode.ToolExecutionFailed, "chrome_evaluate: the page does not let anything be evaluated; navigate to another")
	}
	switch {
	case result.Thrown != "":
		return nil, errcode.New(errcode.ToolExecutionFailed, "chrome_evaluate: the page threw: %s", result.Thrown)
	case result.Size > 0:
		return nil, errcode.New(errcode.ResultTooLarge, "chrome_evaluate: the value has %d characters as JSON, the limit is %d; evaluate to less", result.Size, maxValue)
	}
	return result.Value, nil
}

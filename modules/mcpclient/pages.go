package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pageLimits counts what the pages of one list have. Together they may have as much as one
// message: since revision 2026-07-28 the library keeps all pages while the session lasts.
type pageLimits struct {
	pages  int
	size   int // bytes
	values valueCounter
}

type pageLimitsKey struct{} // the context key of *pageLimits

// withPageLimits returns a context for the requests of one list.
func withPageLimits(ctx context.Context) context.Context {
	return context.WithValue(ctx, pageLimitsKey{}, new(pageLimits))
}

// limitPages rejects the pages of a list from the first one that exceeds its limits. The library
// does not keep a page that is rejected.
func limitPages(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		l, isPage := ctx.Value(pageLimitsKey{}).(*pageLimits)
		if err != nil || !isPage {
			return result, err
		}
		if err := l.add(result); err != nil {
			return nil, err
		}
		if p, ok := req.GetParams().(*sdk.ListToolsParams); ok {
			p.Cursor = fmt.Sprint("rolecall: page ", l.pages) // replaces the page of an earlier list, see keepLast
		}
		return result, nil
	}
}

// add counts a page.
func (l *pageLimits) add(page sdk.Result) error {
	text, err := json.Marshal(page)
	if err != nil {
		return err
	}
	l.pages++
	if l.size += len(text); l.size > maxMessage {
		return fmt.Errorf("the pages of a list have more than %d MiB", maxMessage>>20)
	}
	if !l.values.add(text) {
		return fmt.Errorf("the pages of a list have more than %d values", maxMessageValues)
	}
	return nil
}

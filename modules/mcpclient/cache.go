package mcpclient

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// keepLast bounds the memory of the library. Since revision 2026-07-28 the library keeps each result
// under the URI or the cursor of its request while the session lasts, also a result that the server
// forbids to keep. With keepLast each result replaces the one before, and answers no later request.
//
// The library reads the definitions of tools for each call, so it keeps all pages of their last list: see
// limitPages.
func keepLast(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		switch p := req.GetParams().(type) { // the library reads the key there after the request
		case *sdk.ReadResourceParams:
			p.URI = ""
		case *sdk.ListResourcesParams:
			p.Cursor = ""
		case *sdk.ListResourceTemplatesParams:
			p.Cursor = ""
		case *sdk.ListPromptsParams:
			p.Cursor = ""
		}
		switch r := result.(type) { // first pages have the key "" too; no resource has
		case *sdk.ListToolsResult:
			r.TTLMs = 0
		case *sdk.ListResourcesResult:
			r.TTLMs = 0
		case *sdk.ListResourceTemplatesResult:
			r.TTLMs = 0
		case *sdk.ListPromptsResult:
			r.TTLMs = 0
		}
		return result, nil
	}
}

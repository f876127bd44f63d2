package mcpserver

import (
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"
)

// maxEnvelope limits the bytes of a message, or of a batch, without the arguments of
// tools/call and prompts/get. The SDK decodes this part into maps, which take up to sixty
// times its size, and keeps some of them as long as the session.
const maxEnvelope = 64 << 10

// envelopeError describes a message that exceeds maxEnvelope.
var envelopeError = fmt.Sprintf("the message without its arguments has more than %d bytes", maxEnvelope)

// envelopeTooLarge reports whether a body exceeds maxEnvelope. The body has passed
// strictjson.CheckKeys.
func envelopeTooLarge(body []byte) bool {
	if len(body) <= maxEnvelope {
		return false
	}
	size := len(body)
	doc := gjson.ParseBytes(body)
	if !doc.IsArray() {
		return size-argumentsSize(doc) > maxEnvelope
	}
	doc.ForEach(func(_, message gjson.Result) bool {
		size -= argumentsSize(message)
		return true
	})
	return size > maxEnvelope
}

// argumentsSize returns the size of the arguments of a message, which the SDK does not
// decode into maps of any values.
func argumentsSize(message gjson.Result) int {
	switch message.Get("method").Str {
	case methodCallTool, methodGetPrompt:
		return len(message.Get("params.arguments").Raw)
	}
	return 0
}

// dropUnusedParams removes what the SDK would keep of req as long as the session, but does
// not use.
func dropUnusedParams(req sdk.Request) {
	switch params := req.GetParams().(type) {
	case *sdk.InitializeParams:
		if params != nil {
			*params = sdk.InitializeParams{ProtocolVersion: params.ProtocolVersion, Capabilities: abilitiesOf(params.Capabilities).capabilities()}
		}
	case *sdk.InitializedParams:
		if params != nil {
			*params = sdk.InitializedParams{}
		}
	}
}

package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

const (
	maxDeniedArgs    = 512     // bytes of the arguments of a denied call, or of a prompt, that are recorded
	maxRedactedInput = 4 << 10 // bytes that are searched for secrets, so that a denial stays cheap
)

// recordDeniedArgs records the arguments of a denied call: hash, size, and their start
// without secrets. They may contain anything, so the start is text.
func (ec *externalCall) recordDeniedArgs(ctx context.Context, e *journal.ToolCall, c *gate.Admission) {
	if c.Allowed() {
		return
	}
	e.ArgsHash, e.ArgsSize, e.ArgsStart = hashOf(c.Request.Args), len(c.Request.Args), ec.rt.redactedStart(ctx, c.Request.Args)
}

// redactedStart returns the start of arguments without secrets.
func (rt *Runtime) redactedStart(ctx context.Context, args json.RawMessage) string {
	start := args[:min(len(args), maxRedactedInput)]
	if rt.config.Redact != nil {
		start = rt.config.Redact(start)
	}
	start = redact.New(credentialTexts(ctx)...).RedactJSON(start)
	return textutil.Prefix(strings.ToValidUTF8(string(start), "\uFFFD"), maxDeniedArgs)
}

// maxCredentials is how many credentials of a caller are searched for.
const maxCredentials = 32

// credentialTexts returns the tokens and secure arguments that the caller sent with the call,
// as far as they fit what is searched.
func credentialTexts(ctx context.Context) []string {
	sent := tool.CredentialsOf(ctx)
	list := slices.Collect(maps.Values(sent.Tokens))
	var secure map[string]any
	_ = json.Unmarshal(sent.Secure, &secure) // they are not validated
	for _, value := range secure {
		list = append(list, fmt.Sprint(value))
	}
	list = slices.DeleteFunc(list, func(text string) bool { return len(text) > maxRedactedInput })
	return list[:min(len(list), maxCredentials)]
}

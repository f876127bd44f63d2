package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// contextTools returns compress_context and get_context_status.
func contextTools(c ContextManager) ([]tool.Tool, error) {
	h := contextHandler{c}
	var s toolBuilder
	s.add(tool.New("compress_context", compressContextText, withErrorCode(h.compress), toolOptions(tool.Idempotent, tool.FlagsOf(), compressContextInput)))
	s.add(tool.New("get_context_status", contextStatusText, withErrorCode(h.status), toolOptions(tool.ReadOnly, tool.FlagsOf(), contextStatusInput)))
	return s.tools, s.err
}

// contextHandler handles the calls of the context group.
type contextHandler struct{ contexts ContextManager }

const compressContextText = `Replace the older part of your conversation by your summary of it. Afterwards you see only the summary: put everything in that you still need.`

// The schema accepts a blank summary, because it has its own error code.
const compressContextInput = `{
	"type": "object",
	"properties": {
		"summary": {
			"type": "string",
			"description": "What you need to remember.",
			"maxLength": 200000
		},
		"keepRecentCount": {
			"type": "integer",
			"description": "How many of the latest entries stay.",
			"minimum": 0,
			"maximum": 1000,
			"default": 10
		}
	},
	"required": ["summary"],
	"additionalProperties": false
}`

// defaultKeep is the default of keepRecentCount.
const defaultKeep = 10

// compressContext holds the arguments of compress_context.
type compressContext struct {
	Summary string `json:"summary"`
	Keep    *int   `json:"keepRecentCount,omitempty"` // nil means defaultKeep; 0 keeps none
}

// compressResult is the result of compress_context.
type compressResult struct {
	OK         bool `json:"ok"`
	Compressed bool `json:"compressed"`
	Before     int  `json:"originalCount"`
	After      int  `json:"newCount"`
}

// compress handles compress_context.
func (h contextHandler) compress(ctx context.Context, in compressContext) (compressResult, error) {
	if strings.TrimSpace(in.Summary) == "" {
		return compressResult{}, errcode.New(errcode.InvalidSummary,
			"compress context: the summary is blank, nothing was replaced; write what you need to remember of the replaced messages").With("ok", false)
	}
	if _, err := callingAgent(ctx, noContextHint); err != nil {
		return compressResult{}, err
	}
	keep := defaultKeep
	if in.Keep != nil {
		keep = *in.Keep
	}
	c, err := h.contexts.CompressContext(ctx, currentCall(ctx), in.Summary, keep)
	return compressResult{true, c.Done, c.Before, c.After}, err
}

const contextStatusText = `See how full your context is.`

const contextStatusInput = `{
	"type": "object",
	"properties": {},
	"additionalProperties": false
}`

// contextStatus is the result of get_context_status. Used and Max are tokens.
type contextStatus struct {
	Used       int        `json:"usedTokens"`
	Max        int        `json:"maxTokens"`
	Usage      float64    `json:"usagePercent"`
	Percent    string     `json:"usagePercentStr"`
	Status     string     `json:"status"`
	Thresholds thresholds `json:"thresholds"`
}

// thresholds are the usage ratios at which a status begins.
type thresholds struct {
	Warning  float64 `json:"warning"`
	Critical float64 `json:"critical"`
	Exceeded float64 `json:"exceeded"`
}

// status handles get_context_status.
func (h contextHandler) status(ctx context.Context, _ struct{}) (contextStatus, error) {
	agent, err := callingAgent(ctx, noContextHint)
	if err != nil {
		return contextStatus{}, err
	}
	used, limit, err := h.contexts.ContextUsage(ctx, agent)
	return statusOf(used, limit), err
}

// noContextHint tells callers other than agents why the tools do not work.
const noContextHint = "your conversation is not stored here"

// statusOf returns the status of a context with a limit of tokens; 0 is an
// unknown limit.
func statusOf(used, limit int) contextStatus {
	usage := model.WindowUsage{Used: used, Window: limit}
	return contextStatus{
		Used: used, Max: limit, Usage: usage.Share(), Percent: fmt.Sprintf("%.1f%%", 100*usage.Share()), Status: string(usage.Level()),
		Thresholds: thresholds{Warning: model.WarningShare, Critical: model.CriticalShare, Exceeded: model.ExceededShare},
	}
}

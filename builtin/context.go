package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// contextTools makes compress_context and get_context_status over c.
func contextTools(c Contexts) ([]tool.Tool, error) {
	h := conversations{c}
	var s toolBuilder
	s.add(tool.New("compress_context", compressContextText, guarded(h.compress), options(tool.Idempotent, compressContextInput)))
	s.add(tool.New("get_context_status", contextStatusText, guarded(h.status), options(tool.ReadOnly, contextStatusInput)))
	return s.tools, s.err
}

// conversations handles the calls of the context group.
type conversations struct{ contexts Contexts }

const compressContextText = `Replace the older part of your conversation by a summary you write, so that you can go on working. ` +
	`Use it when get_context_status or your system prompt says warning or worse. ` +
	`You will no longer see what is replaced, an earlier summary included: put every decision, open question, id, path and artifact reference you still need into the summary. ` +
	`Your system prompt and task brief stay, and so do the last keepRecentCount entries (messages, your answers, results), ` +
	`or some more where an answer would lose its results. Answers {ok, compressed, originalCount, newCount}, where a summary counts as one entry; ` +
	`compressed is false when there was nothing to replace. ` +
	`Example: {"summary":"Goal: … Done: … Open: …","keepRecentCount":10}`

// A blank summary has an error code of its own, so the schema lets it pass.
const compressContextInput = `{
	"type": "object",
	"properties": {
		"summary": {
			"type": "string",
			"description": "What you need to remember of the messages that are replaced. Not blank.",
			"maxLength": 200000
		},
		"keepRecentCount": {
			"type": "integer",
			"description": "How many of the latest entries stay as they are; 0 keeps none but this answer.",
			"minimum": 0,
			"maximum": 1000,
			"default": 10
		}
	},
	"required": ["summary"],
	"additionalProperties": false
}`

const defaultKeep = 10

type compressContext struct {
	Summary string `json:"summary"`
	Keep    *int   `json:"keepRecentCount,omitempty"` // nil is defaultKeep; 0 keeps none
}

type compression struct {
	OK         bool `json:"ok"`
	Compressed bool `json:"compressed"`
	Before     int  `json:"originalCount"`
	After      int  `json:"newCount"`
}

func (h conversations) compress(ctx context.Context, in compressContext) (compression, error) {
	if strings.TrimSpace(in.Summary) == "" {
		return compression{}, errcode.New(errcode.InvalidSummary,
			"compress the context: summary is blank and nothing was replaced; write what you need to remember of the messages it replaces").With("ok", false)
	}
	if _, err := callingAgent(ctx, withoutContext); err != nil {
		return compression{}, err
	}
	keep := defaultKeep
	if in.Keep != nil {
		keep = *in.Keep
	}
	c, err := h.contexts.Compress(ctx, caller(ctx), in.Summary, keep)
	return compression{true, c.Done, c.Before, c.After}, err
}

const contextStatusText = `See how full your context is: the part of your conversation the model can read at once. ` +
	`Use it during long work; from warning on, call compress_context. ` +
	`Answers {usedTokens, maxTokens, usagePercent, usagePercentStr, status, thresholds}; usedTokens is what the model's provider counted, ` +
	`an estimate where it counts nothing; usagePercent is a share, 1 for full; ` +
	`status is normal, warning (from 0.7), critical (from 0.9) or exceeded (from 0.95: the next answer may fail as context_limit_exceeded). Takes no arguments. Example: {}`

const contextStatusInput = `{
	"type": "object",
	"properties": {},
	"additionalProperties": false
}`

type contextStatus struct {
	Used       int        `json:"usedTokens"`
	Max        int        `json:"maxTokens"`
	Usage      float64    `json:"usagePercent"`
	Percent    string     `json:"usagePercentStr"`
	Status     string     `json:"status"`
	Thresholds thresholds `json:"thresholds"`
}

// thresholds are the shares of the context at which a status begins.
type thresholds struct {
	Warning  float64 `json:"warning"`
	Critical float64 `json:"critical"`
	Exceeded float64 `json:"exceeded"`
}

func (h conversations) status(ctx context.Context, _ struct{}) (contextStatus, error) {
	agent, err := callingAgent(ctx, withoutContext)
	if err != nil {
		return contextStatus{}, err
	}
	used, limit, err := h.contexts.ContextUsage(ctx, agent)
	return statusOf(used, limit), err
}

// withoutContext is what is told to those whose conversation is not kept here.
const withoutContext = "your conversation is not kept here: do without"

func statusOf(used, limit int) contextStatus {
	usage := model.WindowUsage{Used: used, Window: limit}
	return contextStatus{
		Used: used, Max: limit, Usage: usage.Share(), Percent: fmt.Sprintf("%.1f%%", 100*usage.Share()), Status: string(usage.Level()),
		Thresholds: thresholds{Warning: model.WarningShare, Critical: model.CriticalShare, Exceeded: model.ExceededShare},
	}
}

package runtime

import (
	"context"
	"slices"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/tool"
)

// assumedWindow is the assumed context window of models other than language
// models, in tokens.
const assumedWindow = 128_000

// ContextUsage implements builtin.ContextManager. It returns the tokens that the
// provider counted for the last answer, plus an estimate of the content that was
// added since. Without such a count it returns an estimate of the whole request.
func (h *ToolHost) ContextUsage(ctx context.Context, id identity.AgentID) (used, limit int, err error) {
	a, err := h.rt.tracker.activeActor(id)
	if err != nil {
		return 0, 0, err
	}
	m, err := a.agentModel()
	if err != nil {
		return 0, 0, err
	}
	req, err := a.buildRequest(ctx, m)
	if err != nil {
		return 0, 0, err
	}
	return a.state.usage.with(req.Request), m.window, nil
}

// CompressContext implements builtin.ContextManager. It changes what the model is sent,
// never the journal, and does not separate a call from its results.
func (h *ToolHost) CompressContext(_ context.Context, c tool.Call, summary string, keep int) (builtin.Compression, error) {
	a, err := h.rt.tracker.activeActor(c.By.Agent)
	if err != nil {
		return builtin.Compression{}, err
	}
	if a.state.compression.call == c.ID { // by an earlier attempt of this call
		return a.state.compression.Compression, nil
	}
	cut := a.state.cutIndex(keep)
	if cut <= a.state.compressedCount() {
		return builtin.Compression{Before: a.state.sentCount(), After: a.state.sentCount()}, nil
	}
	err = a.commit(&journal.Batch{Events: []journal.Event{a.event(journal.ContextCompressed{Call: c.ID, Summary: summary, Items: cut})}})
	return a.state.compression.Compression, err
}

// lastCompression describes the last compression and the call that requested
// it.
type lastCompression struct {
	builtin.Compression
	call identity.CallID
}

// applyCompression replaces the first items by a summary.
func (s *state) applyCompression(b journal.ContextCompressed) {
	before := s.sentCount()
	s.summary = &model.ContextSummary{Text: b.Summary, Items: min(b.Items, len(s.items))}
	s.compression = lastCompression{builtin.Compression{Done: true, Before: before, After: s.sentCount()}, b.Call}
	s.usage = contextUsage{tokens: chat.EstimateTokens(b.Summary)}
	for _, item := range s.items[s.summary.Items:] { // estimated again: a count by the provider covers the replaced items
		s.usage.tokens += chat.ItemTokens(item)
	}
}

// compressedCount returns the number of items that the summary replaces.
func (s *state) compressedCount() int {
	if s.summary == nil {
		return 0
	}
	return s.summary.Items
}

// sentCount returns the number of items that the model is sent, with the
// summary as one.
func (s *state) sentCount() int {
	if s.summary == nil {
		return len(s.items)
	}
	return len(s.items) - s.summary.Items + 1
}

// cutIndex returns how many items a summary may replace so that at least keep
// stay. More stay if a result would otherwise lose its call or a call is still
// open.
func (s *state) cutIndex(keep int) int {
	at := len(s.items) - max(0, keep)
	for at > 0 && !s.isCutSafe(at) {
		at--
	}
	return max(0, at)
}

// isCutSafe reports whether no call before index at has a result at or after
// it.
func (s *state) isCutSafe(at int) bool {
	if at < len(s.items) {
		return s.items[at].Result == nil
	}
	return len(s.pending) == 0
}

// recentTokens returns how many estimated tokens of recent items stay
// uncompressed: a quarter of what fits of a request. It is scaled by the
// provider's count, which may be far larger than the estimate.
func recentTokens(estimate, counted, window int) int {
	const share = 4
	return int(float64(estimate) * min(1, float64(window)/float64(max(1, counted))) / share)
}

// olderCount returns how many of the first items do not fit into the last
// tokens. Messages that the model has not read yet and answers that it is asked to repair
// always count as recent.
func (s *state) olderCount(tokens int) int {
	keep, open := 0, true
	for _, item := range slices.Backward(s.items) {
		tokens -= chat.ItemTokens(item)
		open = open && (item.Message != nil || item.Answer != nil && item.Answer.Finish == model.FinishRepair)
		if !open && tokens < 0 {
			break
		}
		keep++
	}
	return s.cutIndex(keep)
}

// contextUsage is the length of a conversation in tokens.
type contextUsage struct {
	tokens  int
	counted bool // the provider counted: system prompt and tools are included
}

// add counts an item. An answer counted by its provider replaces the estimate
// of all before it.
func (u *contextUsage) add(item model.Item) {
	if a := item.Answer; a != nil && a.Usage.Input > 0 && !a.Usage.Estimated {
		*u = contextUsage{a.Usage.Input + max(0, a.Usage.Output), true}
		return
	}
	u.tokens += chat.ItemTokens(item)
}

// with returns the usage including the system prompt and the tools of a
// request.
func (u contextUsage) with(r model.Request) int {
	if u.counted {
		return u.tokens
	}
	return u.tokens + chat.FrameTokens(r)
}

package runtime

import (
	"context"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/tool"
)

// contextWindow is how many tokens a conversation may have with a model that is
// no language model.
const contextWindow = 128_000

// ContextUsage implements builtin.Contexts: the tokens the provider counted
// with its last answer and an estimate of what came since, or an estimate of
// all that the model is sent.
func (rt *Runtime) ContextUsage(ctx context.Context, id identity.AgentID) (used, limit int, err error) {
	a, err := rt.atWork(id)
	if err != nil {
		return 0, 0, err
	}
	t, err := a.agentModel()
	if err != nil {
		return 0, 0, err
	}
	q, err := a.buildRequest(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	return a.state.usage.with(q.Request), t.window, nil
}

// Compress implements builtin.Contexts. It changes what the model is sent,
// never the record, and keeps every call together with its results.
func (rt *Runtime) Compress(_ context.Context, c tool.Call, summary string, keep int) (builtin.Compression, error) {
	a, err := rt.atWork(c.By.Agent)
	if err != nil {
		return builtin.Compression{}, err
	}
	if a.state.squeezed.call == c.ID { // by an earlier try of this call
		return a.state.squeezed.Compression, nil
	}
	cut := a.state.cut(keep)
	if cut <= a.state.compressedItems() {
		return builtin.Compression{Before: a.state.sent(), After: a.state.sent()}, nil
	}
	err = a.commit(&journal.Batch{Events: []journal.Event{a.event(journal.ContextCompressed{Call: c.ID, Summary: summary, Items: cut})}})
	return a.state.squeezed.Compression, err
}

// atWork finds the actor of an agent that is calling a tool: the caller runs
// on its goroutine, or while it waits.
func (rt *Runtime) atWork(id identity.AgentID) (*actor, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	a, ok := rt.active[id]
	if !ok {
		return nil, errcode.New(errcode.AgentNotFound, "look into the context of agent %q: it is not at work", id)
	}
	return a, nil
}

// lastCompression is what the last compression did, and which call asked for it.
type lastCompression struct {
	builtin.Compression
	call identity.CallID
}

// compressed puts a summary in the place of the first items.
func (s *state) compressed(b journal.ContextCompressed) {
	before := s.sent()
	s.summary = &model.Summary{Text: b.Summary, Items: min(b.Items, len(s.items))}
	s.squeezed = lastCompression{builtin.Compression{Done: true, Before: before, After: s.sent()}, b.Call}
	s.usage = contextUsage{tokens: chat.Estimate(b.Summary)}
	for _, item := range s.items[s.summary.Items:] { // what was counted before counted more
		s.usage.tokens += chat.Tokens(item)
	}
}

// compressedItems counts the items that the model is no longer sent.
func (s *state) compressedItems() int {
	if s.summary == nil {
		return 0
	}
	return s.summary.Items
}

// sent counts what the model is sent: the items left, and the summary.
func (s *state) sent() int {
	if s.summary == nil {
		return len(s.items)
	}
	return len(s.items) - s.summary.Items + 1
}

// cut says how many items to take away so that keep stay, or as many more as
// it takes to leave no result without its call: an answer whose calls are
// still open stays too.
func (s *state) cut(keep int) int {
	at := len(s.items) - max(0, keep)
	for at > 0 && !s.isCutSafe(at) {
		at--
	}
	return max(0, at)
}

// isCutSafe says whether no answer before a place has results at or behind it.
func (s *state) isCutSafe(at int) bool {
	if at < len(s.items) {
		return s.items[at].Result == nil
	}
	return len(s.pending) == 0
}

// contextUsage is how long a conversation is, in tokens.
type contextUsage struct {
	tokens  int
	counted bool // by the provider: system prompt and tools are in it
}

// add takes in an item; an answer whose provider counted counts for all.
func (u *contextUsage) add(item model.Item) {
	if a := item.Answer; a != nil && a.Usage.Input > 0 && !a.Usage.Estimated {
		*u = contextUsage{a.Usage.Input + max(0, a.Usage.Output), true}
		return
	}
	u.tokens += chat.Tokens(item)
}

// with completes a usage by what every request has beside the conversation.
func (u contextUsage) with(r model.Request) int {
	if u.counted {
		return u.tokens
	}
	return u.tokens + chat.Estimate(r.System) + len(r.ToolJSON)/chat.BytesPerToken
}

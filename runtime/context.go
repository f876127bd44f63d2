package runtime

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// contextWindow is how many tokens a conversation may have unless the model
// says otherwise.
const contextWindow = 128_000

// ContextUsage implements builtin.Contexts: the input the provider counted
// with its last answer and an estimate of what came since, or an estimate of
// all.
func (rt *Runtime) ContextUsage(_ context.Context, id identity.AgentID) (used, limit int, err error) {
	a, err := rt.atWork(id)
	if err != nil {
		return 0, 0, err
	}
	return tokens(a.state), contextWindow, nil
}

// Compress implements builtin.Contexts. It changes what the model is sent,
// never the record, and keeps every call together with its results.
func (rt *Runtime) Compress(_ context.Context, c tool.Call, summary string, keep int) (before, after int, err error) {
	a, err := rt.atWork(c.By.Agent)
	if err != nil {
		return 0, 0, err
	}
	dropped := 0
	if a.state.compact != nil {
		dropped = a.state.compact.Items
	}
	before = len(a.state.items) - dropped
	cut := cutAt(a.state.items, len(a.state.items)-keep)
	if cut <= dropped {
		return before, before, nil
	}
	err = a.commit(&journal.Batch{Events: []journal.Event{a.event(journal.ContextCompressed{Summary: summary, Items: cut})}})
	return before, len(a.state.items) - cut + 1, err
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

// cutAt moves a cut back to where it splits no answer from its results.
func cutAt(items []model.Item, at int) int {
	at = max(0, at)
	for at > 0 && at < len(items) && items[at].Result != nil {
		at--
	}
	return at
}

// tokens estimates a conversation's length: four bytes are a token.
func tokens(s *state) int {
	from, sum := 0, 0
	if s.compact != nil {
		from, sum = s.compact.Items, len(s.compact.Summary)/4
	}
	for i := len(s.items) - 1; i >= from; i-- {
		item := s.items[i]
		if item.Answer != nil && item.Answer.Usage.Input > 0 {
			return sum + item.Answer.Usage.Input + item.Answer.Usage.Output
		}
		sum += size(item) / 4
	}
	return sum
}

func size(item model.Item) int {
	switch {
	case item.Message != nil:
		return len(item.Message.Payload)
	case item.Result != nil:
		return len(item.Result.Content)
	}
	n := len(item.Answer.Text)
	for _, c := range item.Answer.Calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

// Print implements builtin.Console.
func (rt *Runtime) Print(_ context.Context, id identity.AgentID, text string) error {
	agent, _ := rt.org.Agent(id)
	_, err := fmt.Fprintf(rt.config.Console, "%s: %s\n", rt.roleName(agent), printable(text))
	return err
}

package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// kindTurns is the kind of the records with the number of turns that the agents of a
// running task have ended. A record is written with each turn that ends, and removed with
// the task.
const kindTurns = "turns"

// checkTurns returns an error if the agent begins a turn and its task may have no more.
func (a *actor) checkTurns() error {
	limit := a.rt.settings.Load().Limits.Turns
	if a.state.rounds > 0 || a.rt.tracker.turnCount(a.task) < limit {
		return nil
	}
	return errcode.New(errcode.LimitExceeded, "the agents of the task have had %d turns, and at most %d are allowed; look for agents that start each other without end, or raise limits.turns", a.rt.tracker.turnCount(a.task), limit).With("limit", limit)
}

// countTurn counts the turn that a batch of the agent ends, if it ends one and the task
// goes on. It is called within the commit.
func (a *actor) countTurn(b *journal.Batch) {
	if slices.ContainsFunc(b.Events, endsTurn) && a.rt.org.IsActive(a.agent.ID) {
		n := a.rt.tracker.countTurn(a.task)
		b.Put = append(b.Put, journal.Record{Kind: kindTurns, Key: string(a.task), Value: strconv.AppendInt(nil, int64(n), 10)})
	}
}

// endsTurn reports whether an event ends the turn of its agent.
func endsTurn(e journal.Event) bool {
	switch b := e.Body.(type) {
	case journal.ModelAnswered:
		return b.Answer.Finish.EndsTurn() || b.Answer.Finish == model.FinishWait
	case journal.TurnFailed:
		return true
	}
	return false
}

// loadTurns reads how many turns a task has had in earlier processes. A damaged record
// counts as the default limit.
func (rt *Runtime) loadTurns(ctx context.Context, id identity.TaskID) error {
	text, err := rt.store.ReadRecord(ctx, kindTurns, string(id))
	if err != nil && !errors.Is(err, journal.ErrDamaged) {
		return fmt.Errorf("read turns of task %s: %w", id, err)
	}
	n := 0
	if err == nil && text != nil {
		n, err = strconv.Atoi(string(text))
	}
	if err != nil || n < 0 {
		n = defaultLimits.Turns
		rt.log.Error("the number of turns of a task is damaged; the task goes on only if limits.turns is above the number assumed", "task", id, "turns", n, "error", err)
	}
	rt.tracker.setTurnCount(id, n)
	return nil
}

// turnCount returns how many turns the agents of a task have ended.
func (t *tracker) turnCount(id identity.TaskID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		return run.turns
	}
	return 0
}

// countTurn adds a turn of a task and returns their number.
func (t *tracker) countTurn(id identity.TaskID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	if run == nil {
		return 0
	}
	run.turns++
	return run.turns
}

// setTurnCount sets the number of turns of a task.
func (t *tracker) setTurnCount(id identity.TaskID, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		run.turns = n
	}
}

package org

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// MaxTriggerChain is the most tasks that may lead to one another by triggers.
const MaxTriggerChain = 8

// TaskTrigger says which trigger of the configuration started a task. It is not part of what a
// task with an idempotency key asks for.
type TaskTrigger struct {
	Name    string `json:"name"`
	Chain   int    `json:"chain,omitempty"`   // ended tasks that led to it by triggers, at most MaxTriggerChain
	Starter string `json:"starter,omitempty"` // with Chain: who started the first of them, as in Task.Caller
	Missed  int    `json:"missed,omitempty"`  // times of its schedule for which no task was started
}

// checkTrigger returns an error unless the name of the caller says which trigger starts the
// task. No other caller has such a name.
func (s *TaskSpec) checkTrigger() error {
	switch t := s.Trigger; {
	case t == nil && s.Caller.User.IsTrigger():
		return errcode.New(errcode.InsufficientPermissions, "start a task: the caller's name is reserved for triggers")
	case t == nil:
		return nil
	case s.Caller.Holder() != identity.ByTrigger(t.Name, s.Caller.Role) || !s.Ask || s.Role != string(s.Caller.Role):
		return errcode.New(errcode.InvalidArguments, "start a task by a trigger: it asks an agent of its own role")
	case t.Chain > MaxTriggerChain:
		return errcode.New(errcode.LimitExceeded, "start a task by the trigger %q: %d tasks have led to it by triggers; at most %d are allowed", t.Name, t.Chain, MaxTriggerChain)
	}
	return nil
}

// TaskByKey returns the task that a caller has started with an idempotency key. It reports
// false if there is none, and for the key "".
func (o *Org) TaskByKey(caller identity.Principal, key string) (identity.TaskID, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	id, ok := o.tasksByKey[taskKey{caller.String(), caller.Role, key}]
	return id, ok && key != ""
}

package property_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
)

// Outcomes of attacks in tasks that were stopped.
const (
	taskCancelled = "the task was cancelled and retried"
	taskFailed    = "the task failed and was retried"
)

// stopAndRetry cancels the task of the attack or lets it fail. While it has ended, members
// go on to call, and others change what they may call. Then the task is retried. Its agents
// have the rights of that moment.
func (p *attack) stopAndRetry(t *proptest.Choices) error {
	id, cancelled := p.root.task, p.model == nil || p.drivers != nil || t.OneIn(2) // no model is asked for a driven root
	if err := p.stopTask(id, cancelled); err != nil {
		return fmt.Errorf("stop task %s: %w", id, err)
	}
	for range t.Pick(4) {
		if err := errors.Join(p.othersStep(t), p.step(t)); err != nil {
			return err
		}
	}
	if err := p.retryTask(t, cancelled); err != nil {
		return err
	}
	return p.checkVisible()
}

// stopTask ends a task without a result, as the operator cancels it or as the model of its
// top agent fails.
func (p *attack) stopTask(id identity.TaskID, cancelled bool) error {
	defer p.applyCommits()
	if cancelled {
		return p.CancelTask(context.Background(), id, "enough")
	}
	if err := p.model.failRequest(p.root.id, errcode.New(errcode.LLMCallFailed, "no luck")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	task, err := p.WaitTask(ctx, id)
	if err == nil && task.Status != org.Failed {
		err = fmt.Errorf("it is %s", task.Status)
	}
	return err
}

// retryTask retries the task of the attack, as the operator or its caller. The caller does
// not get back what the operator has cancelled, or what it may not start any more. No other
// principal gets anything.
func (p *attack) retryTask(t *proptest.Choices, cancelled bool) error {
	id := p.root.task
	others := []identity.Principal{identity.ByAgent(p.manager.id), identity.ByAgent(p.root.id), identity.ByCaller("eve", p.caller.Role), identity.ByCaller("ann", p.roles[0]), {}}
	if cancelled && p.caller.Kind == identity.Caller {
		others = append(others, p.caller)
	}
	by := proptest.PickFrom(t, others...)
	if err := p.RetryTask(context.Background(), id, by, org.ModelAllowance{}); err == nil {
		return p.filterViolation(newViolation(violationRecord, "%s retries task %s of %s, cancelled %v", by, id, p.caller, cancelled))
	}
	by = operator
	if !cancelled && t.OneIn(2) {
		by = p.caller
	}
	if by.Kind == identity.Caller && p.rules.boundingRole(by.Role).off() {
		if err := p.RetryTask(context.Background(), id, by, org.ModelAllowance{}); err == nil {
			return p.filterViolation(newViolation(violationRecord, "%s retries task %s, but may start none", by, id))
		}
		by = operator
	}
	if err := p.RetryTask(context.Background(), id, by, org.ModelAllowance{}); err != nil {
		return fmt.Errorf("%s retries task %s: %w", by, id, err)
	}
	p.applyCommits()
	if cancelled {
		p.outcomes[taskCancelled]++
	} else {
		p.outcomes[taskFailed]++
	}
	return nil
}

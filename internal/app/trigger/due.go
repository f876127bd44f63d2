package trigger

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/payload"
	"github.com/rolecall/rolecall/org"
)

// fireSchedules starts one task for each schedule of which times have passed, for the latest of
// them. It returns how long to wait for the next time. It must be called with firing held.
func (e *Engine) fireSchedules(ctx context.Context, rules []Rule) (delay time.Duration) {
	delay = maxDelay
	for _, r := range rules {
		if r.Type != config.TriggerCron || r.times == nil {
			continue
		}
		last, now := e.stored.Times[r.Name], e.now()
		at, missed, due := r.times.LatestDue(last.At, now)
		if due && e.fireSchedule(ctx, r, at, missed) {
			last.At = at
			e.stored.Times[r.Name] = last
		}
		if next := r.times.NextAfter(now); !next.IsZero() {
			delay = min(delay, max(next.Sub(now), time.Millisecond))
		}
	}
	return delay
}

// fireSchedule starts the task of a time. It reports false if the process stops, and the next one
// has to start it.
func (e *Engine) fireSchedule(ctx context.Context, r Rule, at time.Time, missed int) bool {
	text := at.UTC().Format(time.RFC3339)
	if missed > 0 {
		e.log.LogLine(slog.LevelWarn, "trigger missed times of its schedule", "trigger:"+r.Name, "trigger", r.Name, "missed", missed, "at", text)
	}
	_, err := e.startWith(ctx, r, org.TaskTrigger{Missed: missed}, "at:"+text, map[string]any{"trigger": r.Name, "scheduled": text})
	if err != nil && ctx.Err() == nil {
		e.logFailure(r, err)
	}
	return err == nil || ctx.Err() == nil
}

// startWith starts the task of a trigger for values of this program.
func (e *Engine) startWith(ctx context.Context, r Rule, from org.TaskTrigger, key string, values map[string]any) (identity.TaskID, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	document, err := payload.Parse(data)
	if err != nil {
		return "", err
	}
	return e.start(ctx, identity.ByTrigger(r.Name, r.RoleID), r, from, key, document)
}

// fireEnded starts the tasks after tasks that have ended. With rescan it also looks at all other tasks
// whose ends are not seen yet. The ends of tasks may be observed in another order than that of
// their commits. Keys prevent that the end of a task fires a trigger twice. It must be called with
// firing held.
func (e *Engine) fireEnded(ctx context.Context, rules []Rule, ended []identity.TaskID, rescan bool) {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Type == config.TriggerAfterTask }) {
		return
	}
	observed := make(map[identity.TaskID]bool, len(ended))
	for _, id := range ended {
		observed[id] = true
	}
	for _, task := range e.endedTasks(ended, rescan) {
		for _, r := range rules {
			seen, known := e.stored.Ended[r.Name]
			if observed[task.ID] {
				seen = e.seenBefore[r.Name]
			}
			if !known || task.EndSeq < seen {
				continue
			}
			if e.follows(ctx, r, task) {
				e.fireAfter(ctx, r, task)
			}
			if ctx.Err() != nil {
				e.putBack(ended)
				return
			}
			e.stored.Ended[r.Name] = max(e.stored.Ended[r.Name], task.EndSeq)
		}
	}
}

// endedTasks returns the tasks with these ids that have ended, or all that have, in the order
// of their ends.
func (e *Engine) endedTasks(ids []identity.TaskID, rescan bool) (list []org.Task) {
	o := e.config.Runtime.Org()
	if rescan {
		list = o.ListTasks()
	} else {
		for _, id := range ids {
			if t, ok := o.TaskByID(id); ok {
				list = append(list, t)
			}
		}
	}
	list = slices.DeleteFunc(list, func(t org.Task) bool { return !t.Status.Ended() })
	slices.SortFunc(list, byEnd)
	return list
}

// follows reports whether the end of a task fires a trigger.
func (e *Engine) follows(ctx context.Context, r Rule, task org.Task) bool {
	if r.RoleID == "" || r.template == nil || !slices.Contains(r.After.Status, string(task.Status)) {
		return false
	}
	if r.After.Trigger != "" {
		return task.Trigger != nil && task.Trigger.Name == r.After.Trigger
	}
	top, err := e.config.Runtime.AgentRecord(ctx, task.Top)
	return err == nil && r.AfterRole != "" && top.Role == r.AfterRole
}

// fireAfter starts the task after the end of a task.
func (e *Engine) fireAfter(ctx context.Context, r Rule, ended org.Task) {
	task, err := e.config.Runtime.TaskRecord(ctx, ended.ID)
	if err == nil {
		from := org.TaskTrigger{Chain: 1, Starter: task.Caller}
		if task.Trigger != nil {
			from = org.TaskTrigger{Chain: task.Trigger.Chain + 1, Starter: cmp.Or(task.Trigger.Starter, task.Caller)}
		}
		key := "after:" + string(task.ID) + ":" + strconv.FormatUint(ended.EndSeq, 10)
		_, err = e.startWith(ctx, r, from, key, map[string]any{
			"trigger": r.Name, "task": task.ID, "status": task.Status, "result": task.Result, "error": task.Error,
		})
	}
	if err != nil && ctx.Err() == nil {
		e.logFailure(r, err)
	}
}

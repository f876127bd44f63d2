package runtime

import (
	"context"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// TaskUsage returns the model usage of a task: the sum over its recorded answers
// and summaries. It does not include failed or discarded requests, whose usage
// only the provider knows.
func (rt *Runtime) TaskUsage(ctx context.Context, id identity.TaskID) (model.TokenUsage, error) {
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return model.TokenUsage{}, err
	}
	return rt.usage(ctx, task)
}

func (rt *Runtime) usage(ctx context.Context, task org.Task) (sum model.TokenUsage, err error) {
	for e, err := range rt.store.FollowTask(ctx, task.ID, task.FirstSeq, false) {
		if err != nil {
			return sum, err
		}
		if e.Task != task.ID {
			continue
		}
		switch b := e.Body.(type) {
		case journal.ModelAnswered:
			sum = sum.Add(b.Answer.Usage)
		case journal.ContextCompressed:
			sum = sum.Add(b.Usage)
		case journal.TaskEnded:
			if rt.EndsTask(e) {
				return sum, nil
			}
		}
	}
	return sum, nil
}

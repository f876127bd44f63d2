package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// StartTask begins a task. If cfg is not nil, StartTask applies it first and records it with the
// task, so that ResumeTask needs no files. It returns errcode.GroupNotFound if the task is
// restricted to a group that is not registered then. It returns errcode.InvalidConfig if root
// has no model then. In these cases cfg is not applied.
func (a *App) StartTask(ctx context.Context, spec org.TaskSpec, cfg *config.Config) (identity.TaskID, error) {
	if cfg != nil {
		check := func(ch *configChange) error {
			return cmp.Or(a.checkTaskGroups(spec.Groups, ch), ch.models.checkRootModel(cfg))
		}
		if err := a.applyConfig(ctx, cfg, nil, orgConfig(cfg), check); err != nil {
			return "", err
		}
	} else if err := a.ActivateItems(ctx); err != nil {
		return "", err
	}
	return a.startClientTask(ctx, spec)
}

// checkTaskGroups rejects the restriction of a task to groups that do not exist with a
// configuration. A nil set restricts nothing.
func (a *App) checkTaskGroups(set *toolgroups.GroupSet, ch *configChange) error {
	if set == nil {
		return nil
	}
	known := a.groupIDsAfter(ch)
	for _, id := range set.GroupIDs() {
		whole, _ := id.WholeGroup()
		if slices.Contains(known, string(whole)) || a.hasAPI(ch, string(whole)) {
			continue
		}
		text := fmt.Sprintf("start a task: there is no tool group %q", id)
		return errcode.New(errcode.GroupNotFound, "%s", textutil.AddHint(text, textutil.SuggestName(string(id), known)))
	}
	return nil
}

// ResumeTask continues a running task, under the given configuration or, if cfg is nil, the
// one recorded with the task. It does nothing for a task that has ended or is paused. Roles
// of the recorded configuration that were deleted since become active again.
func (a *App) ResumeTask(ctx context.Context, id identity.TaskID, cfg *config.Config) error {
	task, err := a.Runtime.TaskRecord(ctx, id)
	if err != nil || task.Status != org.Running {
		return err
	}
	if err := a.restoreTask(ctx, task, cfg); err != nil {
		return err
	}
	return a.Runtime.ResumeTask(ctx, id)
}

// RetryTask is runtime.Runtime.RetryTask for the operator, under a configuration as ResumeTask
// applies it.
func (a *App) RetryTask(ctx context.Context, id identity.TaskID, cfg *config.Config, extra org.ModelAllowance) error {
	task, err := a.Runtime.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	if task.Status != org.Running && task.Status != org.Done { // else RetryTask says why not
		if err := a.restoreTask(ctx, task, cfg); err != nil {
			return err
		}
	}
	return a.Runtime.RetryTask(ctx, id, identity.ByOperator("cli"), extra)
}

// restoreTask applies the configuration under which a task goes on: cfg, or the recorded one
// if cfg is nil.
func (a *App) restoreTask(ctx context.Context, task org.Task, cfg *config.Config) error {
	if cfg != nil {
		return a.ApplyConfig(ctx, cfg, nil)
	}
	return a.restoreRecorded(ctx, task.Config, reviveRoles)
}

// UnresumedTask is a task that ResumeAll did not resume, and why.
type UnresumedTask struct {
	Task org.Task
	Err  error
}

// ResumeAll applies cfg and resumes the unfinished tasks. If cfg is nil it applies the
// configuration recorded with the most recent of them, and leaves tasks with another
// recorded configuration as they are. Roles that were deleted since stay deleted. Tasks that
// are not resumed end at their deadlines.
func (a *App) ResumeAll(ctx context.Context, cfg *config.Config) (left []UnresumedTask, err error) {
	unfinished := a.unfinished()
	recorded := ""
	if cfg != nil {
		err = a.ApplyConfig(ctx, cfg, nil)
	} else if len(unfinished) > 0 {
		recorded = unfinished[len(unfinished)-1].Config
		err = a.restoreRecorded(ctx, recorded, leaveDeleted)
	} else {
		err = a.ActivateItems(ctx)
	}
	if err != nil {
		return nil, err
	}
	a.lifecycle.unresumed.Store(int64(len(unfinished)))
	for _, task := range unfinished {
		var err error
		if recorded != "" && task.Config != recorded {
			err = errors.New("it was started with another configuration")
		} else {
			err = a.resumeTask(ctx, task)
		}
		if err != nil {
			left = append(left, UnresumedTask{task, err})
		}
		a.lifecycle.unresumed.Add(-1)
	}
	a.Runtime.EnforceDeadlines()
	return left, nil
}

// unfinished lists the tasks that have not ended, oldest first. It leaves out tasks that a program
// drives: only the program resumes them.
func (a *App) unfinished() (list []org.Task) {
	for _, task := range a.Runtime.Org().ListTasks() {
		if task.Status == org.Running && !task.Driven {
			list = append(list, task)
		}
	}
	return list
}

// resumeTask resumes a task if the organization has a usable model.
func (a *App) resumeTask(ctx context.Context, task org.Task) error {
	if len(a.models.Load().byName)+len(a.models.Load().errors) == 0 {
		return errors.New("no model is configured")
	}
	if _, err := a.model(""); err != nil {
		return err
	}
	return a.Runtime.ResumeTask(ctx, task.ID)
}

// restoreRecorded applies the configuration recorded under a hash; "" means none but the applied
// items. See restoreConfig for revive.
func (a *App) restoreRecorded(ctx context.Context, hash string, revive bool) error {
	if hash == "" {
		return a.ActivateItems(ctx)
	}
	record, err := a.Runtime.ArtifactStore().ReadBlob(ctx, hash)
	if err != nil {
		return fmt.Errorf("read the recorded configuration: %w", err)
	}
	var files []yamldoc.File
	if err := json.Unmarshal(record, &files); err != nil {
		return fmt.Errorf("read the recorded configuration: %w", err)
	}
	cfg, err := config.ReadFiles(files, a.options.Env)
	if err != nil {
		return err
	}
	return a.restoreConfig(ctx, cfg, revive)
}

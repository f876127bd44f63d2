package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// StartTask begins a task. If cfg is not nil, Start applies it first and records it with the
// task, so that Resume needs no files. It returns errcode.GroupNotFound if the task is
// restricted to a group that is not registered.
func (a *App) StartTask(ctx context.Context, spec org.TaskSpec, cfg *config.Config) (identity.TaskID, error) {
	if err := a.checkGroups(spec.Groups); err != nil {
		return "", err
	}
	if cfg != nil {
		if err := a.Configure(ctx, cfg, nil); err != nil {
			return "", err
		}
		record, err := json.Marshal(cfg.Files)
		if err != nil {
			return "", fmt.Errorf("record the configuration: %w", err)
		}
		if spec.Config, err = a.Runtime.Artifacts().PutBlob(record); err != nil {
			return "", fmt.Errorf("record the configuration: %w", err)
		}
	}
	if _, err := a.model(""); err != nil {
		return "", err
	}
	return a.Runtime.StartTask(ctx, spec)
}

// checkGroups rejects a restriction to groups that are not registered.
func (a *App) checkGroups(set *toolgroups.Set) error {
	if set == nil {
		return nil
	}
	for _, id := range set.IDs() {
		if a.groups.Snapshot().GroupOwner(id) == "" {
			return errcode.New(errcode.GroupNotFound, "no such tool group: %s", id)
		}
	}
	return nil
}

// ResumeTask continues a task that has not ended, under the given configuration or, if cfg is
// nil, the one recorded with the task. It does nothing for a task that has ended.
func (a *App) ResumeTask(ctx context.Context, id identity.TaskID, cfg *config.Config) error {
	task, err := a.Runtime.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	if task.Status != org.Running {
		return nil
	}
	if cfg != nil {
		err = a.Configure(ctx, cfg, nil)
	} else {
		err = a.restoreRecorded(ctx, task.Config)
	}
	if err != nil {
		return err
	}
	return a.Runtime.ResumeTask(ctx, id)
}

// Unresumed is a task that ResumeAll did not resume, and why.
type Unresumed struct {
	Task org.Task
	Err  error
}

// ResumeAll applies cfg and resumes the unfinished tasks. If cfg is nil it applies the
// configuration recorded with the most recent of them, and leaves tasks with another
// recorded configuration as they are.
func (a *App) ResumeAll(ctx context.Context, cfg *config.Config) (left []Unresumed, err error) {
	unfinished := a.unfinished()
	recorded := ""
	if cfg != nil {
		err = a.Configure(ctx, cfg, nil)
	} else if len(unfinished) > 0 {
		recorded = unfinished[len(unfinished)-1].Config
		err = a.restoreRecorded(ctx, recorded)
	}
	if err != nil {
		return nil, err
	}
	for _, task := range unfinished {
		var err error
		if recorded != "" && task.Config != recorded {
			err = errors.New("it was started with another configuration")
		} else {
			err = a.resumeTask(ctx, task)
		}
		if err != nil {
			left = append(left, Unresumed{task, err})
		}
	}
	return left, nil
}

// unfinished lists the tasks that have not ended, oldest first.
func (a *App) unfinished() (list []org.Task) {
	for _, task := range a.Runtime.Org().ListTasks() {
		if task.Status == org.Running {
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

// restoreRecorded applies the configuration recorded under a hash; "" means none.
func (a *App) restoreRecorded(ctx context.Context, hash string) error {
	if hash == "" {
		return nil
	}
	record, err := a.Runtime.Artifacts().ReadBlob(ctx, hash)
	if err != nil {
		return fmt.Errorf("read the recorded configuration: %w", err)
	}
	var files []config.File
	if err := json.Unmarshal(record, &files); err != nil {
		return fmt.Errorf("read the recorded configuration: %w", err)
	}
	cfg, err := config.Read(files, a.options.Env)
	if err != nil {
		return err
	}
	return a.restoreConfig(ctx, cfg)
}

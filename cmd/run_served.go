package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/org"
)

// runServed runs a task in the process that serves the organization, and waits for its
// result. With --resume it waits for a task that runs there.
func runServed(ctx context.Context, c *common, api *client.Client, o *runOptions, spec org.TaskSpec) (err error) {
	if o.resume != "" {
		return followTask(ctx, c, api, o.resume)
	}
	if spec.Role, err = resolveRole(ctx, api, spec.Role); err != nil {
		return err
	}
	task, err := api.StartTask(ctx, taskRequest(spec), "")
	if errcode.CodeOf(err) == errcode.RoleNotFound {
		return errUnknownRole(ctx, c, api, spec.Role, nil)
	}
	if err != nil {
		return c.startError(err)
	}
	if o.detach {
		return printDetached(c, task)
	}
	return followOwnTask(ctx, c, api, string(task.ID), answersQuestions)
}

// checkServedConfig rejects -f with a configuration that differs from the served configuration.
func checkServedConfig(ctx context.Context, c *common, api *client.Client) error {
	cfg, err := loadConfig(c)
	if err != nil || cfg == nil {
		return err
	}
	served, err := api.ConfigDigest(ctx)
	if err != nil {
		return err
	}
	switch served {
	case cfg.Digest():
		return nil
	case "":
		return usageError{errors.New("the serving process has no configuration; pass the files of -f to \"rolecall serve\"")}
	}
	return usageError{errors.New("-f is not the configuration that the serving process uses; leave -f out, or change the files that it serves")}
}

// taskRequest converts a task for the API.
func taskRequest(spec org.TaskSpec) client.TaskRequest {
	q := client.TaskRequest{Text: spec.Text, Role: spec.Role, State: spec.State, Workspace: cmp.Or(spec.Workspace, spec.WorkspaceName), ReadOnly: spec.ReadOnly, Files: spec.Files, Ask: spec.Ask}
	if spec.Budget != (org.ModelAllowance{}) {
		b := spec.Budget
		q.Budget = &client.Budget{Tokens: b.Tokens, Cost: float64(b.Cost) / 1e9, Requests: b.Requests, Calls: b.Calls}
	}
	if spec.Schema != nil {
		q.Result = &client.ResultSpec{Schema: spec.Schema}
	}
	if spec.Timeout > 0 {
		q.Timeout = spec.Timeout.String()
	}
	if spec.Groups != nil {
		q.Group = spec.Groups.Names()
	}
	q.Input = client.Object(spec.Input)
	return q
}

// printDetached prints the id of a task that no command waits for, and on stderr how to follow
// it. With --json it prints the task.
func printDetached(c *common, task client.Task) error {
	c.printFollowHints(string(task.ID))
	if c.json {
		return printJSON(c.out, task)
	}
	_, err := fmt.Fprintln(c.out, task.ID)
	return err
}

// printFollowHints prints how to follow and cancel a task that goes on.
func (c *common) printFollowHints(id string) {
	fmt.Fprintf(c.err, "follow it with: %[1]s task follow %[2]s%[3]s\ncancel it with: %[1]s task cancel %[2]s%[3]s\n", programName(), id, c.dataFlag())
}

// followTask shows the events of a task from its start, waits for its end and prints the
// result. If the connection is lost it connects again for a while.
func followTask(ctx context.Context, c *common, api *client.Client, id string) error {
	return followOwnTask(ctx, c, api, id, watchesOnly)
}

// Values of asks in followOwnTask.
const (
	answersQuestions = true
	watchesOnly      = false
)

// followOwnTask is followTask. With asks it also answers the questions of the task's tools.
func followOwnTask(ctx context.Context, c *common, api *client.Client, id string, asks bool) error {
	task, err := findTask(ctx, api, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "task %s\n", task.ID)
	printLimits(c, task)
	f := newFollower(c, api, task)
	if asks {
		f.answerQuestions()
	}
	task, err = f.follow(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(c.err, "the task goes on")
		c.printFollowHints(f.task)
		return errReported
	case err != nil:
		return err
	case task.Status == org.Paused && task.Reason != nil:
		return c.reportPaused(task.ID, *task.Reason, "")
	case task.Status == org.Interrupted:
		return fmt.Errorf("no process works on task %s; continue it with: %[2]s run --resume %[1]s%[3]s", task.ID, programName(), c.dataFlag())
	case !task.Status.Ended():
		return errors.New("the stream of events ended before the task; follow it again")
	}
	printUsage(c, task.Usage)
	return printResult(c, org.TaskEnd{Status: task.Status, Result: task.Result, Incomplete: task.Incomplete, Error: task.Error})
}

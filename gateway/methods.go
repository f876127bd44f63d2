package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// A role or agent is named by id or exact name wherever a ref is wanted.

// Roles lists the active roles, sorted by name.
func (c *Client) Roles(ctx context.Context) iter.Seq2[Role, error] {
	return list[Role](ctx, c, path("roles"), nil)
}

// Role gives one role.
func (c *Client) Role(ctx context.Context, ref string) (Role, error) {
	return doJSON[Role](ctx, c, call{method: http.MethodGet, path: path("roles", ref)})
}

// CreateRole makes a role, or with dryRun says what it would be, without id.
func (c *Client) CreateRole(ctx context.Context, q RoleRequest, dryRun bool) (Role, error) {
	return doJSON[Role](ctx, c, call{method: http.MethodPost, path: path("roles"), query: dry(dryRun), body: q})
}

// UpdateRole changes a role, or with dryRun only says what that would mean.
func (c *Client) UpdateRole(ctx context.Context, ref string, q RoleRequest, dryRun bool) (RoleChange, error) {
	return doJSON[RoleChange](ctx, c, call{method: http.MethodPatch, path: path("roles", ref), query: dry(dryRun), body: q})
}

// DeleteRole takes a role out of use, or with dryRun only says what that
// would mean.
func (c *Client) DeleteRole(ctx context.Context, ref string, dryRun bool) (RoleChange, error) {
	return doJSON[RoleChange](ctx, c, call{method: http.MethodDelete, path: path("roles", ref), query: dry(dryRun)})
}

func dry(run bool) url.Values {
	if run {
		return url.Values{"dryRun": {"1"}}
	}
	return nil
}

// Agents lists the agents of a task in a status, sorted by age; "" is any.
func (c *Client) Agents(ctx context.Context, task identity.TaskID, status string) iter.Seq2[Agent, error] {
	return list[Agent](ctx, c, path("agents"), url.Values{"task": {string(task)}, "status": {status}})
}

// Agent gives one agent.
func (c *Client) Agent(ctx context.Context, ref string) (AgentDetail, error) {
	return doJSON[AgentDetail](ctx, c, call{method: http.MethodGet, path: path("agents", ref)})
}

// Journal lists the events of an agent's stream, oldest first.
func (c *Client) Journal(ctx context.Context, ref string) iter.Seq2[journal.Event, error] {
	return list[journal.Event](ctx, c, path("agents", ref, "journal"), nil)
}

// Send writes to an agent.
func (c *Client) Send(ctx context.Context, ref string, q MessageRequest) (builtin.Sent, error) {
	return doJSON[builtin.Sent](ctx, c, call{method: http.MethodPost, path: path("agents", ref, "messages"), body: q})
}

// Abort ends the turn of an agent that is at work.
func (c *Client) Abort(ctx context.Context, ref string) (Agent, error) {
	return doJSON[Agent](ctx, c, call{method: http.MethodPost, path: path("agents", ref, "abort")})
}

// Terminate ends an agent and everything below it.
func (c *Client) Terminate(ctx context.Context, ref, reason string) (Agent, error) {
	return doJSON[Agent](ctx, c, call{method: http.MethodDelete, path: path("agents", ref), query: because(reason)})
}

func because(reason string) url.Values {
	if reason == "" {
		return nil
	}
	return url.Values{"reason": {reason}}
}

// Groups lists the tool groups, sorted by id.
func (c *Client) Groups(ctx context.Context) iter.Seq2[toolgroups.Info, error] {
	return list[toolgroups.Info](ctx, c, path("tool-groups"), nil)
}

// Group gives one tool group.
func (c *Client) Group(ctx context.Context, id string) (toolgroups.Info, error) {
	return doJSON[toolgroups.Info](ctx, c, call{method: http.MethodGet, path: path("tool-groups", id)})
}

// Tools lists the tools of a group, or of all for "", sorted by name.
func (c *Client) Tools(ctx context.Context, group string) iter.Seq2[Tool, error] {
	return list[Tool](ctx, c, path("tools"), url.Values{"group": {group}})
}

// Tool gives one tool.
func (c *Client) Tool(ctx context.Context, name string) (Tool, error) {
	return doJSON[Tool](ctx, c, call{method: http.MethodGet, path: path("tools", name)})
}

// Can asks what the gate would say to a role or an agent.
func (c *Client) Can(ctx context.Context, q Question) (Verdict, error) {
	return doJSON[Verdict](ctx, c, call{method: http.MethodPost, path: path("can"), body: q})
}

// Who lists those that may call the tool q.Who.
func (c *Client) Who(ctx context.Context, q Question) (Holders, error) {
	return doJSON[Holders](ctx, c, call{method: http.MethodPost, path: path("can"), body: q})
}

// Tasks lists the tasks in a status, or in any for "", sorted by age and
// without results.
func (c *Client) Tasks(ctx context.Context, status string) iter.Seq2[Task, error] {
	return list[Task](ctx, c, path("tasks"), url.Values{"status": {status}})
}

// Task gives one task.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	return doJSON[Task](ctx, c, call{method: http.MethodGet, path: path("tasks", id)})
}

// Cancel ends a task; one that has ended stays as it is.
func (c *Client) Cancel(ctx context.Context, id, reason string) (Task, error) {
	return doJSON[Task](ctx, c, call{method: http.MethodPost, path: path("tasks", id, "cancel"), query: because(reason)})
}

// Events yields the public events of a task after a number, up to its result.
// With follow it waits for those to come; a stream that ends before the task
// does is then an error.
func (c *Client) Events(ctx context.Context, task string, after uint64, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		query := url.Values{"after": {seqText(after)}}
		if follow {
			query.Set("follow", "1")
		}
		answer, err := c.do(ctx, call{method: http.MethodGet, path: path("tasks", task, "events"), query: query})
		if err != nil {
			yield(journal.Event{}, err)
			return
		}
		defer answer.Body.Close()
		for d := json.NewDecoder(answer.Body); ; {
			var e journal.Event
			err := d.Decode(&e)
			if errors.Is(err, io.EOF) && !follow {
				return
			}
			if err != nil {
				yield(e, fmt.Errorf("follow task %s: %w", task, err))
				return
			}
			_, ended := e.Body.(journal.Result)
			if !yield(e, nil) || ended {
				return
			}
		}
	}
}

// Artifacts lists the artifacts of a task, or of all for "", sorted by age.
func (c *Client) Artifacts(ctx context.Context, task identity.TaskID) iter.Seq2[runtime.Artifact, error] {
	return list[runtime.Artifact](ctx, c, path("artifacts"), url.Values{"task": {string(task)}})
}

// Artifact gives the record of an artifact, by its id or reference.
func (c *Client) Artifact(ctx context.Context, ref string) (runtime.Artifact, error) {
	return doJSON[runtime.Artifact](ctx, c, call{method: http.MethodGet, path: path("artifacts", ref)})
}

// Content gives the content of an artifact: a text as it is, bytes as they
// are, anything else as JSON.
func (c *Client) Content(ctx context.Context, ref string) ([]byte, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: path("artifacts", ref), query: url.Values{"content": {"1"}}})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// Sweep removes stored contents that nothing names, or with dryRun only counts
// them.
func (c *Client) Sweep(ctx context.Context, dryRun bool) (runtime.SweepResult, error) {
	return doJSON[runtime.SweepResult](ctx, c, call{method: http.MethodPost, path: path("sweep"), query: dry(dryRun)})
}

// Health asks whether the process answers.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return doJSON[Health](ctx, c, call{method: http.MethodGet, path: "/healthz"})
}

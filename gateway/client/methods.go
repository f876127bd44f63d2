package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// A ref names a role by id or exact name, and an agent by id or role name. With
// dryRun, methods return the result of a change without making it.

// Roles lists the active roles, sorted by name.
func (c *Client) Roles(ctx context.Context) iter.Seq2[Role, error] {
	return listAll[Role](ctx, c, apiPath("roles"), nil)
}

// Role returns one role.
func (c *Client) Role(ctx context.Context, ref string) (Role, error) {
	return doJSON[Role](ctx, c, request{method: http.MethodGet, path: apiPath("roles", ref)})
}

// CreateRole creates a role. With dryRun it returns the role, without an id.
func (c *Client) CreateRole(ctx context.Context, q RoleRequest, dryRun bool) (Role, error) {
	return doJSON[Role](ctx, c, request{method: http.MethodPost, path: apiPath("roles"), query: dryRunQuery(dryRun), body: q})
}

// UpdateRole changes a role and returns the effects on its agents.
func (c *Client) UpdateRole(ctx context.Context, ref string, q RoleRequest, dryRun bool) (RoleChange, error) {
	return doJSON[RoleChange](ctx, c, request{method: http.MethodPatch, path: apiPath("roles", ref), query: dryRunQuery(dryRun), body: q})
}

// DeleteRole deletes a role and returns the effects on its agents.
func (c *Client) DeleteRole(ctx context.Context, ref string, dryRun bool) (RoleChange, error) {
	return doJSON[RoleChange](ctx, c, request{method: http.MethodDelete, path: apiPath("roles", ref), query: dryRunQuery(dryRun)})
}

// dryRunQuery returns the query of a change.
func dryRunQuery(run bool) url.Values {
	if run {
		return url.Values{"dryRun": {"1"}}
	}
	return nil
}

// Agents lists the agents of a task with a status (working, idle or terminated),
// sorted by creation time. An empty task or status selects all.
func (c *Client) Agents(ctx context.Context, task identity.TaskID, status string) iter.Seq2[Agent, error] {
	return listAll[Agent](ctx, c, apiPath("agents"), url.Values{"task": {string(task)}, "status": {status}})
}

// Agent returns one agent.
func (c *Client) Agent(ctx context.Context, ref string) (AgentDetail, error) {
	return doJSON[AgentDetail](ctx, c, request{method: http.MethodGet, path: apiPath("agents", ref)})
}

// Journal lists the events of an agent's stream, oldest first.
func (c *Client) Journal(ctx context.Context, ref string) iter.Seq2[journal.Event, error] {
	return listAll[journal.Event](ctx, c, apiPath("agents", ref, "journal"), nil)
}

// Send sends a message to an agent on behalf of the operator.
func (c *Client) Send(ctx context.Context, ref string, q MessageRequest) (SentMessage, error) {
	return doJSON[SentMessage](ctx, c, request{method: http.MethodPost, path: apiPath("agents", ref, "messages"), body: q})
}

// Abort aborts the current turn of an agent.
func (c *Client) Abort(ctx context.Context, ref string) (Agent, error) {
	return doJSON[Agent](ctx, c, request{method: http.MethodPost, path: apiPath("agents", ref, "abort")})
}

// Terminate terminates an agent and all its descendants.
func (c *Client) Terminate(ctx context.Context, ref, reason string) (Agent, error) {
	return doJSON[Agent](ctx, c, request{method: http.MethodDelete, path: apiPath("agents", ref), query: reasonQuery(reason)})
}

// reasonQuery returns the query with a reason; "" sends none.
func reasonQuery(reason string) url.Values {
	if reason == "" {
		return nil
	}
	return url.Values{"reason": {reason}}
}

// Groups lists the tool groups, sorted by id.
func (c *Client) Groups(ctx context.Context) iter.Seq2[toolgroups.Info, error] {
	return listAll[toolgroups.Info](ctx, c, apiPath("tool-groups"), nil)
}

// Group returns one tool group.
func (c *Client) Group(ctx context.Context, id string) (toolgroups.Info, error) {
	return doJSON[toolgroups.Info](ctx, c, request{method: http.MethodGet, path: apiPath("tool-groups", id)})
}

// Tools lists the tools of a group, sorted by name; an empty group selects all.
func (c *Client) Tools(ctx context.Context, group string) iter.Seq2[Tool, error] {
	return listAll[Tool](ctx, c, apiPath("tools"), url.Values{"group": {group}})
}

// Tool returns one tool.
func (c *Client) Tool(ctx context.Context, name string) (Tool, error) {
	return doJSON[Tool](ctx, c, request{method: http.MethodGet, path: apiPath("tools", name)})
}

// Quarantine lists the tools whose definitions wait for acceptance, sorted by
// name.
func (c *Client) Quarantine(ctx context.Context) iter.Seq2[QuarantinedTool, error] {
	return listAll[QuarantinedTool](ctx, c, apiPath("quarantine"), nil)
}

// Accept accepts the pending definition of a tool with this digest.
func (c *Client) Accept(ctx context.Context, name, digest string) (QuarantinedTool, error) {
	return doJSON[QuarantinedTool](ctx, c, request{method: http.MethodPost, path: apiPath("tools", name, "accept"), body: wire.AcceptRequest{Digest: digest}})
}

// Can reports whether the gate would allow a call of q.Tool by q.Role or
// q.Agent.
func (c *Client) Can(ctx context.Context, q Question) (Verdict, error) {
	return doJSON[Verdict](ctx, c, request{method: http.MethodPost, path: apiPath("can"), body: q})
}

// Who lists the roles and agents that may call the tool q.Who.
func (c *Client) Who(ctx context.Context, q Question) (Holders, error) {
	return doJSON[Holders](ctx, c, request{method: http.MethodPost, path: apiPath("can"), body: q})
}

// Tasks lists the tasks with a status (running, done, failed or cancelled), sorted
// by creation time and without results. An empty status selects all.
func (c *Client) Tasks(ctx context.Context, status string) iter.Seq2[Task, error] {
	return listAll[Task](ctx, c, apiPath("tasks"), url.Values{"status": {status}})
}

// Task returns one task with its result.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	return doJSON[Task](ctx, c, request{method: http.MethodGet, path: apiPath("tasks", id)})
}

// Cancel cancels a task. A task that has ended is returned unchanged.
func (c *Client) Cancel(ctx context.Context, id, reason string) (Task, error) {
	return doJSON[Task](ctx, c, request{method: http.MethodPost, path: apiPath("tasks", id, "cancel"), query: reasonQuery(reason)})
}

// Events yields the public events of a task after an event number, until its
// result. With follow it waits for further events, and reports an error if the
// stream ends before the task.
func (c *Client) Events(ctx context.Context, task string, after uint64, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		query := url.Values{"after": {strconv.FormatUint(after, 10)}}
		if follow {
			query.Set("follow", "1")
		}
		answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("tasks", task, "events"), query: query})
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

// Artifacts lists the artifacts of a task, sorted by creation time. An empty
// task selects all.
func (c *Client) Artifacts(ctx context.Context, task identity.TaskID) iter.Seq2[Artifact, error] {
	return listAll[Artifact](ctx, c, apiPath("artifacts"), url.Values{"task": {string(task)}})
}

// Artifact returns the record of an artifact, given its id or reference.
func (c *Client) Artifact(ctx context.Context, ref string) (Artifact, error) {
	return doJSON[Artifact](ctx, c, request{method: http.MethodGet, path: apiPath("artifacts", ref)})
}

// Content returns the content of an artifact: text and bytes as stored, other
// values as JSON.
func (c *Client) Content(ctx context.Context, ref string) ([]byte, error) {
	answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("artifacts", ref), query: url.Values{"content": {"1"}}})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// Sweep deletes stored contents that no artifact references. With dryRun it
// only counts them.
func (c *Client) Sweep(ctx context.Context, dryRun bool) (SweepResult, error) {
	return doJSON[SweepResult](ctx, c, request{method: http.MethodPost, path: apiPath("sweep"), query: dryRunQuery(dryRun)})
}

// Backup returns a backup of the organization's file. The caller must read and
// close it. The backup is complete if reading ends with io.EOF; persist.Verify
// checks its contents.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	answer, err := c.do(ctx, request{method: http.MethodGet, path: apiPath("backup")})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// Health reports whether the process answers.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return doJSON[Health](ctx, c, request{method: http.MethodGet, path: "/healthz"})
}

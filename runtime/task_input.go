package runtime

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
)

// taskInput returns a value of the input of an agent's task. It reports false for an external
// caller, whose calls belong to no task, and if the record of the task cannot be read.
func (rt *Runtime) taskInput(ctx context.Context, p identity.Principal, name string) (value json.RawMessage, ok bool) {
	agent, known := rt.org.AgentByID(p.Agent)
	if p.Kind != identity.Agent || !known {
		return nil, false
	}
	task, err := rt.TaskRecord(ctx, agent.Task)
	if err != nil {
		return nil, false
	}
	twice := false
	gjson.ParseBytes(task.Input).ForEach(func(key, member gjson.Result) bool {
		if key.Str == name {
			twice = value != nil
			value = json.RawMessage(member.Raw)
		}
		return !twice
	})
	return value, value != nil && !twice
}

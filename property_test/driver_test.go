package property_test

import (
	"context"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// drivenCall is the outcome of a call that a program made as the first agent of its task.
const drivenCall = "a driver made a call"

// startTask starts a task. If programs drive the tasks, it keeps the driver.
func (s *attackEnv) startTask(spec org.TaskSpec) (identity.TaskID, error) {
	rt, ok := s.system.(*runtime.Runtime)
	if s.drivers == nil || !ok {
		return s.StartTask(context.Background(), spec)
	}
	d, err := rt.DriveTask(context.Background(), spec)
	if err != nil {
		return "", err
	}
	s.drivers[d.AgentID()] = d
	return d.TaskID(), nil
}

// callAs makes one call of an agent: at the gate, or with the driver of the agent. A call of a
// driver that fails counts as denied.
func (s *attackEnv) callAs(who identity.AgentID, r gate.CallRequest) (*gate.Admission, error) {
	d := s.drivers[who]
	if d == nil {
		return callGate(s.Gate(), identity.ByAgent(who), r)
	}
	result, err := d.Call(context.Background(), r.Name, r.Args)
	if err != nil {
		return &gate.Admission{Request: r, Err: err, Result: tool.Failure(r.Name, err)}, nil
	}
	s.outcomes[drivenCall]++
	return &gate.Admission{Request: r, Result: tool.Result{Structured: result}}, nil
}

package builtin

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/tool"
)

// CommandWait limits how long a call of run_command waits for its turn. The time limit
// of the command starts afterwards.
const CommandWait = time.Minute

// The limits of waiting calls of run_command: in all, of one owner, and of one agent or user.
const (
	maxWaitingCommands         = 256
	maxWaitingCommandsOfOwner  = 128
	maxWaitingCommandsOfMember = 32
)

// commandQueue limits how many commands run at the same time, shared fairly among their
// owners of calls, and then among the agents of each.
type commandQueue struct {
	slots *fair.Semaphore
	size  int
}

// newCommandQueue returns a queue for twice as many commands as there are processors,
// at least four.
func newCommandQueue() *commandQueue {
	size := max(4, 2*runtime.NumCPU())
	q := &commandQueue{slots: fair.NewSemaphore(size), size: size}
	q.slots.LimitQueue(maxWaitingCommands, maxWaitingCommandsOfOwner, maxWaitingCommandsOfMember)
	return q
}

// acquire waits for the turn of a program in its workspace, and then for the turn of a key.
// The caller calls release once, after the program has ended.
//
// Errors: RateLimited if it waited for CommandWait, or if too many calls wait.
func (q *commandQueue) acquire(ctx context.Context, key fair.Key, ws *workspace.Dir) (release func(), err error) {
	waiting, cancel := context.WithTimeoutCause(ctx, CommandWait, errcode.New(errcode.RateLimited,
		"run_command: the program was not started, because other programs ran for %v; call again later, and run fewer or shorter programs at once", CommandWait))
	defer cancel()
	end, err := ws.BeginProgram(waiting)
	if err == nil {
		var free func()
		if free, err = q.slots.Acquire(waiting, key); err == nil {
			return func() { free(); end() }, nil
		}
		end()
	}
	if errors.Is(err, fair.ErrQueueFull) {
		return nil, errcode.New(errcode.RateLimited, "run_command: the program was not started, because too many calls wait already; wait for your own calls to finish, then call again")
	}
	return nil, err
}

// fairKey returns for whom a call waits.
func fairKey(c tool.Call) fair.Key {
	owner, member := c.FairKey()
	return fair.Key{Owner: owner, Member: member}
}

// Package rolecall runs organizations of agents in a Go program: what a program needs stands
// in this one package.
//
//	org, err := rolecall.Open(ctx, rolecall.Options{Data: "data", Model: model, Sandbox: sandbox})
//	defer org.Close()
//	answer, err := rolecall.Run[string](ctx, org, rolecall.TaskSpec{As: rolecall.Operator("me"), Text: "..."})
//
// A program works with an organization in one of two ways:
//
//   - Run starts a task of the agents and waits for the result. A model decides whom to hire.
//   - Begin makes the program itself the first agent of a task: it creates roles, hires
//     agents, writes to them and reads their answers. No model is asked for it. All its
//     calls pass the same gate as those of a model, and are recorded.
//
// Methods that change something take a context and a specification. What a specification
// leaves out is denied or none: a role without ToolGroups has no tools, and a task without
// As has no caller and does not start. Errors have the codes of package errcode.
//
// docs/embedding.md has programs to copy. The package has no HTTP API: that is the command
// rolecall. Package configured reads YAML files for Options.Files. The types are those of the packages that it names.
package rolecall

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/embedding"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// Options configures an Organization. Only Model is required, unless Files name one.
type Options struct {
	Data      string           // data directory; "" keeps the organization in memory, without private workspaces
	Model     Model            // answers for the agents
	Models    map[string]Model // answer for agents whose role names one
	Modules   []Module         // add tool groups
	Files     ConfigFiles      // YAML files, from package configured, which needs Data; the zero value is none
	Workspace string           // directory in which all tasks and callers work; "" means a private one for each agent
	Sandbox   *Sandbox         // runs programs, from Enter; with nil, run_command and run_javascript are unavailable
	Console   io.Writer        // output of console_print; nil discards it
	Log       *slog.Logger     // warnings, and the causes of errors that say "see the log", such as those of Model; nil discards them
}

// Organization is an organization of agents that this process runs. Its methods are safe
// for concurrent use.
type Organization struct {
	options Options
	rt      *runtime.Runtime
	program *toolgroups.Owner // of the groups that Register adds
	close   func() error
}

// programOwner owns the tool groups that the program registers.
const programOwner toolgroups.GroupOwner = "program"

// Open opens an organization. The context bounds the start of the modules. A method of a
// module may take 30 seconds; one that does not return delays the error by another minute.
// Tasks that an earlier process has left unfinished wait for Resume, or for Run with a key.
//
// Errors: InvalidConfig if Options.Model is missing or a file of Options.Files is wrong,
// Conflict if another process or another Organization has the data directory open, and those
// of the modules.
func Open(ctx context.Context, o Options) (*Organization, error) {
	open := embedding.OpenerOf(o.Files)
	if open == nil && o.Model == nil {
		return nil, errcode.New(errcode.InvalidConfig, "open an organization: Options.Model is missing")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if open == nil {
		open = compose
	}
	host, err := open(ctx, embedding.Options{
		Data: o.Data, Workspace: o.Workspace, Model: o.model, Modules: o.Modules, Launcher: o.Sandbox.start(), Console: o.Console, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	org := &Organization{options: o, rt: host.Runtime, close: sync.OnceValue(host.Close)}
	if org.program, err = org.rt.GroupManager().ClaimOwner(programOwner); err != nil {
		return nil, errors.Join(err, org.Close())
	}
	org.rt.EnforceDeadlines()
	if o.Sandbox == nil {
		o.Log.Warn("run_command and run_javascript are unavailable: Options.Sandbox is missing; call rolecall.Enter first in main and pass on what it returns")
	}
	return org, nil
}

// model returns the model of this name; "" is the default.
func (o Options) model(name string) (model.Model, error) {
	m := o.Models[name]
	if name == "" {
		m = o.Model
	}
	if m == nil && name == "" {
		return nil, errcode.New(errcode.InvalidConfig, "Options.Model is missing, and no file names a model of the organization")
	}
	if m == nil {
		return nil, errcode.New(errcode.InvalidConfig, "there is no model %q in Options.Models", name)
	}
	return m, nil
}

// Register adds a group of tools of the program, or replaces the one that the program has
// registered under the id. Roles that were created before the first registration of an id
// do not have the group. Tools are trusted code.
//
// Errors: InvalidGroupDef, DuplicateGroupID, ReservedGroupID, DuplicateToolName.
func (o *Organization) Register(ctx context.Context, g ToolGroup) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := o.program.RegisterGroup(g)
	return err
}

// Events yields the events of the organization after a sequence number, 0 for all, and then
// new ones until ctx ends.
func (o *Organization) Events(ctx context.Context, after uint64) iter.Seq2[Event, error] {
	return o.rt.JournalStore().FollowEvents(ctx, after, journal.WaitForMore)
}

// Close stops all agents, closes the modules and releases the data directory. It waits for
// steps in progress, and a minute at most for modules. Tasks that have not ended can be
// resumed. Close may be called more than once.
func (o *Organization) Close() error { return o.close() }

// workspaceFor returns the directory of a task: its own, else that of the options.
func (o *Organization) workspaceFor(s TaskSpec) string {
	if s.As.Kind != Operator("").Kind { // callers work where the runtime says
		return s.Workspace
	}
	return cmp.Or(s.Workspace, o.options.Workspace)
}

package app

import (
	"errors"
	"io/fs"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/runtime"
)

// prepareWorkspaces adds the workspaces of a configuration to a change. It returns a problem
// for each that is not a directory or contains the data directory.
//
// Of a recorded configuration only the operator's tasks get workspaces, by name. Callers may
// have lost theirs since, and a directory may be gone.
func (a *App) prepareWorkspaces(ch *configChange) (faults []*yamldoc.Error) {
	s := workspaceReader{a: a, cfg: ch.cfg}
	p := runtime.WorkspacePolicy{Named: map[string]runtime.Workspace{}}
	for _, w := range ch.cfg.Workspaces {
		if named := s.resolve(w); named.Path != "" {
			p.Named[named.Name] = named
		}
	}
	if ch.restored {
		ch.orgConfig.Workspaces = p
		return nil
	}
	p.Default = s.find(p.Named, ch.cfg.Organization.Workspace)
	p.Roles = map[string]runtime.Workspace{}
	for _, r := range ch.cfg.Roles {
		p.Roles[r.Name] = s.find(p.Named, r.Workspace)
	}
	p.Tokens = map[identity.UserName]runtime.TokenWorkspace{}
	for _, t := range ch.cfg.Gateway.Tokens {
		p.Tokens[identity.UserName(t.Name)] = runtime.TokenWorkspace{Workspace: s.find(p.Named, t.Workspace), Role: t.Role}
	}
	ch.orgConfig.Workspaces = p
	return s.faults
}

// workspaceReader converts the workspaces of a configuration and collects their problems.
type workspaceReader struct {
	a      *App
	cfg    *config.Config
	faults []*yamldoc.Error
}

// find returns the workspace of a field, the zero Workspace if it has none.
func (s *workspaceReader) find(named map[string]runtime.Workspace, f config.WorkspaceField) runtime.Workspace {
	if f.Inline != nil {
		return s.resolve(*f.Inline)
	}
	return named[f.Name]
}

// resolve returns a workspace with its resolved path, the zero Workspace after a problem.
func (s *workspaceReader) resolve(w config.Workspace) runtime.Workspace {
	if w.Path == "" {
		return runtime.Workspace{} // loading has reported it
	}
	dir, err := s.a.Runtime.ResolveWorkspace(w.Path)
	if err != nil {
		message, hint := workspaceFault(err)
		s.faults = append(s.faults, s.cfg.ErrorAt(w.PathPos, "path", message, hint))
		return runtime.Workspace{}
	}
	return runtime.Workspace{Name: w.Name, Path: dir, ReadOnly: w.ReadOnly}
}

// workspaceFault returns what is wrong with the directory of a workspace, and a hint.
func workspaceFault(err error) (message, hint string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such directory", "create it, or correct the path, which is relative to this file"
	case errcode.CodeOf(err) == errcode.InsufficientPermissions:
		return errcode.Message(err), ""
	}
	return "is not a readable directory", "name a directory that this process can read"
}

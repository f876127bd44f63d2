package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// decodeChange reads the body of a change of a role. A field that is null gets its
// default, and so does a limit that is null.
func decodeChange(r *http.Request) (wire.RoleRequest, error) {
	nullable := wire.NullableRoleFields()
	for _, name := range wire.NullableLimits() {
		nullable = append(nullable, "limits."+name)
	}
	q, nulls, err := decodeNullable[wire.RoleRequest](r, nullable)
	for _, name := range nulls {
		q.Defaults = append(q.Defaults, org.RoleField(name))
	}
	return q, err
}

// roleSpec converts a request for org. The server and the model must exist, as in a
// configuration. Without the server the role would have no tool. Without the model
// each turn of its agents would fail.
func (a *api) roleSpec(r *http.Request, q wire.RoleRequest) (org.RoleSpec, error) {
	if err := a.checkModel(q); err != nil {
		return org.RoleSpec{}, err
	}
	if q.Server != nil && *q.Server != "" && !q.AllowUnknown && !a.snapshot().KnowsServer(*q.Server) {
		text := withSuggestion(fmt.Sprintf("field \"server\": no module %q provides tools", *q.Server), *q.Server, a.snapshot().ServerNames())
		return org.RoleSpec{}, errcode.New(errcode.InvalidRole, "%s", textutil.AddHint(text, "name one that does, or allow unknown ones (allowUnknown, --allow-unknown)")).With("field", "server")
	}
	tasksAs, err := a.boundingRole(q.Tasks)
	if err != nil {
		return org.RoleSpec{}, err
	}
	bind, err := roleBind(q)
	if err != nil {
		return org.RoleSpec{}, err
	}
	return org.RoleSpec{
		Name: q.Name, Description: q.Description, Prompt: q.Prompt, Model: q.Model, Use: q.Use, Grant: q.Grant, Limits: q.Limits,
		Pattern: q.Pattern, ToolGated: q.ToolGated, Server: q.Server, TasksAs: tasksAs, Result: q.Result, Agent: q.Agent, States: q.States, Bind: bind,
		AllowUnknown: q.AllowUnknown, Defaults: q.Defaults, Revision: q.Revision, Auth: howAuthenticated(r),
	}, nil
}

// roleBind returns the bounds of a request, nil if it does not set the field.
func roleBind(q wire.RoleRequest) (bounds.Bind, error) {
	if q.Bind == nil || string(q.Bind) == "null" { // null is in Defaults
		return nil, nil
	}
	return org.ParseBind(q.Name, q.Bind)
}

// boundingRole returns the id of the role that a request names in tasks.as, nil if it does
// not set the field.
func (a *api) boundingRole(q *wire.TasksRequest) (*string, error) {
	if q == nil {
		return nil, nil
	}
	if q.As == "" {
		return nil, errcode.New(errcode.InvalidRole, "field \"tasks\" needs as, the role that bounds the tasks; null removes it").With("field", "tasks")
	}
	role, err := a.findRole(q.As)
	if err != nil {
		return nil, errcode.New(errcode.InvalidRole, "field \"tasks.as\": %s", errcode.Message(err)).With("field", "tasks")
	}
	id := string(role.ID)
	return &id, nil
}

// checkModel rejects a model that the active configuration does not declare. Without a
// configuration it is unknown which models there are: see uncheckedFields.
func (a *api) checkModel(q wire.RoleRequest) error {
	known, loaded := a.models()
	if q.Model == "" || q.AllowUnknown || !loaded || slices.Contains(known, q.Model) {
		return nil
	}
	text := withSuggestion(fmt.Sprintf("no model %q is declared", q.Model), q.Model, known)
	if len(known) == 0 {
		text = "the configuration declares no models"
	}
	return errcode.New(errcode.InvalidRole, "%s", textutil.AddHint(text, "name a declared one, or allow unknown ones (allowUnknown, --allow-unknown)")).With("field", "llmServiceId")
}

// uncheckedFields lists the fields of an accepted request that could not be checked.
func (a *api) uncheckedFields(q wire.RoleRequest) []string {
	if _, loaded := a.models(); q.Model == "" || loaded {
		return nil
	}
	return []string{"llmServiceId"}
}

// checkToolGated rejects a request that makes a role answer from its tools and
// leaves it none.
func checkToolGated(q wire.RoleRequest, use *toolgroups.GroupSet) error {
	if q.ToolGated == nil || *q.ToolGated == toolgroups.NotGated || use == nil || use.IsAll() || len(use.GroupIDs()) > 0 {
		return nil
	}
	return errcode.New(errcode.InvalidRole, "field \"toolGated\" leaves the role no way to answer: its toolGroups are empty; name the groups whose tools it answers from").With("field", "toolGated")
}

// listRoles lists the active roles, sorted by name and id.
func (a *api) listRoles(r *http.Request) (any, error) {
	return paginate(r, a.org().ListRoles(), roleKey, a.roleOf)
}

// roleKey is the sort key and page cursor of a role.
func roleKey(role org.Role) string { return role.Name + "\x00" + string(role.ID) }

// showRole answers with one active role and its tools. Its ETag is the revision.
func (a *api) showRole(r *http.Request) (any, error) {
	role, err := a.findRole(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := a.roleOf(role)
	v := a.visibilityOf(identity.ByCaller("", role.ID), role)
	for _, h := range v.tools() {
		out.Tools = append(out.Tools, wire.RoleTool{Name: h.Definition.Name, Group: v.groupOf(h), Effect: h.Definition.Effect.String(), ToolFlags: wire.FlagsOf(h.Definition.Flags)})
	}
	return statusAnswer{http.StatusOK, out, wire.RevisionTag(role.Revision)}, nil
}

// createRole creates a role. If an identical role exists, it answers with that.
func (a *api) createRole(r *http.Request) (any, error) {
	q, err := decode[wire.RoleRequest](r)
	if err != nil {
		return nil, err
	}
	dry, err := boolParam(r, "dryRun")
	if err != nil {
		return nil, err
	}
	spec, err := a.roleSpec(r, q)
	if err = cmp.Or(err, checkToolGated(q, q.Use)); err != nil {
		return nil, err
	}
	if dry {
		role, err := a.org().PlanRole(auth.SenderOf(r), spec)
		if err != nil {
			return nil, err
		}
		out := a.writtenRole(role, q)
		out.Reach = a.org().CompareReach(role)
		return out, nil
	}
	role, err := a.rt.CreateRole(r.Context(), operatorCall(r), spec)
	return statusAnswer{http.StatusCreated, a.writtenRole(role, q), wire.RevisionTag(role.Revision)}, err
}

// updateRole changes a role. With If-Match it changes only that revision.
func (a *api) updateRole(r *http.Request) (any, error) {
	q, err := decodeChange(r)
	if err != nil {
		return nil, err
	}
	if q.Revision, err = matchedRevision(r); err != nil {
		return nil, err
	}
	role, dry, err := a.roleToChange(r)
	if err != nil {
		return nil, err
	}
	spec, err := a.roleSpec(r, q)
	if err = cmp.Or(err, checkToolGated(q, cmp.Or(q.Use, &role.Use))); err != nil {
		return nil, err
	}
	if dry && role.CreatedBy == org.CreatorConfig && err == nil {
		return a.previewDeclared(r, role, spec, q)
	}
	next, diff, err := a.rt.UpdateRole(auth.SenderOf(r), role.ID, spec, dry)
	change := wire.RoleChange{Role: a.writtenRole(next, q), Diff: diff}
	if dry && err == nil {
		change.Reach = a.org().CompareReach(next)
	}
	return statusAnswer{http.StatusOK, change, wire.RevisionTag(next.Revision)}, withRevisionStatus(err)
}

// withRevisionStatus gives the error for another revision than If-Match names its status.
func withRevisionStatus(err error) error {
	if e, ok := errors.AsType[*errcode.Error](err); ok && e.Details["revision"] != nil {
		return wire.WithStatus(err, http.StatusPreconditionFailed)
	}
	return err
}

// previewDeclared answers what a change of a role of the configuration would do. Its file makes it.
func (a *api) previewDeclared(r *http.Request, role org.Role, spec org.RoleSpec, q wire.RoleRequest) (any, error) {
	next, diff, refusal, err := a.org().PreviewUpdate(auth.SenderOf(r), role.ID, spec)
	if err != nil {
		return nil, withRevisionStatus(err)
	}
	change := wire.RoleChange{Role: a.writtenRole(next, q), Diff: diff, Reach: a.org().CompareReach(next)}
	if refusal != nil {
		change.Refusal = errcode.Message(refusal)
	}
	return change, nil
}

// matchedRevision returns the revision that the header If-Match names, 0 if any
// is meant. A tag that no revision has matches none.
func matchedRevision(r *http.Request) (uint64, error) {
	tags := r.Header.Values("If-Match")
	switch {
	case len(tags) == 0 || len(tags) == 1 && tags[0] == "*":
		return 0, nil
	case len(tags) > 1 || strings.Contains(tags[0], ","):
		return 0, errcode.New(errcode.InvalidArguments, "If-Match has several tags; send the ETag of one revision")
	}
	revision, err := strconv.ParseUint(strings.Trim(tags[0], `"`), 10, 64)
	if err != nil || wire.RevisionTag(revision) != tags[0] || revision == 0 {
		return math.MaxUint64, nil
	}
	return revision, nil
}

// deleteRole deletes a role and answers with its record afterwards.
func (a *api) deleteRole(r *http.Request) (any, error) {
	if r.Header.Get("If-Match") != "" {
		return nil, errcode.New(errcode.InvalidArguments, "If-Match is not supported for DELETE; use it with PATCH")
	}
	role, dry, err := a.roleToChange(r)
	if err != nil {
		return nil, err
	}
	diff, err := a.rt.DeleteRole(auth.SenderOf(r), role.ID, dry)
	role.Status, role.Revision = org.Deleted, role.Revision+1
	change := wire.RoleChange{Role: a.roleOf(role), Diff: diff}
	if dry && err == nil {
		change.Reach = a.org().CompareReach(role)
	}
	return change, err
}

// roleToChange reads dryRun and finds the role in the path.
func (a *api) roleToChange(r *http.Request) (role org.Role, dry bool, err error) {
	if dry, err = boolParam(r, "dryRun"); err != nil {
		return role, dry, err
	}
	role, err = a.findRole(r.PathValue("id"))
	return role, dry, err
}

// writtenRole converts the record of a role that a request has written.
func (a *api) writtenRole(role org.Role, q wire.RoleRequest) wire.Role {
	out := a.roleOf(role)
	out.Unchecked = a.uncheckedFields(q)
	return out
}

// roleOf converts a role's record for the API.
func (a *api) roleOf(role org.Role) wire.Role {
	out := wire.Role{Role: role}
	snapshot, seen := a.snapshot(), map[toolgroups.GroupID]bool{}
	for _, id := range append(role.Use.GroupIDs(), role.Grant.GroupIDs()...) {
		owner := snapshot.GroupOwner(id)
		if inert := owner == "" || owner != role.GroupOwners[id]; inert && !seen[id] {
			out.Dangling = append(out.Dangling, id)
		}
		seen[id] = true
	}
	if id := role.Tasks.As; id != "" {
		as, _ := a.org().RoleByID(id)
		out.TasksAs = &wire.BoundingRole{Name: cmp.Or(as.Name, string(id)), Status: cmp.Or(as.Status, org.Deleted)}
	}
	return out
}

// roleName returns a role's name, also of deleted roles.
func (a *api) roleName(id identity.RoleID) string {
	if role, ok := a.org().RoleByID(id); ok {
		return role.Name
	}
	return string(id)
}

// roleID returns the id of a role given by id or exact name, including root.
func (a *api) roleID(ref string) (identity.RoleID, error) {
	if ref == org.RootRole {
		return org.RootRole, nil
	}
	role, err := a.findRole(ref)
	return role.ID, err
}

// operatorCall returns a call by the operator who sends a request, with a new id.
func operatorCall(r *http.Request) tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: auth.SenderOf(r)}
}

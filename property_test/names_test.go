package property_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// namePool are the names that everybody wants.
var namePool = []string{"dba", "analyst", "reader"}

// nameOrg is an organization in which the operator, the configuration and agents create
// roles of the same few names. It remembers who created each role.
type nameOrg struct {
	*runtime.Runtime
	builtins *builtinGroups
	store    *memoryStore
	tokens   *auth.TokenStore
	roles    []*namedRole
	kept     map[string]bool // names that declared roles have or had
	root     identity.AgentID
}

// namedRole is a role with an agent that holds it and, if it is declared, a token.
type namedRole struct {
	id      identity.RoleID
	name    string
	creator *namedRole // nil if root or no agent created it
	by      string     // operator, config or agent
	gone    bool
	agent   identity.AgentID
}

// declared reports whether the operator or the configuration created r.
func (r *namedRole) declared() bool { return r.by != "agent" }

// dead reports whether r or a role that created it is deleted.
func (r *namedRole) dead() bool { return r.gone || r.creator != nil && r.creator.dead() }

// newNameOrg returns an organization with a task of the operator.
func newNameOrg(builtins *builtinGroups) (*nameOrg, error) {
	o := &nameOrg{builtins: builtins, store: newMemoryStore(), kept: map[string]bool{}}
	if err := o.open(); err != nil {
		return nil, err
	}
	id, err := o.StartTask(context.Background(), org.TaskSpec{Text: "go", Caller: operator})
	task, _ := o.Org().TaskByID(id)
	o.root = task.Top
	return o, err
}

// open opens a runtime on the store, as at every start.
func (o *nameOrg) open() (err error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	if o.Runtime, err = newRuntime(o.store, groups, newScriptedModel()); err != nil {
		return err
	}
	if _, err = o.builtins.register(groups, o.Runtime); err != nil {
		return err
	}
	o.tokens, err = auth.NewTokenStore(auth.TokenStoreConfig{Role: o.Org().RoleByID})
	return err
}

// active returns the active role of a name, nil if there is none.
func (o *nameOrg) active(name string) *namedRole {
	for _, r := range o.roles {
		if r.name == name && !r.gone {
			return r
		}
	}
	return nil
}

// artifactSpec is a role whose agents have tools and create roles.
func artifactSpec(name string) org.RoleSpec {
	use := toolgroups.SetOf(toolgroups.Artifact, toolgroups.OrgManagement)
	return org.RoleSpec{Name: name, Use: &use}
}

// create creates a role as the operator or, if creator is not "", as an agent of the role
// from, nil for root.
func (o *nameOrg) create(creator identity.AgentID, from *namedRole, name string) error {
	made, by := &namedRole{name: name, by: "operator"}, operator
	if creator != "" {
		made.by, made.creator, by = "agent", from, identity.ByAgent(creator)
	}
	var want errcode.Code
	switch {
	case identity.IsID(name):
		want = errcode.InvalidRole
	case from != nil && from.dead():
		want = errcode.InsufficientPermissions
	case o.active(name) != nil:
		want = errcode.RoleExists
	case !made.declared() && o.kept[name]:
		want = errcode.InvalidRole
	}
	spec := artifactSpec(name)
	spec.Prompt = identity.NewID() // no role has the same content as another one
	role, err := o.CreateRole(context.Background(), newCall(by), spec)
	if errcode.CodeOf(err) != want {
		return fmt.Errorf("%s creates the role %q: %v, want %q", by, name, err, want)
	}
	if err != nil {
		return nil
	}
	return o.add(made, role)
}

// add adds a created role and spawns an agent of it below root.
func (o *nameOrg) add(made *namedRole, role org.Role) error {
	made.id = role.ID
	o.roles = append(o.roles, made)
	if made.declared() {
		o.kept[made.name] = true
	}
	got, err := o.SpawnAgent(context.Background(), newCall(identity.ByAgent(o.root)), org.SpawnSpec{Role: role.ID, Brief: taskBrief}, nil)
	made.agent = got.ID
	return err
}

// configure applies a configuration of some names. It is rejected if another creator has
// a role of one of them.
func (o *nameOrg) configure(names []string) error {
	var specs []org.RoleSpec
	taken := false
	for _, name := range names {
		r := o.active(name)
		taken = taken || r != nil && r.by != "config"
		specs = append(specs, artifactSpec(name))
	}
	if err := o.ApplyConfig(runtime.OrgConfig{Roles: specs}); taken != (errcode.CodeOf(err) == errcode.RoleExists) || taken != (err != nil) {
		return fmt.Errorf("configure %q: %v, a name is taken: %v", names, err, taken)
	}
	if taken {
		return nil
	}
	for _, r := range o.roles {
		r.gone = r.gone || r.by == "config" && !slices.Contains(names, r.name)
	}
	for _, name := range names {
		role, ok := o.Org().ConfiguredRole(name)
		if !ok {
			return fmt.Errorf("configure %q: there is no role %q", names, name)
		}
		if o.active(name) == nil {
			if err := o.add(&namedRole{name: name, by: "config"}, role); err != nil {
				return err
			}
		}
	}
	return nil
}

// change deletes or renames a role as the operator.
func (o *nameOrg) change(r *namedRole, name string) error {
	if name == "" {
		_, err := o.DeleteRole(operator, r.id, false)
		r.gone = r.gone || err == nil
		return nil
	}
	if _, _, err := o.UpdateRole(operator, r.id, org.RoleSpec{Name: name}, false); err == nil && r.declared() {
		r.name, o.kept[name] = name, true
	} else if err == nil {
		r.name = name
	}
	return nil
}

// step makes one random change.
func (o *nameOrg) step(t *proptest.Choices) error {
	name := proptest.PickFrom(t, namePool...)
	var r *namedRole
	if len(o.roles) > 0 {
		r = proptest.PickFrom(t, o.roles...)
	}
	switch n := t.Pick(10); {
	case n == 0 || r == nil:
		return o.create("", nil, name)
	case n == 1:
		names := slices.Compact(slices.Sorted(slices.Values(someOf(t, 3, namePool))))
		return o.configure(names)
	case n == 2 || n == 3:
		return o.change(r, "")
	case n == 4:
		return o.change(r, proptest.PickFrom(t, name, "spare"))
	case n == 5:
		return o.create(o.root, nil, string(r.id))
	case n == 6 && t.OneIn(2):
		if err := o.Close(); err != nil {
			return err
		}
		return o.open()
	case n < 8:
		return o.create(o.root, nil, name)
	}
	return o.create(r.agent, r, name)
}

// check checks tokens, ids and agents. The token of a role and its id stand for that role
// alone. Agents of deleted roles, and of roles that these created, have no tools.
func (o *nameOrg) check() error {
	if err := o.tokens.ReplaceTokens(o.declaredTokens()); err != nil {
		return err
	}
	for i, r := range o.roles {
		p, err := o.tokenUser(i)
		if valid := r.declared() && !r.gone; valid != (err == nil) || valid && p.Role != r.id {
			return fmt.Errorf("the token of role %q, gone %v, is %s, %v", r.name, r.gone, p, err)
		}
		view, _ := o.Org().ResolveView(identity.ByAgent(r.agent))
		if has := len(view.CurrentView().ToolNames()) > 0; has == r.dead() {
			return fmt.Errorf("an agent of role %q, dead %v, has tools: %v", r.name, r.dead(), has)
		}
		if found, err := o.Org().FindRole(string(r.id)); r.gone != (err != nil) || err == nil && found.ID != r.id {
			return fmt.Errorf("the id of role %q, gone %v, finds %q", r.name, r.gone, found.ID)
		}
	}
	return nil
}

// declaredTokens returns a token for each declared role, also of deleted ones.
func (o *nameOrg) declaredTokens() (list []auth.Token) {
	for i, r := range o.roles {
		if r.declared() {
			list = append(list, auth.Token{Name: fmt.Sprint(i), Digest: sha256.Sum256(fmt.Append(nil, "rc_", i)), Scope: auth.ScopeRole, Role: r.id})
		}
	}
	return list
}

// tokenUser authenticates a request with the token of the i-th role.
func (o *nameOrg) tokenUser(i int) (identity.Principal, error) {
	r := &http.Request{Header: http.Header{"Authorization": {fmt.Sprint("Bearer rc_", i)}}}
	return o.tokens.Authenticate(r)
}

// Names are not identities. An attacker creates, deletes, renames and configures roles of the same
// names in any order. No agent gets a name that the operator or the configuration used. No token
// passes to another role, and nothing that belonged to a deleted role comes back.
func TestRoleNames_AreNoIdentities(t *testing.T) {
	builtins := newBuiltinGroups(t)
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 150}, func(t *proptest.Choices) error {
		o, err := newNameOrg(builtins)
		if err != nil {
			return err
		}
		defer func() { o.Close() }()
		for err == nil && !t.IsEmpty() {
			if err = o.step(t); err == nil {
				err = o.check()
			}
		}
		return err
	})
}

package cmd

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Commands name tasks, agents, roles and artifacts by references. A reference is an id or the
// beginning of an id. For agents it may be the end of an id. Roles and agents also have names, and
// the newest task is "last". The functions here return the id. If the reference is a name or
// unknown, they return the reference itself. The gateway finds names, and its error for an unknown
// name has a suggestion.

// lastTask is the reference to the newest task.
const lastTask = "last"

// The lengths of an id, and of the shortest accepted beginning of an id.
const (
	idLength  = len("01a1fded-ba9c-76b0-b2c8-51f0fecce8df")
	minPrefix = 4
)

// resolveTask returns the id of a task.
func resolveTask(ctx context.Context, api *client.Client, ref string) (string, error) {
	if ref == lastTask {
		for t, err := range api.QueryTasks(ctx, client.TaskQuery{Limit: 1}) {
			return string(t.ID), err
		}
		return "", errcode.New(errcode.TaskNotFound, "there is no task yet")
	}
	return resolveID(ref, "task", api.ListTasks(ctx, ""), func(t client.Task) candidate {
		return candidate{id: string(t.ID), text: string(t.Status) + "  " + t.Text}
	})
}

// resolveAgent returns the id of an agent, or the name of its role. The log names an agent by its
// role and the end of its id. This name is a reference, too, and so is the end of the id alone.
func resolveAgent(ctx context.Context, api *client.Client, ref string) (string, error) {
	id, err := resolveAgentID(ctx, api, ref)
	end := strings.ToLower(ref[strings.LastIndexByte(ref, '/')+1:])
	if err != nil || id != ref || len(end) != suffixLength || !isPrefix(end) {
		return id, err
	}
	var found []candidate
	for a, err := range api.ListAgents(ctx, "", "") {
		switch {
		case isForOperator(err) || a.Role == ref:
			return ref, nil
		case err != nil:
			return "", err
		case strings.HasSuffix(string(a.ID), end) && (len(ref) == len(end) || ref[:len(ref)-len(end)-1] == a.Role):
			found = append(found, candidate{id: string(a.ID), text: string(a.Status) + "  " + a.Role})
		}
	}
	switch len(found) {
	case 0:
		return ref, nil
	case 1:
		return found[0].id, nil
	}
	return "", errAmbiguous(ref, "agent", "ends", len(found), found[:min(len(found), maxCandidates)])
}

// resolveAgentID returns the id of an agent, given that or its beginning, or the name of its
// role.
func resolveAgentID(ctx context.Context, api *client.Client, ref string) (string, error) {
	return resolveID(ref, "agent", api.ListAgents(ctx, "", ""), func(a client.Agent) candidate {
		return candidate{id: string(a.ID), name: a.Role, text: string(a.Status) + "  " + a.Role}
	})
}

// resolveRole returns the id or the name of a role.
func resolveRole(ctx context.Context, api *client.Client, ref string) (string, error) {
	return resolveID(ref, "role", api.ListRoles(ctx), func(r client.Role) candidate {
		return candidate{id: string(r.ID), name: r.Name, text: r.Name}
	})
}

// resolveArtifact returns the id of an artifact, given that, its beginning or a reference
// to one of these.
func resolveArtifact(ctx context.Context, api *client.Client, ref string) (string, error) {
	return resolveID(strings.TrimPrefix(ref, "artifact:"), "artifact", api.ListArtifacts(ctx, ""), func(a client.Artifact) candidate {
		return candidate{id: a.ID, text: a.Type}
	})
}

// findTask returns the task that a reference names.
func findTask(ctx context.Context, api *client.Client, ref string) (client.Task, error) {
	id, err := resolveTask(ctx, api, ref)
	if err != nil {
		return client.Task{}, err
	}
	return api.FindTask(ctx, id)
}

// findFilterTask returns the id for a list of what belongs to one task, which must exist; ""
// selects all tasks.
func findFilterTask(ctx context.Context, api *client.Client, ref string) (identity.TaskID, error) {
	if ref == "" {
		return "", nil
	}
	t, err := findTask(ctx, api, ref)
	return t.ID, err
}

// findRoleID returns the id of the role that a reference names. A caller may not ask for its
// role, so its reference stays as it is.
func findRoleID(ctx context.Context, api *client.Client, ref string) (string, error) {
	ref, err := resolveRole(ctx, api, ref)
	if err != nil {
		return "", err
	}
	r, err := api.FindRole(ctx, ref)
	if isForOperator(err) {
		return ref, nil
	}
	return string(r.ID), err
}

// findArtifact returns the record of the artifact that a reference names.
func findArtifact(ctx context.Context, api *client.Client, ref string) (client.Artifact, error) {
	id, err := resolveArtifact(ctx, api, ref)
	if err != nil {
		return client.Artifact{}, err
	}
	return api.FindArtifact(ctx, id)
}

// candidate is what a reference may stand for.
type candidate struct {
	id   string
	name string // another reference to it; "" for none
	text string // describes it in an error
}

// maxCandidates is how many candidates the error for an ambiguous reference lists.
const maxCandidates = 10

// resolveID returns the only id in a list that begins with ref. A name in the list is
// stronger than the beginning of an id.
func resolveID[T any](ref, what string, list iter.Seq2[T, error], candidateOf func(T) candidate) (string, error) {
	prefix := strings.ToLower(ref)
	if !isPrefix(prefix) || len(ref) == idLength && ref == prefix {
		return ref, nil
	}
	n := 0
	var found []candidate
	for item, err := range list {
		if isForOperator(err) { // others know names only
			return ref, nil
		}
		if err != nil {
			return "", err
		}
		c := candidateOf(item)
		if c.name == ref {
			return ref, nil
		}
		if !strings.HasPrefix(c.id, prefix) {
			continue
		}
		if n++; n <= maxCandidates {
			found = append(found, c)
		}
	}
	switch n {
	case 0:
		return ref, nil
	case 1:
		return found[0].id, nil
	}
	return "", errAmbiguous(ref, what, "begins", n, found)
}

// isPrefix reports whether a text in lower case can be the beginning of an id.
func isPrefix(text string) bool {
	return len(text) >= minPrefix && len(text) <= idLength && strings.Trim(text, "0123456789abcdef-") == "" && text[0] != '-'
}

// errAmbiguous is the error for the beginning or end of n ids, some of which are found.
func errAmbiguous(ref, what, place string, n int, found []candidate) error {
	var b strings.Builder
	for _, c := range found {
		b.WriteString("\n  " + textutil.Sanitize(c.id) + "  " + textutil.TruncateWidth(textutil.Sanitize(c.text), maxCell))
	}
	if more := n - len(found); more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return errcode.New(errcode.Conflict, "%q %s the ids of %d %ss; use more of the id:%s", ref, place, n, what, b.String())
}

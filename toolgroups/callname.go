package toolgroups

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// serverPrefix distinguishes the owners that are modules from all others.
const serverPrefix = "module:"

// ServerOwner returns the owner of the groups of the named module instance, such as an MCP
// server. Built-in groups and groups of the configuration have other owners.
func ServerOwner(name string) GroupOwner { return GroupOwner(serverPrefix + name) }

// serverName returns the name of the module that owner is; false for other owners.
func serverName(owner GroupOwner) (string, bool) {
	return strings.CutPrefix(string(owner), serverPrefix)
}

// ServerNames returns the names of the module instances that own a group, sorted. The
// list is not nil.
func (s *Snapshot) ServerNames() []string {
	names := []string{}
	for _, g := range s.groups.values() {
		if name, ok := serverName(g.Owner); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxCallName is the longest tool name, in bytes, that all model providers accept.
const maxCallName = 64

// CallName returns the name under which the API of a server is offered as a tool. The
// id has the form server/api: exactly one '/', and parts of ASCII letters, digits,
// '_', '.' and '-'. Different ids have different names:
//
//	call_ E(server) _ E(api)   where E writes - as --, _ as -u and . as -d
//	call__ and 32 hex digits   of the SHA-256 of the id, if the first form is longer than 64 bytes
//
// E produces no '_', so the first form is read in one way only. The two forms differ
// because the name of a server is not empty. Errors have the code invalid_group_def.
func CallName(id string) (string, error) {
	if strings.Count(id, "/") != 1 {
		return "", errcode.New(errcode.InvalidGroupDef, "call name of %.140q: the id is not of the form server/api", id)
	}
	if err := CheckID(GroupID(id)); err != nil {
		return "", errcode.Wrap(errcode.InvalidGroupDef, err, "call name: %s", errcode.Message(err))
	}
	name := "call_" + nameEscaper.Replace(id)
	if len(name) <= maxCallName {
		return name, nil
	}
	sum := sha256.Sum256([]byte(id))
	return "call__" + hex.EncodeToString(sum[:16]), nil
}

// nameEscaper replaces the '/' of an id by '_' and escapes every other '_'.
var nameEscaper = strings.NewReplacer("/", "_", "-", "--", "_", "-u", ".", "-d")

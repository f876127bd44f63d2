package toolgroups

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// serverPrefix tells the owners that are servers from those that are not.
const serverPrefix = "module:"

// Server gives the owner that the server of this name is: the module instance
// of this name. The built-in groups and those of the configuration belong to
// no server.
func Server(name string) Owner { return Owner(serverPrefix + name) }

// Servers lists the names of the servers that own a group, sorted.
func (s *Snapshot) Servers() []string {
	names := []string{}
	for _, g := range s.groups.all {
		if name, ok := strings.CutPrefix(string(g.Owner), serverPrefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxCallName is how long a tool's name may be for every provider of models.
const maxCallName = 64

// CallName gives the name under which a server's API is offered as a tool.
// id is server/api: exactly one '/', each part ASCII letters, digits, '_', '.'
// and '-', compared exactly. Different ids have different names:
//
//	call_ E(server) _ E(api)   where E writes - as --, _ as -u and . as -d
//	call__ and 32 hex digits   of the id's SHA-256, when that is longer than 64 bytes
//
// The only '_' are separators and no server's name is empty, so neither form
// is ever read as another id's. Errors: InvalidGroupDef.
func CallName(id string) (string, error) {
	if strings.Count(id, "/") != 1 {
		return "", errcode.New(errcode.InvalidGroupDef, "name the API %.140q: it is not server/api", id)
	}
	if err := CheckID(GroupID(id)); err != nil {
		return "", errcode.Wrap(errcode.InvalidGroupDef, err, "name the API: %s", errcode.Message(err))
	}
	name := "call_" + nameEscaper.Replace(id)
	if len(name) <= maxCallName {
		return name, nil
	}
	sum := sha256.Sum256([]byte(id))
	return "call__" + hex.EncodeToString(sum[:16]), nil
}

// nameEscaper writes an id with '_' for '/', and no other.
var nameEscaper = strings.NewReplacer("/", "_", "-", "--", "_", "-u", ".", "-d")

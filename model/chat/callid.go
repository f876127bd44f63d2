package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxCallID is how many bytes an id of a call may have.
const maxCallID = 64

// PortableID returns the id of a call if every provider accepts it, else its hash. An
// id that another provider made may have any length and characters.
func PortableID(id string) string {
	if id != "" && len(id) <= maxCallID && strings.IndexFunc(id, isSpecial) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "x_" + hex.EncodeToString(sum[:16])
}

// isSpecial reports whether a character is not allowed in an id.
func isSpecial(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

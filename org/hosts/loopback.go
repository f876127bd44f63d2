package hosts

import (
	"net/netip"
	"strings"
)

// IsLoopback reports whether a name or IP address, without a port, is reachable only from this
// host. This is localhost in upper or lower case, or a loopback address.
func IsLoopback(name string) bool {
	addr, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

package toolboxfile

import (
	"net/netip"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org/hosts"
)

// networkCheck checks a field of a source against the private addresses that the operator
// allows.
type networkCheck func(private []netip.Prefix)

// listHint says how the operator allows addresses.
const listHint = "a file of tools cannot allow more than the operator: list the ranges in privateAddresses of kind: network"

// privateNetworks reads allowPrivateNetworks. True is accepted only if the operator allows
// private addresses, and then stands for those.
func (it item) privateNetworks(s *Source) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		yamldoc.OptionalBool(&s.PrivateNetworks)(v)
		if !*s.PrivateNetworks {
			return
		}
		it.r.networkChecks = append(it.r.networkChecks, func(private []netip.Prefix) {
			if len(private) == 0 {
				v.AddError("is true, and no private addresses are allowed", listHint)
			}
		})
	}
}

// allowedRanges reads allowedIpRanges. Each range must be public or allowed by the operator.
func (it item) allowedRanges(s *Source) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		before := it.ErrorCount()
		yamldoc.EmptyAsAbsent(yamldoc.AddressOrRangeList(&s.AllowedRanges))(v)
		if it.ErrorCount() > before || !v.IsList() {
			return
		}
		ranges := s.AllowedRanges
		it.r.networkChecks = append(it.r.networkChecks, func(private []netip.Prefix) {
			guard := hosts.NewDialGuard(private)
			for i, entry := range v.ListItems() {
				if !guard.AllowsRange(ranges[i]) {
					entry.AddError(ranges[i].String()+" has addresses that are not public and not allowed", listHint)
				}
			}
		})
	}
}

// CheckNetworks reports the sources that ask for addresses which the operator does not allow.
// private are the addresses allowed although they are not public. It is called when all
// documents are read. Whether or not it is called, sources reach only what the operator allows.
func (r *Reader) CheckNetworks(private []netip.Prefix) {
	for _, check := range r.networkChecks {
		check(private)
	}
}

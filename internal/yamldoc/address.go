package yamldoc

import (
	"cmp"
	"net/netip"
)

// AddressRangeList reads a list of IP address ranges.
func AddressRangeList(to *[]netip.Prefix) func(Value) { return rangeList(to, readAddressRange) }

// AddressOrRangeList is AddressRangeList whose entries may also be one address, which is the range
// of it alone.
func AddressOrRangeList(to *[]netip.Prefix) func(Value) { return rangeList(to, readAddressOrRange) }

// rangeList reads a list whose entries read reads.
func rangeList(to *[]netip.Prefix, read func(Value) (netip.Prefix, bool)) func(Value) {
	return func(v Value) {
		if !v.IsList() {
			v.AddTypeError("a list of address ranges", "for example [10.1.0.0/16, 127.0.0.1/32, fd00::/8]")
			return
		}
		for _, item := range v.ListItems() {
			if p, ok := read(item); ok {
				*to = append(*to, p)
			}
		}
	}
}

// readAddressRange reads a range in CIDR notation.
func readAddressRange(v Value) (netip.Prefix, bool) {
	text, ok := v.ReadNonEmpty()
	if !ok {
		return netip.Prefix{}, false
	}
	return parseRange(v, text)
}

// readAddressOrRange reads an address, or a range in CIDR notation.
func readAddressOrRange(v Value) (netip.Prefix, bool) {
	text, ok := v.ReadNonEmpty()
	if !ok {
		return netip.Prefix{}, false
	}
	return parseRange(v, cmp.Or(addressAsRange(text), text))
}

// parseRange returns the range that text, which is from v, writes in CIDR notation.
func parseRange(v Value, text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil && addressAsRange(text) != "":
		v.AddError(QuoteText(v.Node.Value)+" is one address, not a range", "write "+addressAsRange(text))
	case err != nil || p.Addr().Is4In6():
		v.AddTypeError("an address range", "for example 10.1.0.0/16 or fd00::/8")
	case p != p.Masked():
		v.AddError(QuoteText(v.Node.Value)+" has address bits set after its prefix length", "write "+p.Masked().String())
	default:
		return p, true
	}
	return netip.Prefix{}, false
}

// addressAsRange returns the range that contains only the address in text, or ""
// if text is not an address.
func addressAsRange(text string) string {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" || addr.Is4In6() {
		return ""
	}
	return netip.PrefixFrom(addr, addr.BitLen()).String()
}

package tool

import (
	"encoding/json"
	"slices"
)

// Flag is something about a tool that is harmless alone. Where tools with all of the flags meet,
// untrusted text can make an agent send private data away.
type Flag uint8

// The flags.
const (
	Untrusted Flag = 1 << iota // results may contain text of people and systems that are not trusted
	Private                    // results may contain private data
	Outside                    // a call may send data out of the organization
)

var flagNames = []struct {
	flag Flag
	name string
}{{Untrusted, "untrusted"}, {Private, "private"}, {Outside, "outside"}}

// ListFlags returns all flags.
func ListFlags() []Flag { return []Flag{Untrusted, Private, Outside} }

// FlagNames returns the names of all flags in documents and listings.
func FlagNames() (names []string) {
	for _, f := range flagNames {
		names = append(names, f.name)
	}
	return names
}

// ParseFlag returns the flag with a name. It reports false for an unknown name.
func ParseFlag(name string) (Flag, bool) {
	for _, f := range flagNames {
		if f.name == name {
			return f.flag, true
		}
	}
	return 0, false
}

// String returns the name of the flag.
func (f Flag) String() string {
	for _, one := range flagNames {
		if one.flag == f {
			return one.name
		}
	}
	return "unknown"
}

// Flags are what is known about a tool. FlagsOf makes them. The zero Flags are unknown: then all
// flags count. FlagsOf without a flag says that none counts. Flags are no permission.
type Flags uint8

// flagsKnown is set in all Flags that FlagsOf has made.
const flagsKnown Flags = 1 << 7

// FlagsOf returns known Flags: the flags of the list, and no others.
func FlagsOf(list ...Flag) Flags {
	f := flagsKnown
	for _, flag := range list {
		f |= Flags(flag)
	}
	return f
}

// Known reports whether the flags are known.
func (f Flags) Known() bool { return f&flagsKnown != 0 }

// Has reports whether a flag counts. Unknown Flags have all.
func (f Flags) Has(flag Flag) bool { return !f.Known() || f&Flags(flag) != 0 }

// List returns the flags that count.
func (f Flags) List() []Flag {
	return slices.DeleteFunc(ListFlags(), func(flag Flag) bool { return !f.Has(flag) })
}

// Names returns the names of the flags that count. The list is never nil.
func (f Flags) Names() []string {
	names := []string{}
	for _, flag := range f.List() {
		names = append(names, flag.String())
	}
	return names
}

// MarshalJSON returns the names, and null for unknown Flags.
func (f Flags) MarshalJSON() ([]byte, error) {
	if !f.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(f.Names())
}

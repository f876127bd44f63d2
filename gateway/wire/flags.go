package wire

import "github.com/rolecall/rolecall/tool"

// ToolFlags are the flags of a tool.
type ToolFlags struct {
	Flags      []string `json:"flags"`      // those that count: untrusted, private, outside
	FlagsKnown bool     `json:"flagsKnown"` // false: the tool has no flags of its own, so all count
}

// FlagsOf converts flags.
func FlagsOf(f tool.Flags) ToolFlags { return ToolFlags{f.Names(), f.Known()} }

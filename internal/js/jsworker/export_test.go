package jsworker

// NumberOf returns the number of a machine in its group.
func NumberOf(v *VM) uint64 { return v.number }

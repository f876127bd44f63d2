package yamldoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ReadInteger returns a whole number from least to most. The number may be in a variable,
// even a quoted one, because within { } a variable must be quoted.
func (v Value) ReadInteger(least, most int64) (int64, bool) {
	return v.readInteger("whole number", least, most)
}

// readInteger is ReadInteger; what describes the number in errors.
func (v Value) readInteger(what string, least, most int64) (int64, bool) {
	digits, ok := v.Node.Value, v.Node.Tag == "!!int"
	if v.HasVariable() {
		if digits, ok = v.ReadText(); !ok {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < least || n > most {
		v.AddTypeError(fmt.Sprintf("a %s from %d to %d", what, least, most), "")
		return 0, false
	}
	return n, true
}

// ReadNumber returns a number from 0 to most. It may be in a variable.
func (v Value) ReadNumber(most float64) (float64, bool) {
	digits, ok := v.Node.Value, v.Node.Tag == "!!int" || v.Node.Tag == "!!float"
	if v.HasVariable() {
		if digits, ok = v.ReadText(); !ok {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(f >= 0 && f <= most) {
		v.AddTypeError("a number from 0 to "+strconv.FormatFloat(most, 'f', -1, 64), "")
		return 0, false
	}
	return f, true
}

// IntField reads a whole number from 1 to most.
func IntField(to *int, most int64) func(Value) {
	var n int64
	read := Int64Field(&n, most)
	return func(v Value) {
		read(v)
		*to = int(n)
	}
}

// Int64Field reads a whole number from 1 to most.
func Int64Field(to *int64, most int64) func(Value) {
	return func(v Value) {
		if n, ok := v.ReadInteger(1, most); ok {
			*to = n
		}
	}
}

// CountField reads a whole number from 1 to math.MaxInt32.
func CountField(to *int) func(Value) {
	return func(v Value) {
		if n, ok := v.ReadInteger(1, math.MaxInt32); ok {
			*to = int(n)
		}
	}
}

// PortField reads a port number, which may be quoted.
func PortField(to *int) func(Value) {
	return func(v Value) {
		if v.Node.Tag == "!!str" && strings.Trim(v.Node.Value, "0123456789") == "" {
			plain := *v.Node
			plain.Tag, v.Node = "!!int", &plain
		}
		if n, ok := v.readInteger("port", 1, 65535); ok {
			*to = int(n)
		}
	}
}

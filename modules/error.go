package modules

import (
	"fmt"
	"runtime/debug"
)

// Step is one step of a module's life.
type Step string

// The steps, in order. A Reload whose error is of StepWait or StepClose has
// replaced the module: what failed is the end of the old one.
const (
	StepCheck      Step = "check"      // its name, and that it may be loaded now
	StepProvision  Step = "provision"  // Provisioner
	StepValidate   Step = "validate"   // Validator
	StepGroups     Step = "groups"     // Module.Groups and the definitions of its tools
	StepRegister   Step = "register"   // its groups are offered
	StepUnregister Step = "unregister" // and taken back
	StepWait       Step = "wait"       // for the calls that entered it; Err is the context's
	StepClose      Step = "close"      // io.Closer
)

// StepError says which step of which module failed. It has the code of Err.
type StepError struct {
	Module string
	Step   Step
	Err    error
}

// Error implements error.
func (e *StepError) Error() string {
	return fmt.Sprintf("module %.128q: %s: %v", e.Module, e.Step, e.Err)
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// guard calls code of a module; a panic is its error.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

package modules

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
)

// LoadStep is one of the steps that a Loader takes a module through.
type LoadStep string

// The steps, in order. A ReloadModule with an error of StepWait or StepClose has replaced the
// module. Only the end of the old module has failed.
const (
	StepCheck      LoadStep = "check"      // the name is valid and not being changed
	StepProvision  LoadStep = "provision"  // Provisioner.Provision
	StepValidate   LoadStep = "validate"   // Validator.Validate
	StepGroups     LoadStep = "groups"     // Module.ToolGroups and the definitions of the tools
	StepRegister   LoadStep = "register"   // the groups are registered
	StepUnregister LoadStep = "unregister" // the groups are unregistered
	StepWait       LoadStep = "wait"       // for the calls in progress; Err is the context's
	StepClose      LoadStep = "close"      // io.Closer.Close
)

// StepError is the error of one step of one module. It has the code of Err.
type StepError struct {
	Module string
	Step   LoadStep
	Err    error
}

// Error implements error. It names the module once: an Err that names it is the whole
// text.
func (e *StepError) Error() string {
	text := e.Err.Error()
	if strings.Contains(text, strconv.Quote(e.Module)) {
		return text
	}
	return fmt.Sprintf("module %.128q: %s: %s", e.Module, e.Step, text)
}

// Unwrap returns Err.
func (e *StepError) Unwrap() error { return e.Err }

// stepCause returns what a StepError says without the name of the module, for a log line
// that has it already.
func stepCause(err error) error {
	if e, ok := errors.AsType[*StepError](err); ok {
		return e.Err
	}
	return err
}

// recoverPanic calls fn, which is code of a module, and returns a panic as an error.
func recoverPanic(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

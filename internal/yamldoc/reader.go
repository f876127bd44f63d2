package yamldoc

import "fmt"

// Reader is the state of reading a set of documents: the variables they use and the
// errors found so far. It is not safe for concurrent use.
type Reader struct {
	// FieldHint returns the hint for an unknown field, or "". It takes precedence over
	// a similar name. A nil FieldHint has no hints.
	FieldHint func(name string) string

	// ReadSecret returns the text of the file that ${file:PATH} names. A nil ReadSecret
	// rejects all files.
	ReadSecret func(path string) (string, error)

	env  Env
	errs Errors
}

// NewReader returns a Reader that looks up variables in env.
func NewReader(env Env) *Reader {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	return &Reader{env: env}
}

// ErrorCount returns the number of errors so far.
func (r *Reader) ErrorCount() int { return len(r.errs) }

// ListErrors returns the errors so far, sorted as JoinErrors does, or nil.
func (r *Reader) ListErrors() error { return JoinErrors(nil, r.errs...) }

// AddErrors adds errors that were found outside of documents.
func (r *Reader) AddErrors(list ...*Error) { r.errs = append(r.errs, list...) }

// MaxErrors is the largest number of errors that are listed. A file with more is
// most likely not a configuration.
const MaxErrors = 1000

// report adds an error. After MaxErrors errors it adds one error that says so, and then no more.
func (r *Reader) report(at Pos, src *FileText, field, message, hint string) {
	switch n := len(r.errs); {
	case n < MaxErrors:
		r.errs = append(r.errs, src.ErrorAt(at, field, message, hint))
	case n == MaxErrors:
		r.errs = append(r.errs, &Error{File: at.File, Message: fmt.Sprintf("more than %d errors; the rest is not listed", MaxErrors)})
	}
}

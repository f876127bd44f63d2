package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// errorText returns an error for a person, with what to do about it. ctx is the context of the
// command. It ends with a signal.
func (c *common) errorText(ctx context.Context, err error) string {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return "stopped by a signal before the command was done"
	}
	switch base := c.getenv(urlVariable); {
	case errcode.CodeOf(err) == errcode.Unauthenticated && base != "" && c.getenv(tokenVariable) == "":
		return fmt.Sprintf("unauthenticated: %s requires a token; set %s to the token that serve prints, or to one that \"rolecall token create\" printed for its configuration", base, tokenVariable)
	case errcode.CodeOf(err) == wire.RouteNotFound || errcode.CodeOf(err) == wire.MethodNotAllowed:
		return "the process that serves the organization does not know this request: it is of another version of rolecall"
	}
	text := c.foldErrors(err)
	if e, ok := errors.AsType[*fs.PathError](err); ok { // without the name of the system call
		text = strings.Replace(text, e.Error(), e.Path+": "+e.Err.Error(), 1)
	}
	return text + c.errorHint(err)
}

// withContext adds to an error what was attempted. The code of the error stays in front.
func withContext(attempt string, err error) error {
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return errcode.Wrap(e.Code, err, "%s: %s", attempt, e.Message)
	}
	return fmt.Errorf("%s: %w", attempt, err)
}

// maxErrors is how many errors of a configuration a person is shown at once.
const maxErrors = 10

// foldErrors returns the text of an error. Of many errors of a configuration it has the first
// errors and says how to see all.
func (c *common) foldErrors(err error) string {
	list, ok := errors.AsType[yamldoc.Errors](err)
	if more := len(list) - maxErrors; ok && more > 0 && !c.allErrors && len(c.files) > 0 {
		folded := fmt.Sprintf("%s\nand %d more; \"rolecall check --all%s\" shows them", list[:maxErrors].Error(), more, c.fileFlags())
		return strings.Replace(err.Error(), list.Error(), folded, 1)
	}
	return err.Error()
}

// errorHint returns what to do about an error that ROLECALL_URL or ROLECALL_TOKEN causes,
// to be appended to it; "" for any other error.
func (c *common) errorHint(err error) string {
	base, token := c.getenv(urlVariable), c.getenv(tokenVariable)
	_, unanswered := errors.AsType[*url.Error](err)
	switch {
	case base != "" && unanswered:
		return fmt.Sprintf("; %s is %s: start \"rolecall serve\" there, or correct or unset the variable", urlVariable, base)
	case token != "" && isForOperator(err):
		return fmt.Sprintf("; the token in %s acts in a role: use the token of an operator", tokenVariable)
	case token != "" && errcode.CodeOf(err) == errcode.Unauthenticated:
		return fmt.Sprintf("; check that the configuration lists the token in %s and that it has not expired", tokenVariable)
	}
	return ""
}

// isForOperator reports whether a gateway has refused what only the operator may do.
func isForOperator(err error) bool {
	e, ok := errors.AsType[*errcode.Error](err)
	return ok && e.Code == errcode.InsufficientPermissions && e.Details["required"] == "operator"
}

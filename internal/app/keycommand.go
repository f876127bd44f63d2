package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model/catalog"
)

// Limits of a command that prints a key.
const (
	maxKeyOutput  = 64 << 10    // bytes of its output
	maxKeyStderr  = 4 << 10     // bytes of stderr that are kept
	maxKeyMessage = 300         // bytes of stderr that are quoted
	keyPipeDelay  = time.Second // for its children that keep its output open
	keyRetryDelay = 10 * time.Second
)

// keyCommandError is why a command printed no key. Its text has nothing that the command
// wrote and not its path, because tasks and their callers show it.
type keyCommandError struct {
	cause   error
	program string
	stderr  string // one line for the operator, without secrets
}

// Error implements error.
func (e *keyCommandError) Error() string {
	return "the command of its apiKey failed: " + e.cause.Error()
}

// Unwrap returns the cause.
func (e *keyCommandError) Unwrap() error { return e.cause }

// operatorText returns the text of an error for the operator's log and terminal. It has what
// a command of a key wrote to stderr.
func operatorText(err error) string {
	e, ok := errors.AsType[*keyCommandError](err)
	if !ok {
		return err.Error()
	}
	text := "command " + yamldoc.QuoteText(e.program) + " of its apiKey: " + e.cause.Error()
	if e.stderr != "" {
		text += ": " + e.stderr
	}
	return text
}

// runKeyCommand runs a command and returns its output, one line, as a key. The command has
// the environment of keyCommandEnv and no input. Its error is a *keyCommandError without the
// output and the secrets.
func runKeyCommand(ctx context.Context, c config.KeyCommand, secrets *redact.Redactor) (yamldoc.Secret, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("it did not end within %v", c.Timeout))
	defer cancel()
	output, stderr := &textutil.TailBuffer{Size: maxKeyOutput + 1}, &textutil.TailBuffer{Size: maxKeyStderr}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay, cmd.SysProcAttr = output, stderr, keyPipeDelay, procgroup.Attributes()
	cmd.Env = keyCommandEnv()
	err := runToEnd(ctx, cmd)
	if err == nil {
		key, problem := parseKeyOutput(output.String())
		if problem == "" {
			return key, nil
		}
		err = errors.New(problem)
	}
	message := redact.New(strings.Fields(output.String())...).RedactText(secrets.RedactText(stderr.String()))
	return "", &keyCommandError{cause: err, program: c.Args[0], stderr: textutil.OneLine(message, maxKeyMessage)}
}

// keyCommandEnv returns the environment of this process without the variables from which
// providers read their keys. Programs that print keys need variables of many names: of cloud
// accounts, password managers and proxies.
func keyCommandEnv() []string {
	providers := catalog.ListProviders()
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(providers, func(p catalog.Provider) bool { return p.KeyVariable == name })
	})
}

// runToEnd runs a command until it ends or ctx has ended, and kills its process group.
func runToEnd(ctx context.Context, cmd *exec.Cmd) error {
	group := procgroup.New(cmd)
	if err := group.Start(); err != nil {
		return fmt.Errorf("it cannot be started: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { group.Signal(syscall.SIGKILL) })
	defer stop()
	err := group.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case cmd.ProcessState != nil && !cmd.ProcessState.Success():
		return fmt.Errorf("it ended with %s", cmd.ProcessState)
	}
	return err
}

// parseKeyOutput returns the key in the output of a command, or what is wrong with it.
func parseKeyOutput(output string) (key yamldoc.Secret, problem string) {
	text := strings.TrimSpace(output)
	key, ok := yamldoc.ParseKey(text)
	switch lines := strings.Count(text, "\n") + 1; {
	case len(output) > maxKeyOutput:
		return "", fmt.Sprintf("it printed more than %d bytes", maxKeyOutput)
	case text == "":
		return "", "it printed nothing"
	case lines > 1:
		return "", fmt.Sprintf("it printed %d lines, and a key is one", lines)
	case !ok:
		return "", "it printed characters that are not printable ASCII"
	}
	return key, ""
}

// withKey returns the declaration of a model with its key, for which it runs the command
// if the key is from one. Its error is for the operator.
func withKey(ctx context.Context, d config.Model) (config.Model, error) {
	if d.KeyCommand == nil {
		return d, nil
	}
	key, err := runKeyCommand(ctx, *d.KeyCommand, nil)
	if err != nil {
		return d, errors.New(operatorText(err))
	}
	d.Key = key
	return d, nil
}

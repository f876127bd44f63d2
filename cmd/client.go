package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
)

// Environment variables that name a gateway and the token to use there.
const (
	urlVariable   = "ROLECALL_URL"
	tokenVariable = "ROLECALL_TOKEN"
)

// getenv returns a variable of the environment; "" if it is not set.
func (c *common) getenv(name string) string {
	if c.env == nil {
		return ""
	}
	value, ok := c.env(name)
	if !ok {
		return ""
	}
	return value
}

// answerTimeout is how long a command waits for the first answer of a process. It is
// short for a person and long for a process with much to do.
const answerTimeout = 10 * time.Second

// healthAttempts is how often a command asks whether a process answers. A process may be
// killed while it starts another process. It then leaves its socket to the other process
// for a moment. Connections to the socket end without an answer.
const healthAttempts = 3

// dialServing is newClient, and checks that the process answers. It gives up on a process that
// accepts connections and does not answer, such as a stopped process (SIGSTOP).
func dialServing(ctx context.Context, c *common) (*client.Client, error) {
	api, err := newClient(c)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(c.answerTimeout, answerTimeout))
	defer cancel()
	for range healthAttempts {
		if _, err = api.CheckHealth(limited); err == nil || errors.Is(err, client.ErrNotServed) || limited.Err() != nil {
			break
		}
	}
	if errors.Is(err, client.ErrNotServed) { // the process has just ended; newClient says what that means
		if err := api.Close(); err != nil {
			return nil, err
		}
		return newClient(c)
	}
	if limited.Err() == nil { // any other error is better told by the request
		return api, nil
	}
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), api.Close())
	}
	where := cmp.Or(c.getenv(urlVariable), c.data)
	return nil, errors.Join(fmt.Errorf("the process that serves %s did not answer within %v: it is stopped or overloaded; continue it (kill -CONT) or end it",
		where, cmp.Or(c.answerTimeout, answerTimeout)), api.Close())
}

// newClient returns a client of the gateway in ROLECALL_URL, or of the process that serves
// the data directory. It sends the token in ROLECALL_TOKEN if that is set.
//
// It returns client.ErrNotServed if there is neither gateway nor process, and no token.
// A token without a process is an error, because only a process can verify it.
func newClient(c *common) (*client.Client, error) {
	token := c.getenv(tokenVariable)
	if token != "" && !wire.ValidToken(token) {
		return nil, usageError{fmt.Errorf("%s is not a bearer token (RFC 6750): it has characters that no token has", tokenVariable)}
	}
	if base := c.getenv(urlVariable); base != "" {
		api, err := client.NewRemote(base, token)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %s", urlVariable, errcode.Message(err))}
		}
		return api, nil
	}
	api, err := client.Dial(c.data)
	if errors.Is(err, client.ErrNotServed) && token != "" {
		return nil, fmt.Errorf("%s is set and no process serves %s; start \"rolecall serve\" or unset the variable", tokenVariable, c.data)
	}
	if err != nil || token == "" {
		return api, err
	}
	return api.WithToken(token)
}

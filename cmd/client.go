package cmd

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
)

// The variables by which commands act as the holder of a token.
const (
	urlVariable   = "ROLECALL_URL"
	tokenVariable = "ROLECALL_TOKEN"
)

// variable gives a variable of the environment; "" when it is not set.
func (c *common) variable(name string) string {
	if c.env == nil {
		return ""
	}
	value, _ := c.env(name)
	return value
}

// newClient makes a client of the gateway that ROLECALL_URL names, or else of the
// process that serves the data directory; it acts as the holder of
// ROLECALL_TOKEN when that is set. Without a process a token is nobody's.
//
// Errors: client.ErrNotServed when there is neither and no token.
func newClient(c *common) (*client.Client, error) {
	token := c.variable(tokenVariable)
	if base := c.variable(urlVariable); base != "" {
		api, err := client.Remote(base, token)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", urlVariable, err)}
		}
		return api, nil
	}
	api, err := client.Dial(c.data)
	if errors.Is(err, client.ErrNotServed) && token != "" {
		return nil, fmt.Errorf("%s is set and no process serves %s; start one with serve, or unset it", tokenVariable, c.data)
	}
	if err != nil || token == "" {
		return api, err
	}
	return api.WithToken(token)
}

// hint says, behind an error of a gateway, what of the environment leads there
// and what to do; "" where that is not it.
func (c *common) hint(err error) string {
	base, token := c.variable(urlVariable), c.variable(tokenVariable)
	switch {
	case base != "" && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("; nobody answers at %s, which %s names: start \"rolecall serve\" there, or unset it", base, urlVariable)
	case base == "" && token == "" || errcode.Of(err) != errcode.Unauthenticated:
		return ""
	case token == "":
		return fmt.Sprintf("; set %s to the token that serve prints, or to one that \"rolecall token\" made for its configuration", tokenVariable)
	}
	return fmt.Sprintf("; it is what %s holds: see whether the configuration lists it, and until when", tokenVariable)
}
